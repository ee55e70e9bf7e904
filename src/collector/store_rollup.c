// SPDX-License-Identifier: Apache-2.0
// Sums over a minute, ten minutes and an hour of a node, by service, without pid. A roll-up knows which batches it has:
// what comes late is added to it, nothing twice.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_maintenance.h"
#include "collector/store_notes.h"
#include "collector/store_spans.h"
#include "common/clock.h"
#include "pprof/intern.h"
#include "pprof/wire.h"

enum {
	NEXT_DUE,
	DONE,
	COLUMNS,
	DROP_SPAN,
	DROP_COLUMNS,
	ADD_SPAN,
	ADD_COLUMNS,
	STATEMENTS
};

static const char *const sql[STATEMENTS] = {
	[NEXT_DUE] = "SELECT level, node, slot FROM pending WHERE due <= ?1 LIMIT 1",
	[DONE] = "DELETE FROM pending WHERE level = ?1 AND node = ?2 AND slot = ?3",
	[COLUMNS] = "SELECT id, data FROM columns WHERE id BETWEEN ?1 AND ?2",
	[DROP_SPAN] = "DELETE FROM spans WHERE id = ?1",
	[DROP_COLUMNS] = "DELETE FROM columns WHERE id BETWEEN ?1 AND ?2",
	[ADD_SPAN] = "INSERT INTO spans(level, node, slot, start, end, labels, services, notes, sources, lossy, windows) "
		     "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
	[ADD_COLUMNS] = "INSERT INTO columns(id, data) VALUES (?1, ?2)",
};

struct service_sums {
	uint32_t service;
	struct sums sums;
};

struct rollup {
	struct spans *spans;
	struct unpacker *unpacker;
	sqlite3_stmt *st[STATEMENTS];
	// Of the roll-up at hand.
	struct service_sums *service;
	size_t n, cap, allocated;
	struct idmap by_service; // index + 1
	struct notes notes;
	struct taken taken;
	struct sources sources; // the same as a list
	struct intervals when;
	uint64_t start, end, windows;
	uint32_t labels;
	bool lossy, any;
	int64_t before; // the roll-up that this one replaces, 0 = none
	struct buf services, packed_notes, packed_sources;
};

int rollup_new(struct store *s, struct rollup **ret, struct error *e)
{
	struct rollup *r = calloc(1, sizeof(*r));
	int err = r ? spans_new(s->db, &r->spans, e) : error_set(e, -ENOMEM, "out of memory");

	for (unsigned i = 0; i < STATEMENTS && !err; i++)
		err = db_prepare(s->db, sql[i], &r->st[i], e);
	if (!err) {
		r->unpacker = unpacker_new();
		err = r->unpacker ? 0 : error_set(e, -ENOMEM, "out of memory");
	}
	if (err)
		rollup_free(r);
	else
		*ret = r;
	return err;
}

static void clear(struct rollup *r)
{
	for (size_t i = 0; i < r->n; i++)
		sums_clear(&r->service[i].sums);
	r->n = 0;
	idmap_clear(&r->by_service);
	notes_clear(&r->notes);
	taken_clear(&r->taken);
	r->sources.n = r->when.n = 0;
	r->services.len = r->packed_notes.len = r->packed_sources.len = 0;
	r->start = UINT64_MAX;
	r->end = r->windows = 0;
	r->labels = 0;
	r->lossy = r->any = false;
	r->before = 0;
}

void rollup_free(struct rollup *r)
{
	if (!r)
		return;
	spans_free(r->spans);
	unpacker_free(r->unpacker);
	for (unsigned i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(r->st[i]);
	for (size_t i = 0; i < r->allocated; i++)
		sums_free(&r->service[i].sums);
	free(r->service);
	idmap_free(&r->by_service);
	notes_free(&r->notes);
	taken_free(&r->taken);
	sources_free(&r->sources);
	intervals_free(&r->when);
	buf_free(&r->services);
	buf_free(&r->packed_notes);
	buf_free(&r->packed_sources);
	free(r);
}

static int no_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "out of memory");
}

static struct sums *sums_of(struct rollup *r, uint32_t service)
{
	uint32_t *at = idmap_find(&r->by_service, service);

	if (at)
		return &r->service[*at - 1].sums;
	if (memory_grow(NULL, &r->service, &r->cap, r->n + 1, sizeof(*r->service)) ||
	    idmap_put(&r->by_service, service, (uint32_t)r->n + 1))
		return NULL;
	if (r->n == r->allocated)
		memset(&r->service[r->allocated++], 0, sizeof(*r->service));
	r->service[r->n].service = service;
	return &r->service[r->n++].sums;
}

static int add_columns(struct rollup *r, uint32_t service, const struct columns *c, struct error *e)
{
	struct sums *to = sums_of(r, service);

	if (!to)
		return no_memory(e);
	for (size_t i = 0; i < c->n; i++) {
		struct row_id id = { c->stack[i], c->labels[i], 0 };
		int64_t value[PPROF_TYPES];

		r->lossy |= c->pid && c->pid[i];
		for (unsigned k = 0; k < PPROF_TYPES; k++)
			value[k] = c->value[k] ? c->value[k][i] : 0;
		if (sums_add(to, id, value))
			return no_memory(e);
	}
	return 0;
}

static int damaged(const struct span *s, struct error *e)
{
	return error_set(e, -EBADMSG, "the store is damaged: span %lld is wrong; see 'blkprof collector --check'", (long long)s->id);
}

static int add_samples(struct rollup *r, struct span *s, struct error *e)
{
	const uint8_t *p = s->services.data, *end = p + s->services.len;
	sqlite3_stmt *st = r->st[COLUMNS];
	struct columns c;
	uint64_t service = 0;
	int64_t next = s->id * COLUMNS_PER_SPAN;
	int err;

	sqlite3_bind_int64(st, 1, next);
	sqlite3_bind_int64(st, 2, next + COLUMNS_PER_SPAN - 1);
	while ((err = db_step(st, "read", e)) > 0) {
		err = sqlite3_column_int64(st, 0) == next++ && !wire_get_varint(&p, end, &service) && service <= UINT32_MAX ? 0 : -EBADMSG;
		if (!err)
			err = columns_unpack(r->unpacker, sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1), &c);
		if (err) {
			err = err == -EBADMSG ? damaged(s, e) : no_memory(e);
			break;
		}
		err = add_columns(r, (uint32_t)service, &c, e);
		if (err)
			break;
	}
	sqlite3_reset(st);
	return err;
}

static int add_span(void *context, struct span *s, struct error *e)
{
	struct rollup *r = context;
	int err = 0;

	if (r->windows && s->labels != r->labels)
		r->lossy = true;
	r->labels = s->labels;
	r->lossy |= s->lossy;
	r->windows += s->windows;
	r->start = s->start < r->start ? s->start : r->start;
	r->end = s->end > r->end ? s->end : r->end;
	for (size_t i = 0; i < s->when.n && !err; i++)
		err = intervals_add(&r->when, s->when.v[i].start, s->when.v[i].end);
	if (!err)
		err = notes_unpack(s->notes.data, s->notes.len, &r->notes, 0);
	if (err)
		return err == -EBADMSG ? damaged(s, e) : no_memory(e);
	return add_samples(r, s, e);
}

static int add_before(void *context, struct span *s, struct error *e)
{
	struct rollup *r = context;

	r->before = s->id;
	for (size_t i = 0; i < s->sources.n; i++)
		if (taken_add(&r->taken, s->sources.source[i]))
			return no_memory(e);
	return add_span(r, s, e);
}

static int add_new(void *context, struct span *s, struct error *e)
{
	struct rollup *r = context;

	r->any = true;
	return add_span(r, s, e);
}

static int drop(struct rollup *r, struct error *e)
{
	int err;

	if (!r->before)
		return 0;
	sqlite3_bind_int64(r->st[DROP_SPAN], 1, r->before);
	err = db_run(r->st[DROP_SPAN], "write to", e);
	if (err)
		return err;
	sqlite3_bind_int64(r->st[DROP_COLUMNS], 1, r->before * COLUMNS_PER_SPAN);
	sqlite3_bind_int64(r->st[DROP_COLUMNS], 2, r->before * COLUMNS_PER_SPAN + COLUMNS_PER_SPAN - 1);
	return db_run(r->st[DROP_COLUMNS], "write to", e);
}

static int pack(struct rollup *r, struct error *e)
{
	for (size_t i = 0; i < r->n; i++) {
		uint8_t *o = buf_reserve(&r->services, WIRE_VARINT_MAX);

		if (o)
			r->services.len += (size_t)(wire_put_varint(o, r->service[i].service) - o);
	}
	if (r->services.error || notes_pack(&r->notes, &r->packed_notes) || taken_list(&r->taken, &r->sources) ||
	    sources_pack(&r->sources, &r->when, &r->packed_sources))
		return no_memory(e);
	return 0;
}

static void bind_buf(sqlite3_stmt *st, int at, const struct buf *b)
{
	sqlite3_bind_blob64(st, at, b->len ? (const void *)b->data : "", b->len, SQLITE_STATIC);
}

static int write_span(struct store *s, struct rollup *r, unsigned level, int64_t node, uint64_t slot, struct error *e)
{
	sqlite3_stmt *st = r->st[ADD_SPAN];
	int64_t id;
	int err;

	sqlite3_bind_int64(st, 1, level);
	sqlite3_bind_int64(st, 2, node);
	sqlite3_bind_int64(st, 3, (int64_t)slot);
	sqlite3_bind_int64(st, 4, (int64_t)r->start);
	sqlite3_bind_int64(st, 5, (int64_t)r->end);
	sqlite3_bind_int64(st, 6, r->labels);
	bind_buf(st, 7, &r->services);
	bind_buf(st, 8, &r->packed_notes);
	bind_buf(st, 9, &r->packed_sources);
	sqlite3_bind_int64(st, 10, r->lossy);
	sqlite3_bind_int64(st, 11, (int64_t)r->windows);
	err = db_run(st, "write to", e);
	id = sqlite3_last_insert_rowid(s->db);
	for (size_t i = 0; i < r->n && !err; i++) {
		const void *data;
		size_t len;

		sums_sort(&r->service[i].sums);
		err = columns_pack(s->packer, &r->service[i].sums, &data, &len);
		if (err)
			return error_set(e, err, "the samples of a roll-up cannot be packed: %s", strerror(-err));
		sqlite3_bind_int64(r->st[ADD_COLUMNS], 1, id * COLUMNS_PER_SPAN + (int64_t)i);
		sqlite3_bind_blob64(r->st[ADD_COLUMNS], 2, data, len, SQLITE_STATIC);
		err = db_run(r->st[ADD_COLUMNS], "write to", e);
	}
	return err;
}

static int make(struct store *s, unsigned level, int64_t node, uint64_t slot, struct error *e)
{
	struct rollup *r = s->maintenance->rollup;
	uint64_t ambiguous = 0;
	struct spans_query q = { .node = node, .from = 0, .to = INT64_MAX, .taken = &r->taken, .fn = add_new, .context = r,
				 .ret_ambiguous = &ambiguous };
	int err;

	clear(r);
	err = spans_each(r->spans, node, level, slot, slot, add_before, r, e);
	if (!err)
		err = spans_children(r->spans, &q, level, slot, e);
	// More services than a span can have are left to the windows.
	if (!err && r->any && r->n <= COLUMNS_PER_SPAN) {
		err = drop(r, e);
		if (!err)
			err = pack(r, e);
		if (!err)
			err = write_span(s, r, level, node, slot, e);
	}
	return err;
}

static int done(struct store *s, unsigned level, int64_t node, uint64_t slot, struct error *e)
{
	sqlite3_stmt *st = s->maintenance->rollup->st[DONE];

	sqlite3_bind_int64(st, 1, level);
	sqlite3_bind_int64(st, 2, node);
	sqlite3_bind_int64(st, 3, (int64_t)slot);
	return db_run(st, "write to", e);
}

// What cannot be rolled up, since a window is damaged or the sums are too large, is left to the windows and said: it must
// not hold up all that comes after it.
static int make_or_leave(struct store *s, unsigned level, int64_t node, uint64_t slot, int *ret_left, struct error *e)
{
	int err = db_exec(s->db, "SAVEPOINT rollup", "write to", e);

	if (err)
		return err;
	err = make(s, level, node, slot, e);
	if (err == -EBADMSG || err == -EFBIG) {
		*ret_left = err;
		err = db_exec(s->db, "ROLLBACK TO rollup", "write to", e);
	}
	if (!err)
		err = done(s, level, node, slot, e);
	return err ? err : db_exec(s->db, "RELEASE rollup", "write to", e);
}

// 1 when there was one.
static int next(struct store *s, uint64_t now, int *ret_left, struct error *e)
{
	sqlite3_stmt *st = s->maintenance->rollup->st[NEXT_DUE];
	unsigned level = 0;
	int64_t node = 0;
	uint64_t slot = 0;
	int r;

	sqlite3_bind_int64(st, 1, (int64_t)now);
	r = db_step(st, "read", e);
	if (r > 0) {
		level = (unsigned)sqlite3_column_int64(st, 0);
		node = sqlite3_column_int64(st, 1);
		slot = (uint64_t)sqlite3_column_int64(st, 2);
	}
	sqlite3_reset(st);
	if (r <= 0)
		return r;
	if (level < LEVEL_MINUTE || level >= LEVELS)
		return error_set(e, -EBADMSG, "the store is damaged: there is no roll-up of level %u", level);
	r = make_or_leave(s, level, node, slot, ret_left, e);
	return r ? r : 1;
}

int rollup_step(struct store *s, uint64_t now, struct error *e)
{
	uint64_t until = clock_monotonic() + STEP_NS;
	int r = store_begin(s, e), left = 0, err;

	if (r)
		return r;
	do
		r = next(s, now, &left, e);
	while (r > 0 && !left && clock_monotonic() < until);
	if (r < 0) {
		store_rollback(s);
		return r;
	}
	err = store_commit(s, e);
	return err ? err : left ? left : r;
}
