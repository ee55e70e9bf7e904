// SPDX-License-Identifier: Apache-2.0
#include "collector/store_spans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/intern.h"

enum {
	SLOTS,
	SPANS,
	PENDING,
	COUNT,
	STATEMENTS
};

static const char *const sql[STATEMENTS] = {
	[SLOTS] = "SELECT slot FROM spans WHERE level = ?1 AND node = ?2 AND slot BETWEEN ?3 AND ?4 UNION "
		  "SELECT slot FROM pending WHERE level = ?1 AND node = ?2 AND slot BETWEEN ?3 AND ?4 ORDER BY 1",
	[SPANS] = "SELECT id, slot, start, end, agent, sequence, labels, services, notes, sources, lossy, windows FROM spans "
		  "WHERE level = ?1 AND node = ?2 AND slot BETWEEN ?3 AND ?4 ORDER BY slot, start, id",
	[PENDING] = "SELECT 1 FROM pending WHERE level = ?1 AND node = ?2 AND slot BETWEEN ?3 AND ?4",
	[COUNT] = "SELECT sum(windows) FROM spans WHERE level = ?1 AND node = ?2 AND slot BETWEEN ?3 AND ?4",
};

struct spans {
	sqlite3 *db;
	sqlite3_stmt *st[STATEMENTS];
};

int spans_new(sqlite3 *db, struct spans **ret, struct error *e)
{
	struct spans *s = calloc(1, sizeof(*s));
	int err = s ? 0 : error_set(e, -ENOMEM, "out of memory");

	for (unsigned i = 0; i < STATEMENTS && !err; i++) {
		s->db = db;
		err = db_prepare(db, sql[i], &s->st[i], e);
	}
	if (err)
		spans_free(s);
	else
		*ret = s;
	return err;
}

void spans_free(struct spans *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(s->st[i]);
	free(s);
}

static sqlite3_stmt *bind(struct spans *s, unsigned statement, unsigned level, int64_t node, uint64_t from, uint64_t to)
{
	sqlite3_stmt *st = s->st[statement];

	sqlite3_bind_int64(st, 1, level);
	sqlite3_bind_int64(st, 2, node);
	sqlite3_bind_int64(st, 3, (int64_t)from);
	sqlite3_bind_int64(st, 4, (int64_t)to);
	return st;
}

struct list {
	struct span *span;
	size_t n, cap;
};

static void list_free(struct list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		sources_free(&l->span[i].sources);
		intervals_free(&l->span[i].when);
		buf_free(&l->span[i].services);
		buf_free(&l->span[i].notes);
	}
	free(l->span);
}

static int read_span(sqlite3_stmt *st, unsigned level, struct span *to)
{
	*to = (struct span){
		.id = sqlite3_column_int64(st, 0),
		.level = level,
		.slot = (uint64_t)sqlite3_column_int64(st, 1),
		.start = (uint64_t)sqlite3_column_int64(st, 2),
		.end = (uint64_t)sqlite3_column_int64(st, 3),
		.source = { sqlite3_column_int64(st, 4), (uint64_t)sqlite3_column_int64(st, 5), (uint64_t)sqlite3_column_int64(st, 5) },
		.labels = (uint32_t)sqlite3_column_int64(st, 6),
		.lossy = sqlite3_column_int64(st, 10) != 0,
		.windows = (uint64_t)sqlite3_column_int64(st, 11),
	};
	if (to->end <= to->start || to->end > INT64_MAX || to->id <= 0 || to->id > INT64_MAX / COLUMNS_PER_SPAN - 1)
		return -EBADMSG;
	buf_append(&to->services, sqlite3_column_blob(st, 7), (size_t)sqlite3_column_bytes(st, 7));
	buf_append(&to->notes, sqlite3_column_blob(st, 8), (size_t)sqlite3_column_bytes(st, 8));
	if (to->services.error || to->notes.error)
		return -ENOMEM;
	if (level)
		return sources_unpack(sqlite3_column_blob(st, 9), (size_t)sqlite3_column_bytes(st, 9), &to->sources, &to->when);
	return intervals_add(&to->when, to->start, to->end);
}

static int list_read(struct spans *s, int64_t node, unsigned level, uint64_t from, uint64_t to, struct list *l, struct error *e)
{
	sqlite3_stmt *st = bind(s, SPANS, level, node, from, to);
	int r;

	while ((r = db_step(st, "read", e)) > 0) {
		r = memory_grow(NULL, &l->span, &l->cap, l->n + 1, sizeof(*l->span));
		if (!r)
			r = read_span(st, level, &l->span[l->n++]);
		if (r == -EBADMSG)
			error_set(e, r, "the store is damaged: span %lld is wrong; see 'blkprof collector --check'",
				  (long long)l->span[l->n - 1].id);
		else if (r)
			error_set(e, r, "out of memory");
		if (r)
			break;
	}
	sqlite3_reset(st);
	return r;
}

int spans_each(struct spans *s, int64_t node, unsigned level, uint64_t from, uint64_t to, span_fn fn, void *context,
	       struct error *e)
{
	struct list l = { 0 };
	int err = list_read(s, node, level, from, to, &l, e);

	for (size_t i = 0; i < l.n && !err; i++)
		err = fn(context, &l.span[i], e);
	list_free(&l);
	return err;
}

struct slots {
	uint64_t *slot;
	size_t n, cap;
};

static int list_slots(struct spans *s, int64_t node, unsigned level, uint64_t from, uint64_t to, struct slots *ret,
		      struct error *e)
{
	sqlite3_stmt *st = bind(s, SLOTS, level, node, from, to);
	int r;

	while ((r = db_step(st, "read", e)) > 0) {
		if (memory_grow(NULL, &ret->slot, &ret->cap, ret->n + 1, sizeof(*ret->slot))) {
			r = error_set(e, -ENOMEM, "out of memory");
			break;
		}
		ret->slot[ret->n++] = (uint64_t)sqlite3_column_int64(st, 0);
	}
	sqlite3_reset(st);
	return r;
}

static int is_pending(struct spans *s, int64_t node, unsigned level, uint64_t slot, struct error *e)
{
	sqlite3_stmt *st = bind(s, PENDING, level, node, slot, slot);
	int r = db_step(st, "read", e);

	sqlite3_reset(st);
	return r;
}

static uint64_t children(unsigned level)
{
	return level == LEVEL_MINUTE ? 1 : level_ns(level) / level_ns(level - 1);
}

static int count_children(struct spans *s, int64_t node, unsigned level, uint64_t slot, uint64_t *ret, struct error *e)
{
	uint64_t n = children(level);
	sqlite3_stmt *st = bind(s, COUNT, level - 1, node, slot * n, slot * n + n - 1);
	int r = db_step(st, "read", e);

	if (r > 0)
		*ret = (uint64_t)sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return r < 0 ? r : 0;
}

static struct source known_as(const struct spans_query *q, struct source from)
{
	if (q->agent)
		from.agent = q->agent(q->context, from.agent);
	return from;
}

enum meets {
	MEETS_NONE,
	MEETS_SOME,
	MEETS_ALL
};

static enum meets meets(const struct spans_query *q, const struct span *s)
{
	size_t some = 0, all = 0;

	for (size_t i = 0; i < s->sources.n; i++) {
		struct source w = known_as(q, s->sources.source[i]);

		some += taken_meets(q->taken, w);
		all += taken_has(q->taken, w);
	}
	return all == s->sources.n ? MEETS_ALL : some ? MEETS_SOME : MEETS_NONE;
}

static int take(const struct spans_query *q, struct span *s, struct error *e)
{
	int err = 0;

	for (size_t i = 0; i < s->sources.n && !err; i++)
		err = taken_add(q->taken, known_as(q, s->sources.source[i]));
	if (!s->level)
		err = taken_add(q->taken, known_as(q, s->source));
	if (err)
		return error_set(e, err, "out of memory");
	return s->end > q->from && s->start < q->to ? q->fn(q->context, s, e) : 0;
}

static int choose_windows(struct spans *s, const struct spans_query *q, uint64_t minute, struct error *e)
{
	struct list l = { 0 };
	int err = list_read(s, q->node, LEVEL_WINDOW, minute, minute, &l, e);

	for (size_t i = 0; i < l.n && !err; i++)
		if (!taken_has(q->taken, known_as(q, l.span[i].source)))
			err = take(q, &l.span[i], e);
	list_free(&l);
	return err;
}

static int choose_slot(struct spans *s, const struct spans_query *q, unsigned level, uint64_t slot, struct error *e);

static int choose_children(struct spans *s, const struct spans_query *q, unsigned level, uint64_t slot, struct error *e)
{
	uint64_t n = children(level);
	struct slots slots = { 0 };
	int err;

	if (level == LEVEL_MINUTE)
		return choose_windows(s, q, slot, e);
	err = list_slots(s, q->node, level - 1, slot * n, slot * n + n - 1, &slots, e);
	for (size_t i = 0; i < slots.n && !err; i++)
		err = choose_slot(s, q, level - 1, slots.slot[i], e);
	free(slots.slot);
	return err;
}

// The roll-up itself, or what it was made of.
static int choose_rollup(struct spans *s, const struct spans_query *q, struct span *r, bool *ret_descend, struct error *e)
{
	bool whole = r->start >= q->from && r->end <= q->to;
	enum meets m = meets(q, r);
	uint64_t finer = 0;
	int err;

	*ret_descend = false;
	if (m == MEETS_ALL || r->end <= q->from || r->start >= q->to)
		return 0;
	if (whole && !r->lossy && m == MEETS_NONE)
		return take(q, r, e);
	err = count_children(s, q->node, r->level, r->slot, &finer, e);
	if (err)
		return err;
	if (finer >= r->windows) {
		*ret_descend = true;
		return 0;
	}
	if (m == MEETS_SOME) {
		*q->ret_ambiguous += r->windows;
		return 0;
	}
	return take(q, r, e);
}

static int choose_slot(struct spans *s, const struct spans_query *q, unsigned level, uint64_t slot, struct error *e)
{
	struct list l = { 0 };
	int pending = is_pending(s, q->node, level, slot, e), err;
	bool descend = false;

	if (pending < 0)
		return pending;
	err = list_read(s, q->node, level, slot, slot, &l, e);
	if (!err && l.n)
		err = choose_rollup(s, q, &l.span[0], &descend, e);
	// What came late is in no roll-up yet.
	if (!err && (descend || pending || !l.n))
		err = choose_children(s, q, level, slot, e);
	list_free(&l);
	return err;
}

int spans_choose(struct spans *s, const struct spans_query *q, struct error *e)
{
	uint64_t from = q->from > q->longest ? q->from - q->longest : 0;
	struct slots slots = { 0 };
	int err;

	if (q->from >= q->to)
		return 0;
	err = list_slots(s, q->node, LEVEL_HOUR, from / level_ns(LEVEL_HOUR), (q->to - 1) / level_ns(LEVEL_HOUR), &slots, e);
	for (size_t i = 0; i < slots.n && !err; i++)
		err = choose_slot(s, q, LEVEL_HOUR, slots.slot[i], e);
	free(slots.slot);
	return err;
}

int spans_children(struct spans *s, const struct spans_query *q, unsigned level, uint64_t slot, struct error *e)
{
	return choose_children(s, q, level, slot, e);
}
