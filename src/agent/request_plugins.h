// SPDX-License-Identifier: Apache-2.0
// Sources of metrics that others made: in a directory that only root can change, a declaration NAME.conf and a BPF object
// each. docs/plugins.md says how to write one. What is wrong with one is said, and harms neither the others nor requests.
#ifndef BLKPROF_AGENT_REQUEST_PLUGINS_H
#define BLKPROF_AGENT_REQUEST_PLUGINS_H

#include <stddef.h>

#include "bpf/request_rec.h"
#include "common/error.h"
#include "request/breakdown.h"

struct request_plugins;

typedef void (*request_plugins_say)(void *context, const char *text);

// Declares their metrics in the table, whose entries live as long as the object. -ENOENT, -EPERM and others for the
// directory itself; one plugin that is refused is only told of, and its metrics are missing in every record when at least
// its declaration is right.
int request_plugins_load(const char *directory, struct breakdown_table *table, request_plugins_say say, void *context,
			 struct request_plugins **ret, struct error *e);
void request_plugins_free(struct request_plugins *p); // detaches; NULL too
// Their maps, in the order of their sources; how many.
unsigned request_plugins_maps(const struct request_plugins *p, int ret[REQ_PLUGINS]);

// Whether a declaration is right: 0, or a negative errno with what is wrong. name: of the plugin.
int request_plugins_check(const char *name, const char *text, size_t size, struct error *e);

#endif
