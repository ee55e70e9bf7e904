// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_query.h"
#include "pprof/wire.h"

#define AHEAD_ROWS 8

static int64_t up_to(int64_t v, uint64_t length, uint64_t t)
{
	return t >= length ? v : (int64_t)((__uint128_t)(uint64_t)v * t / length);
}

int64_t query_share(int64_t v, uint64_t start, uint64_t end, uint64_t from, uint64_t to)
{
	uint64_t a = from > start ? from - start : 0, b = to > start ? to - start : 0;

	return up_to(v, end - start, b) - up_to(v, end - start, a);
}

static int no_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "out of memory");
}

// Which conditions a set of labels meets.
static int meets(struct query *q, uint32_t labels, uint32_t *ret, struct error *e)
{
	uint32_t *found = idmap_find(&q->st.matches, labels), mask = 0, n;
	const struct profile_label *l;
	int err;

	if (found || !labels) {
		*ret = found ? *found : 0;
		return 0;
	}
	err = bodies_labels(q->st.bodies, labels, &l, &n, e);
	if (err)
		return err;
	for (uint32_t i = 0; i < n; i++) {
		const char *key = profile_text(q->p, l[i].key), *text = profile_text(q->p, l[i].text);
		char number[32];

		if (!l[i].text) {
			snprintf(number, sizeof(number), "%lld", (long long)l[i].number);
			text = number;
		}
		for (unsigned c = 0; c < q->q->n_labels; c++)
			if (!strcmp(key, q->q->labels[c].name) && !strcmp(text, q->q->labels[c].value))
				mask |= 1u << c;
		if (q->q->device && !strcmp(key, "device") && !strcmp(text, q->q->device))
			mask |= 1u << q->q->n_labels;
	}
	*ret = mask;
	return idmap_put(&q->st.matches, labels, mask) ? no_memory(e) : 0;
}

static uint32_t meets_pid(const struct query *q, uint32_t pid)
{
	char number[16];
	uint32_t mask = 0;

	snprintf(number, sizeof(number), "%u", pid);
	for (unsigned c = 0; c < q->q->n_labels; c++)
		if (!strcmp(q->q->labels[c].name, "pid") && !strcmp(q->q->labels[c].value, number))
			mask |= 1u << c;
	return mask;
}

static int add_total(struct query *q, uint32_t labels, const int64_t *value, struct error *e)
{
	struct label_total *t;

	if (labels >= q->by_labels_cap) {
		size_t before = q->by_labels_cap;

		if (memory_grow(NULL, &q->by_labels, &q->by_labels_cap, (size_t)labels + 1, sizeof(*t)))
			return no_memory(e);
		memset(q->by_labels + before, 0, (q->by_labels_cap - before) * sizeof(*t));
	}
	t = &q->by_labels[labels];
	if (!t->used) {
		if (memory_grow(NULL, &q->used, &q->used_cap, q->n_used + 1, sizeof(*q->used)))
			return no_memory(e);
		q->used[q->n_used++] = labels;
		t->used = true;
	}
	t->ops = saturating_add(t->ops, value[PPROF_IO_OPS]);
	t->bytes = saturating_add(t->bytes, saturating_add(value[PPROF_READ_BYTES], value[PPROF_WRITE_BYTES]));
	return 0;
}

static struct row_id row_of(const struct columns *c, size_t i)
{
	return (struct row_id){ c->stack[i], c->labels[i], c->pid ? c->pid[i] : 0 };
}

static void ask_ahead(const struct sums *s, const struct columns *c, size_t i)
{
	if (i + 2 * AHEAD_ROWS < c->n)
		sums_ask_slot(s, row_of(c, i + 2 * AHEAD_ROWS));
	if (i + AHEAD_ROWS < c->n)
		sums_ask_sum(s, row_of(c, i + AHEAD_ROWS));
}

static int add_columns(struct query *q, const struct span *s, const struct columns *c, uint32_t met, struct error *e)
{
	bool cut = s->start < q->q->from || s->end > q->q->to;
	int err = 0;

	for (size_t i = 0; i < c->n; i++) {
		struct row_id id = row_of(c, i);
		int64_t value[PPROF_TYPES];
		uint32_t mask = met;

		ask_ahead(&q->st.sums, c, i);
		if (q->conditions & ~met) {
			err = meets(q, id.labels, &mask, e);
			if (err)
				return err;
			mask |= met | (id.pid ? meets_pid(q, id.pid) : 0);
		}
		if (q->conditions & ~mask)
			continue;
		for (unsigned k = 0; k < PPROF_TYPES; k++) {
			value[k] = c->value[k] ? c->value[k][i] : 0;
			if (cut)
				value[k] = query_share(value[k], s->start, s->end, q->q->from, q->q->to);
		}
		if (!q->take && sums_add(&q->st.sums, id, value))
			return no_memory(e);
		err = q->take ? q->take(q, id.labels, value, e) : add_total(q, id.labels, value, e);
		if (err)
			return err;
	}
	return 0;
}

static int read_columns(struct query *q, const struct span *s, unsigned from, unsigned to, uint32_t met, struct error *e)
{
	sqlite3_stmt *st = q->st.columns;
	struct columns c;
	int r;

	sqlite3_bind_int64(st, 1, s->id * COLUMNS_PER_SPAN + from);
	sqlite3_bind_int64(st, 2, s->id * COLUMNS_PER_SPAN + to);
	while ((r = db_step(st, "read", e)) > 0) {
		r = columns_unpack(q->unpacker, sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1), &c);
		if (r)
			r = error_set(e, r, r == -ENOMEM ? "out of memory" :
							   "the store is damaged: columns %lld are wrong; see 'blkprof collector --check'",
				      (long long)sqlite3_column_int64(st, 0));
		else
			r = add_columns(q, s, &c, met, e);
		if (r)
			break;
	}
	sqlite3_reset(st);
	return r;
}

static int gather_columns(struct query *q, const struct span *s, uint32_t met, struct error *e)
{
	const uint8_t *p = s->services.data, *end = p + s->services.len;
	uint64_t id;
	int err = 0;

	if (!q->q->service)
		return read_columns(q, s, 0, COLUMNS_PER_SPAN - 1, met, e);
	if (q->st.no_service)
		return 0;
	for (unsigned k = 0; p < end && !err && k < COLUMNS_PER_SPAN; k++) {
		if (wire_get_varint(&p, end, &id))
			return error_set(e, -EBADMSG, "the store is damaged: span %lld is wrong; see 'blkprof collector --check'",
					 (long long)s->id);
		if (id == q->st.service)
			err = read_columns(q, s, k, k, met, e);
	}
	return err;
}

static int gather_notes(struct query *q, const struct span *s, struct error *e)
{
	int err = notes_unpack(s->notes.data, s->notes.len, &q->st.notes, 0);

	if (err == -EBADMSG)
		return error_set(e, err, "the store is damaged: the notes of span %lld are wrong; see 'blkprof collector --check'",
				 (long long)s->id);
	return err ? no_memory(e) : 0;
}

static size_t sums_memory(const struct sums *s)
{
	return s->cap * sizeof(*s->sum) + s->slots_cap * sizeof(*s->slots);
}

static int gather_coverage(struct query *q, struct span *s, struct error *e)
{
	bool cut = s->start < q->q->from || s->end > q->q->to;

	for (size_t i = 0; i < s->when.n; i++) {
		uint64_t start = s->when.v[i].start, end = s->when.v[i].end;

		start = start > q->q->from ? start : q->q->from;
		end = end < q->q->to ? end : q->q->to;
		if (intervals_add(&q->at->when, start, end))
			return no_memory(e);
	}
	q->at->windows += s->windows;
	q->coverage.windows += (unsigned)s->windows;
	q->coverage.straddling += cut ? (unsigned)s->windows : 0;
	q->coverage.rollups += s->level && (cut || s->lossy) ? (unsigned)s->windows : 0;
	return 0;
}

int query_gather(void *query, struct span *s, struct error *e)
{
	struct query *q = query;
	uint32_t met = 0;
	int err = watch_ask(&q->watch, e);

	if (!err)
		err = meets(q, s->labels, &met, e);
	if (!err)
		err = gather_coverage(q, s, e);
	if (!err && !q->take)
		err = gather_notes(q, s, e);
	if (!err)
		err = gather_columns(q, s, met, e);
	return err ? err : watch_memory(&q->watch, sums_memory(&q->st.sums), e);
}

static int total_of_labels(struct query *q, uint32_t labels, const struct label_total *t, struct error *e)
{
	struct query_node *n = q->at;
	const struct profile_label *l;
	uint32_t device = 0, op = 0, count;
	size_t i;
	int err = bodies_labels(q->st.bodies, labels, &l, &count, e);

	if (err)
		return err;
	for (uint32_t k = 0; k < count; k++) {
		if (!strcmp(profile_text(q->p, l[k].key), "device"))
			device = l[k].text;
		if (!strcmp(profile_text(q->p, l[k].key), "op"))
			op = l[k].text;
	}
	if (!device && !op)
		return 0;
	for (i = 0; i < n->n_totals; i++)
		if (n->total[i].device == device && n->total[i].op == op)
			break;
	if (i == n->n_totals) {
		if (memory_grow(NULL, &n->total, &n->totals_cap, i + 1, sizeof(*n->total)))
			return no_memory(e);
		n->total[n->n_totals++] = (struct node_total){ .device = device, .op = op };
	}
	n->total[i].ops += (uint64_t)t->ops;
	n->total[i].bytes += (uint64_t)t->bytes;
	return 0;
}

static int notes_of_node(struct query *q, struct error *e)
{
	int err = 0;

	for (size_t i = 0; i < q->st.notes.n && !err; i++) {
		struct note note = q->st.notes.note[i];

		err = bodies_text(q->st.bodies, note.text, &note.text, e);
		if (!err && note.text && notes_add(&q->notes, &note, 0))
			err = no_memory(e);
	}
	notes_clear(&q->st.notes);
	return err;
}

int query_end_node(struct query *q, struct error *e)
{
	int err = 0;

	for (size_t i = 0; i < q->n_used && !err; i++) {
		struct label_total *t = &q->by_labels[q->used[i]];

		err = total_of_labels(q, q->used[i], t, e);
		memset(t, 0, sizeof(*t));
	}
	q->n_used = 0;
	return err ? err : notes_of_node(q, e);
}
