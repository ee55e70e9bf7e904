// SPDX-License-Identifier: Apache-2.0
// What the collector answers over HTTP: profiles and differences for `go tool pprof`, JSON, metrics. Each query has its own
// read-only connection to the store, at a lower priority than ingestion, and limits.
#ifndef BLKPROF_COLLECTOR_WEB_H
#define BLKPROF_COLLECTOR_WEB_H

#include "collector/counters.h"
#include "collector/settings.h"
#include "collector/store.h"

struct web;

// What it is given must outlive it. Errors of the address, the token file and certificates say what to do.
int web_new(const struct collector_settings *settings, struct store *store, const struct collector_counters *counters,
	    struct web **ret, struct error *e);
void web_free(struct web *w); // ends the queries at hand
unsigned web_connections(void); // at most, each an open file
uint16_t web_port(const struct web *w);

#endif
