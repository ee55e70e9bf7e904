// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_query.h"
#include "pprof/wire.h"

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

// Of a service: every row is looked at, by the thread that may ask the store what its labels are.
static int add_some(struct query *q, const struct adder_part *p, const struct columns *c, uint32_t met, struct error *e)
{
	int err = 0;

	for (size_t i = 0; i < c->n && !err; i++) {
		struct row_id id = { c->stack[i], c->labels[i], c->pid ? c->pid[i] : 0 };
		int64_t value[PPROF_TYPES];
		uint32_t mask = met;

		if (q->conditions & ~met) {
			err = meets(q, id.labels, &mask, e);
			if (err)
				return err;
			mask |= met | (id.pid ? meets_pid(q, id.pid) : 0);
		}
		if (q->conditions & ~mask)
			continue;
		for (unsigned k = 0; k < PPROF_TYPES; k++)
			value[k] = c->value[k] ? adder_share(c->value[k][i], p->start, p->end, p->from, p->to) : 0;
		if (q->take)
			err = q->take(q, id.labels, value, e);
		else if (adder_row(&q->st.adder, id, value))
			err = no_memory(e);
	}
	return err;
}

static int add_blob(struct query *q, const struct adder_part *p, const void *data, size_t len, uint32_t met, struct error *e)
{
	struct columns c;
	int err;

	if (!q->take && !(q->conditions & ~met))
		return adders_put(q->adders, p, data, len, e);
	err = columns_unpack(q->unpacker, data, len, &c);
	if (err)
		return error_set(e, err, err == -ENOMEM ? "out of memory" :
							 "the store is damaged: columns %lld are wrong; see 'blkprof collector --check'",
				 (long long)p->id);
	return add_some(q, p, &c, met, e);
}

static int read_columns(struct query *q, const struct span *s, unsigned from, unsigned to, uint32_t met, struct error *e)
{
	sqlite3_stmt *st = q->st.columns;
	struct adder_part p = { .start = s->start, .end = s->end, .from = q->q->from, .to = q->q->to };
	int r;

	sqlite3_bind_int64(st, 1, s->id * COLUMNS_PER_SPAN + from);
	sqlite3_bind_int64(st, 2, s->id * COLUMNS_PER_SPAN + to);
	while ((r = db_step(st, "read", e)) > 0) {
		p.id = sqlite3_column_int64(st, 0);
		r = add_blob(q, &p, sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1), met, e);
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
	return err ? err : watch_memory(&q->watch, adder_memory(&q->st.adder) + adders_memory(q->adders), e);
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

static int compare_labels(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

// What all adders have of a set of labels, which they then forget.
static struct label_total take_total(struct adder *const *adders, unsigned n, uint32_t labels)
{
	struct label_total sum = { 0 };

	for (unsigned i = 0; i < n; i++) {
		struct label_total *t = labels < adders[i]->by_labels_cap ? &adders[i]->by_labels[labels] : NULL;

		if (!t)
			continue;
		sum.ops = saturating_add(sum.ops, t->ops);
		sum.bytes = saturating_add(sum.bytes, t->bytes);
		memset(t, 0, sizeof(*t));
	}
	return sum;
}

// In an order that does not depend on which thread added what.
static int totals_of_node(struct query *q, struct error *e)
{
	struct adder *adders[ADDERS + 1] = { &q->st.adder };
	uint32_t *used;
	size_t n = q->st.adder.n_used, at = 0;
	int err = 0;

	for (unsigned i = 0; i < ADDERS; i++) {
		adders[i + 1] = adders_get(q->adders, i);
		n += adders[i + 1]->n_used;
	}
	used = malloc((n + 1) * sizeof(*used));
	if (!used)
		return no_memory(e);
	for (unsigned i = 0; i <= ADDERS; i++) {
		if (adders[i]->n_used)
			memcpy(used + at, adders[i]->used, adders[i]->n_used * sizeof(*used));
		at += adders[i]->n_used;
		adders[i]->n_used = 0;
	}
	if (n)
		qsort(used, n, sizeof(*used), compare_labels);
	for (size_t i = 0; i < n && !err; i++) {
		struct label_total t;

		if (i && used[i] == used[i - 1])
			continue;
		t = take_total(adders, ADDERS + 1, used[i]);
		err = i % 64 ? 0 : watch_ask(&q->watch, e);
		if (!err)
			err = total_of_labels(q, used[i], &t, e);
	}
	free(used);
	return err;
}

int query_end_node(struct query *q, struct error *e)
{
	int err = adders_wait(q->adders, &q->st.adder, q->unpacker, e);

	if (!err)
		err = totals_of_node(q, e);
	return err ? err : notes_of_node(q, e);
}
