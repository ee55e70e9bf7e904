// SPDX-License-Identifier: Apache-2.0
// Which spans (windows as they came, or roll-ups) make up a node's part of a query: each batch exactly once, from the
// coarsest span that says the same as its windows do, and from the windows where an edge of the query cuts it.
#ifndef BLKPROF_COLLECTOR_STORE_SPANS_H
#define BLKPROF_COLLECTOR_STORE_SPANS_H

#include "collector/store_internal.h"
#include "collector/store_taken.h"

struct span {
	int64_t id;
	unsigned level;
	uint64_t slot, start, end;
	uint32_t labels;
	uint64_t windows; // that it is made of
	bool lossy;	  // a roll-up that dropped pids
	struct source source; // of a window
	struct sources sources; // of a roll-up; agents are those of the store
	struct intervals when;
	struct buf services, notes; // packed
};

// What to do with a chosen span; it is the callee's only during the call.
typedef int (*span_fn)(void *context, struct span *s, struct error *e);

struct spans;

int spans_new(sqlite3 *db, struct spans **ret, struct error *e);
void spans_free(struct spans *s);

struct spans_query {
	int64_t node;
	uint64_t from, to, longest;
	// By which other stores know an agent: NULL = by its id. `taken` has the batches that are in the result already.
	int64_t (*agent)(void *context, int64_t agent);
	struct taken *taken;
	span_fn fn;
	void *context;
	uint64_t *ret_ambiguous; // windows in roll-ups that share some batches, not all, with what was taken
};

int spans_choose(struct spans *s, const struct spans_query *q, struct error *e);
// The same for what a roll-up is made of, whether there is one or not.
int spans_children(struct spans *s, const struct spans_query *q, unsigned level, uint64_t slot, struct error *e);
// All spans of a level in slots [from, to], in order; windows are in slots of minutes.
int spans_each(struct spans *s, int64_t node, unsigned level, uint64_t from, uint64_t to, span_fn fn, void *context,
	       struct error *e);

#endif
