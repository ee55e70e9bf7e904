// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_query.h"

int query_end_store(struct query *q, struct error *e)
{
	struct sums *sums = &q->st.adder.sums;
	int err = 0;

	for (unsigned i = 0; i < ADDERS && !err; i++)
		if (adder_merge(&q->st.adder, adders_get(q->adders, i)))
			err = error_set(e, -ENOMEM, "out of memory");
	sums_sort(sums);
	for (size_t i = 0; i < sums->n && !err; i++) {
		err = i % 1024 ? 0 : watch_ask(&q->watch, e);
		if (!err)
			err = bodies_sample(q->st.bodies, &sums->sum[i], e);
	}
	sums_clear(sums);
	return err;
}

#define TIMES_MAX 64 // of a node: comments of times that do not touch

// One for each time without a hole, so that whoever joins profiles by their comments counts no second twice; the last
// one has the length of all the rest.
static void comment_times(struct query *q, struct query_node *n)
{
	uint64_t rest = intervals_length(&n->when); // sorted by it, too

	for (size_t i = 0; i < n->when.n && i < TIMES_MAX; i++) {
		const struct interval *v = &n->when.v[i];
		uint64_t length = i + 1 < TIMES_MAX ? v->end - v->start : rest;

		pprof_add_comment(q->builder, "window node=%s start=%" PRIu64 " duration=%" PRIu64 " windows=%" PRIu64 " (nanoseconds)",
				  n->name, v->start, length, i ? 0 : n->windows);
		rest -= length;
	}
}

static void comment_node(struct query *q, struct query_node *n)
{
	comment_times(q, n);
	for (size_t i = 0; i < n->n_totals; i++)
		pprof_add_comment(q->builder, "total node=%s device=%s op=%s ops=%" PRIu64 " bytes=%" PRIu64, n->name,
				  profile_text(q->p, n->total[i].device), profile_text(q->p, n->total[i].op), n->total[i].ops,
				  n->total[i].bytes);
}

static void comment_coverage(struct query *q)
{
	const struct store_coverage *c = &q->coverage;

	pprof_add_comment(q->builder, "query from=%" PRIu64 " to=%" PRIu64 " nodes=%u windows=%u node_seconds=%.3f", q->q->from,
			  q->q->to, c->nodes, c->windows, (double)c->node_seconds_ns / 1e9);
	if (c->straddling)
		pprof_add_comment(q->builder, "straddling windows=%u (an edge of the query cuts them: their values are shared out by time)",
				  c->straddling);
	if (c->rollups)
		pprof_add_comment(q->builder, "rolled_up windows=%u (only their sums over a longer time, without pid, are left)", c->rollups);
	if (c->ambiguous)
		pprof_add_comment(q->builder, "left_out windows=%u (in sums of one store that share windows with another's)", c->ambiguous);
	if (c->lost)
		pprof_add_comment(q->builder, "gap batches=%" PRIu64 " seconds=%.3f (dropped by agents whose spool was full, or by a store that was)", c->lost,
				  (double)c->lost_ns / 1e9);
}

static int comment_notes(struct query *q)
{
	struct buf text = { 0 };
	int err = 0;

	for (size_t i = 0; i < q->notes.n && !err; i++) {
		const struct note *n = &q->notes.note[i];

		text.len = 0;
		note_print(profile_text(q->p, n->text), profile_text_len(q->p, n->text), n, &text);
		buf_byte(&text, 0);
		err = text.error ? text.error : pprof_add_comment(q->builder, "%s", (char *)text.data);
	}
	buf_free(&text);
	return err;
}

static int compare_nodes(const void *a, const void *b)
{
	return strcmp((*(struct query_node *const *)a)->name, (*(struct query_node *const *)b)->name);
}

// The length of the union of all windows, and the time of the first.
static int set_time(struct query *q)
{
	struct intervals all = { 0 };
	int err = 0;

	for (size_t i = 0; i < q->n_nodes && !err; i++) {
		struct query_node *n = q->node[i];

		q->coverage.node_seconds_ns += intervals_length(&n->when);
		q->coverage.nodes += n->when.n != 0;
		for (size_t k = 0; k < n->when.n && !err; k++)
			err = intervals_add(&all, n->when.v[k].start, n->when.v[k].end);
	}
	if (!err) {
		uint64_t length = intervals_length(&all);

		pprof_set_time(q->builder, all.n ? all.v[0].start : q->q->from, length);
	}
	intervals_free(&all);
	return err;
}

void store_coverage_print(const struct store_coverage *c, const struct store_query *q, struct buf *to)
{
	double asked = (double)(q->to - q->from) / 1e9 * c->nodes;

	buf_printf(to, "%u windows of %u nodes: %.0f node-seconds", c->windows, c->nodes, (double)c->node_seconds_ns / 1e9);
	if (asked > 0)
		buf_printf(to, ", %.1f%% of the time asked for", 100 * (double)c->node_seconds_ns / 1e9 / asked);
	if (c->straddling)
		buf_printf(to, "; %u windows that an edge cuts are shared out by time", c->straddling);
	if (c->rollups)
		buf_printf(to, "; of %u windows only sums over a longer time, without pid, are left", c->rollups);
	if (c->ambiguous)
		buf_printf(to, "; %u windows are left out: the stores have them in sums that overlap", c->ambiguous);
	if (c->lost)
		buf_printf(to, "; %" PRIu64 " windows (%.0f s) were dropped for want of room", c->lost, (double)c->lost_ns / 1e9);
	if (c->empty)
		buf_printf(to, "; none of them has anything of what was asked for (see 'blkprof query --list services')");
}

int query_answer(struct query *q, struct buf *ret_gz, struct error *e)
{
	struct buf raw = { 0 };
	int err = set_time(q);

	if (q->n_nodes)
		qsort(q->node, q->n_nodes, sizeof(*q->node), compare_nodes);
	comment_coverage(q);
	for (size_t i = 0; i < q->n_nodes; i++)
		comment_node(q, q->node[i]);
	if (!err)
		err = comment_notes(q);
	if (!err)
		err = pprof_encode(q->builder, &raw);
	if (!err)
		err = pprof_gzip(raw.data, raw.len, ret_gz);
	buf_free(&raw);
	if (err == -E2BIG)
		return error_set(e, err, "the answer takes too much memory: ask for a shorter time, or for one node or service");
	return err ? error_set(e, err, "out of memory") : 0;
}
