// SPDX-License-Identifier: Apache-2.0
// A query while it runs; store_query.c goes through the stores, store_gather.c adds up what a span has, store_answer.c
// makes the profile of it.
#ifndef BLKPROF_COLLECTOR_STORE_QUERY_H
#define BLKPROF_COLLECTOR_STORE_QUERY_H

#include "collector/store_adder.h"
#include "collector/store_bodies.h"
#include "collector/store_notes.h"
#include "collector/store_spans.h"
#include "collector/store_watch.h"
#include "pprof/builder.h"

// Of a node: operations and bytes of a device and operation, by strings of the profile.
struct node_total {
	uint32_t device, op;
	uint64_t ops, bytes;
};

// Batches that a store knows to be lost.
struct query_gap {
	struct source what;
	uint64_t start, end;
};

struct query_node {
	char name[BATCH_NODE_MAX + 1];
	struct taken taken;
	struct query_gap *lost;
	size_t n_lost, lost_cap;
	struct intervals when;
	struct node_total *total;
	size_t n_totals, totals_cap;
	uint64_t windows;
};

// The store at hand.
struct query_store {
	sqlite3 *db;
	struct spans *spans;
	struct bodies *bodies;
	sqlite3_stmt *columns, *instance;
	struct adder adder;
	uint32_t service; // id, when one is asked for
	bool no_service;  // it has none of that name
	struct idmap matches; // of a set of labels: which conditions it meets, + 1
	struct idmap agents;  // of this store: their numbers in the query
	struct notes notes;   // of the node at hand
};

#define CONDITIONS_MAX 31

struct query;

// What becomes of a sample instead of being added up for the profile.
typedef int (*query_take_fn)(struct query *q, uint32_t labels, const int64_t *value, struct error *e);

struct query {
	const struct store_query *q;
	struct watch watch;
	query_take_fn take; // NULL = a profile is made
	void *take_context;
	unsigned n_stores;
	struct pprof_builder *builder;
	struct profile *p;
	struct unpacker *unpacker;
	struct adders *adders;
	struct query_node **node;
	size_t n_nodes, nodes_cap;
	struct query_node *at; // the node at hand
	struct query_store st;
	struct intern instances; // agents of all stores
	struct notes notes; // by strings of the profile
	uint32_t conditions; // all of them, as bits
	struct store_coverage coverage;
	int error; // of the agents' numbers
};

// store_query.c: the steps of a query, for those who make something else of it.
int query_start(struct query *q, struct error *e);
int query_open(struct query *q, struct store *s, struct error *e);
int query_each_node(struct query *q, struct error *e);
void query_close(struct query_store *st);
void query_clear_nodes(struct query *q);
void query_finish(struct query *q);
// The number of an agent, over all stores.
int64_t query_agent_number(void *query, int64_t agent);
// The node of that name; over several stores it may be there already. NULL without memory.
struct query_node *query_node(struct query *q, const char *name);
int query_nothing(struct store *const *stores, unsigned n, const struct store_query *q, struct error *e); // says why

// store_gather.c
int query_gather(void *query, struct span *s, struct error *e); // a span_fn
int query_end_node(struct query *q, struct error *e);	       // what it has by labels becomes its totals

// store_lost.c
int query_note_gap(struct query_node *n, struct source what, uint64_t start, uint64_t end); // 0 or -ENOMEM
int query_end_lost(struct query *q, struct error *e); // behind the last store: what none of them has

// store_answer.c
int query_end_store(struct query *q, struct error *e); // its sums into the profile
int query_answer(struct query *q, struct buf *ret_gz, struct error *e);

// store_list.c: the end of the last window before q->from and the start of the first behind q->to; 0 = none.
void store_nearest(struct store *const *stores, unsigned n, const struct store_query *q, uint64_t *ret_before,
		   uint64_t *ret_after);
int store_say_nearest(uint64_t before, uint64_t after, struct error *e); // returns -ENODATA

#endif
