// SPDX-License-Identifier: Apache-2.0
// What agents had to drop, over all stores of a query: a gap that reached two collectors counts once, and what one collector
// knows to be lost may have reached another.
#include <errno.h>
#include <stdlib.h>

#include "collector/store_query.h"
#include "pprof/intern.h"

int query_note_gap(struct query_node *n, struct source what, uint64_t start, uint64_t end)
{
	if (memory_grow(NULL, &n->lost, &n->lost_cap, n->n_lost + 1, sizeof(*n->lost)))
		return -ENOMEM;
	n->lost[n->n_lost++] = (struct query_gap){ what, start, end };
	return 0;
}

// From `at` on: how far it is all known (true, to *ret) or all missing (false).
static bool run_at(const struct taken *known, int64_t agent, uint64_t at, uint64_t last, uint64_t *ret)
{
	const struct source *s = taken_from(known, agent, at);
	bool here = s && s->first <= at;

	*ret = last;
	if (here && s->last < last)
		*ret = s->last;
	else if (s && !here && s->first - 1 < last)
		*ret = s->first - 1;
	return here;
}

static void add_missing(struct query *q, const struct query_gap *g, uint64_t first, uint64_t last)
{
	uint64_t begin = g->what.first, end = g->what.last + 1;
	int64_t length = (int64_t)(g->end - g->start);
	uint64_t start = g->start + (uint64_t)adder_share(length, begin, end, begin, first);
	uint64_t until = g->start + (uint64_t)adder_share(length, begin, end, begin, last + 1);

	start = start > q->q->from ? start : q->q->from;
	until = until < q->q->to ? until : q->q->to;
	q->coverage.lost += last - first + 1;
	if (until > start)
		q->coverage.lost_ns += until - start;
}

static int add_gap(struct query *q, struct query_node *n, const struct query_gap *g)
{
	uint64_t last = g->what.last, until;

	for (uint64_t at = g->what.first; at <= last; at = until + 1)
		if (!run_at(&n->taken, g->what.agent, at, last, &until))
			add_missing(q, g, at, until);
	return taken_add(&n->taken, g->what);
}

int query_end_lost(struct query *q, struct error *e)
{
	int err = 0;

	for (size_t i = 0; i < q->n_nodes; i++)
		for (size_t k = 0; k < q->node[i]->n_lost && !err; k++)
			err = add_gap(q, q->node[i], &q->node[i]->lost[k]);
	return err ? error_set(e, err, "out of memory") : 0;
}
