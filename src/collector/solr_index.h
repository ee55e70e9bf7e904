// SPDX-License-Identifier: Apache-2.0
// Requests from the store into Solr, in a thread of its own. Where Solr is down or refuses, it waits and loses nothing: what
// is not indexed yet stays in the store for as long as that keeps it, and the place is kept over restarts.
#ifndef BLKPROF_COLLECTOR_SOLR_INDEX_H
#define BLKPROF_COLLECTOR_SOLR_INDEX_H

#include "collector/counters.h"
#include "collector/settings.h"
#include "collector/solr_client.h"
#include "collector/store.h"

struct solr_index;

struct solr_index_options {
	struct solr_client_options client; // stop unused
	unsigned batch;			   // documents of one update
	uint64_t commit_within;		   // ns
	const char *directory;		   // for what Solr refuses
	struct store *store;
	struct collector_counters *counters;
	void (*say)(void *context, const char *text); // a line for the log, from its thread
	void *say_context;
};

int solr_index_new(const struct solr_index_options *options, struct solr_index **ret, struct error *e);
void solr_index_free(struct solr_index *x); // ends the request at hand

// Creates the fields that the collection lacks; say gets a line for each.
int solr_init(const struct collector_settings *settings, void (*say)(void *context, const char *text), void *context, struct error *e);

#endif
