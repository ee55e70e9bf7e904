// SPDX-License-Identifier: Apache-2.0
// Is everything there and right, and as small as it can be? Both beside a running collector.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/store_query.h"
#include "collector/store_sources.h"
#include "pprof/wire.h"

struct check {
	sqlite3 *db;
	store_check_fn fn;
	void *context;
	uint64_t found;
	struct unpacker *unpacker;
	struct pprof_builder *builder;
	struct bodies *bodies;
	sqlite3_stmt *columns;
};

static void found(struct check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void found(struct check *c, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	c->found++;
	c->fn(c->context, text);
}

static int check_file(struct check *c, struct error *e)
{
	sqlite3_stmt *st;
	int r = db_prepare(c->db, "PRAGMA integrity_check(100)", &st, e);

	if (r)
		return r;
	while ((r = db_step(st, "read", e)) > 0) {
		const char *text = (const char *)sqlite3_column_text(st, 0);

		if (text && strcmp(text, "ok"))
			found(c, "file: %.200s", text);
	}
	sqlite3_finalize(st);
	if (r == -EBADMSG)
		found(c, "file: it cannot be read to its end");
	return r == -EBADMSG ? 0 : r;
}

static int check_samples(struct check *c, int64_t span, const struct columns *v, struct error *e)
{
	for (size_t i = 0; i < v->n; i++) {
		struct sum s = { .id = { v->stack[i], v->labels[i], 0 }, .value = { 1 } };
		struct error why;
		int err = bodies_sample(c->bodies, &s, &why);

		if (err == -EBADMSG)
			found(c, "span %lld: %.200s", (long long)span, why.text);
		else if (err)
			return error_set(e, err, "%s", why.text);
	}
	return 0;
}

static int check_columns(struct check *c, int64_t span, unsigned services, struct error *e)
{
	sqlite3_stmt *st = c->columns;
	unsigned n = 0;
	int r;

	sqlite3_bind_int64(st, 1, span * COLUMNS_PER_SPAN);
	sqlite3_bind_int64(st, 2, span * COLUMNS_PER_SPAN + COLUMNS_PER_SPAN - 1);
	while ((r = db_step(st, "read", e)) > 0) {
		struct columns v;

		n++;
		r = columns_unpack(c->unpacker, sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1), &v);
		if (r == -EBADMSG)
			found(c, "columns %lld cannot be read", (long long)sqlite3_column_int64(st, 0));
		r = r == -EBADMSG ? 0 : r ? error_set(e, r, "out of memory") : check_samples(c, span, &v, e);
		if (r)
			break;
	}
	sqlite3_reset(st);
	if (!r && n != services)
		found(c, "span %lld has columns of %u services and names %u", (long long)span, n, services);
	return r;
}

static unsigned count_services(struct check *c, int64_t span, const uint8_t *p, size_t len)
{
	const uint8_t *end = p + len;
	uint64_t id;
	unsigned n = 0;

	for (; p && p < end; n++)
		if (wire_get_varint(&p, end, &id) || id > UINT32_MAX) {
			found(c, "span %lld: its services cannot be read", (long long)span);
			break;
		}
	return n;
}

static int check_spans(struct check *c, struct error *e)
{
	sqlite3_stmt *st;
	int r = db_prepare(c->db, "SELECT id, level, start, end, services, notes, sources FROM spans", &st, e);

	if (r)
		return r;
	while ((r = db_step(st, "read", e)) > 0) {
		int64_t id = sqlite3_column_int64(st, 0);
		struct notes notes = { 0 };
		struct sources sources = { 0 };
		struct intervals when = { 0 };

		if (sqlite3_column_int64(st, 2) < 0 || sqlite3_column_int64(st, 3) <= sqlite3_column_int64(st, 2))
			found(c, "span %lld ends before it starts", (long long)id);
		if (notes_unpack(sqlite3_column_blob(st, 5), (size_t)sqlite3_column_bytes(st, 5), &notes, 0))
			found(c, "span %lld: its notes cannot be read", (long long)id);
		if (sqlite3_column_int64(st, 1) &&
		    sources_unpack(sqlite3_column_blob(st, 6), (size_t)sqlite3_column_bytes(st, 6), &sources, &when))
			found(c, "span %lld: what it is made of cannot be read", (long long)id);
		r = check_columns(c, id, count_services(c, id, sqlite3_column_blob(st, 4), (size_t)sqlite3_column_bytes(st, 4)), e);
		notes_free(&notes);
		sources_free(&sources);
		intervals_free(&when);
		if (r)
			break;
	}
	sqlite3_finalize(st);
	if (r == -EBADMSG)
		found(c, "spans: they cannot be read to their end");
	return r == -EBADMSG ? 0 : r;
}

static int check_strays(struct check *c, struct error *e)
{
	int64_t n = 0;
	int err = db_number(c->db, "SELECT count(*) FROM columns c WHERE NOT EXISTS (SELECT 1 FROM spans s WHERE s.id = c.id / 4096)", &n, e);

	if (!err && n)
		found(c, "%lld columns belong to no span", (long long)n);
	if (!err)
		err = db_number(c->db, "SELECT count(*) FROM spans s WHERE level = 0 AND NOT EXISTS (SELECT 1 FROM seen n WHERE "
				       "n.agent = s.agent AND s.sequence BETWEEN n.first AND n.last)", &n, e);
	if (!err && n)
		found(c, "%lld windows are not among the batches seen", (long long)n);
	return err == -EBADMSG ? 0 : err;
}

int store_check(struct store *s, store_check_fn fn, void *context, uint64_t *ret_found, struct error *e)
{
	struct check c = { .fn = fn, .context = context, .unpacker = unpacker_new(), .builder = pprof_builder_new("") };
	int err = c.unpacker && c.builder ? store_reader(s, &c.db, e) : error_set(e, -ENOMEM, "out of memory");

	if (!err)
		err = db_exec(c.db, "BEGIN", "read", e);
	if (!err)
		err = check_file(&c, e);
	if (!err)
		err = bodies_new(c.db, pprof_builder_profile(c.builder), &c.bodies, e);
	if (!err)
		err = db_prepare(c.db, "SELECT id, data FROM columns WHERE id BETWEEN ?1 AND ?2", &c.columns, e);
	if (!err)
		err = check_spans(&c, e);
	if (!err)
		err = check_strays(&c, e);
	bodies_free(c.bodies);
	sqlite3_finalize(c.columns);
	sqlite3_close(c.db);
	unpacker_free(c.unpacker);
	pprof_builder_free(c.builder);
	if (!err)
		*ret_found = c.found;
	return err;
}

// Steps of a few pages, each a short transaction, so that a collector that runs meanwhile hardly waits.
int store_compact(const char *directory, uint64_t *ret_before, uint64_t *ret_after, struct error *e)
{
	int64_t pages, unused = 1, size = 0, before = 0;
	sqlite3 *db = NULL;
	int err = store_beside(directory, &db, e);

	if (!err)
		err = db_number(db, "PRAGMA page_size", &size, e);
	for (bool first = true; !err && unused; first = false) {
		err = db_number(db, "PRAGMA page_count", &pages, e);
		if (!err)
			err = db_number(db, "PRAGMA freelist_count", &unused, e);
		before = first ? pages : before;
		if (!err && unused)
			err = db_exec(db, "PRAGMA incremental_vacuum(256)", "shrink", e);
	}
	if (!err)
		err = db_exec(db, "PRAGMA wal_checkpoint(PASSIVE)", "shrink", e);
	sqlite3_close(db);
	if (err)
		return error_prefix(e, err, "%s", directory);
	*ret_before = (uint64_t)(before * size);
	*ret_after = (uint64_t)(pages * size);
	return 0;
}
