// SPDX-License-Identifier: Apache-2.0
#include "collector/store_dict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_db.h"

#define WAYS 4
#define KEEP_HOURS 6 // longer than needed, so that an entry in use is not written for every window

const char *const dict_tables[DICT_KINDS] = { "texts", "mappings", "locations", "stacks", "labels" };

struct known {
	struct hash128 hash;
	uint32_t id, until; // id 0 = free
	uint64_t used;
};

struct cache {
	struct known *known;
	size_t sets; // a power of two
};

struct dict {
	sqlite3 *db;
	struct cache cache[DICT_KINDS];
	sqlite3_stmt *find[DICT_KINDS], *insert[DICT_KINDS], *keep[DICT_KINDS], *collect[DICT_KINDS], *next[DICT_KINDS];
	uint64_t clock;
};

static int prepare(struct dict *d, enum dict_kind k, struct error *e)
{
	const struct {
		sqlite3_stmt **to;
		const char *sql;
	} st[] = {
		{ &d->find[k], "SELECT id, until FROM %s WHERE hash = ?1 AND tell = ?2" },
		{ &d->insert[k], "INSERT INTO %s(hash, tell, until, body) VALUES (?1, ?2, ?3, ?4)" },
		{ &d->keep[k], "UPDATE %s SET until = ?2 WHERE id = ?1" },
		{ &d->collect[k], "DELETE FROM %s WHERE id BETWEEN ?1 AND ?2 AND until < ?3" },
		{ &d->next[k], "SELECT max(id) FROM (SELECT id FROM %s WHERE id >= ?1 ORDER BY id LIMIT ?2)" },
	};
	char sql[160];
	int err = 0;

	for (unsigned i = 0; i < sizeof(st) / sizeof(*st) && !err; i++) {
		snprintf(sql, sizeof(sql), st[i].sql, dict_tables[k]);
		err = db_prepare(d->db, sql, st[i].to, e);
	}
	return err;
}

struct dict *dict_new(sqlite3 *db, struct error *e)
{
	static const size_t sets[DICT_KINDS] = { 16384, 1024, 16384, 65536, 16384 };
	struct dict *d = calloc(1, sizeof(*d));
	int err = d ? 0 : error_set(e, -ENOMEM, "out of memory");

	for (unsigned k = 0; k < DICT_KINDS && !err; k++) {
		d->db = db;
		d->cache[k].sets = sets[k];
		d->cache[k].known = calloc(sets[k] * WAYS, sizeof(struct known));
		err = d->cache[k].known ? prepare(d, k, e) : error_set(e, -ENOMEM, "out of memory");
	}
	if (err) {
		dict_free(d);
		d = NULL;
	}
	return d;
}

void dict_free(struct dict *d)
{
	if (!d)
		return;
	for (unsigned k = 0; k < DICT_KINDS; k++) {
		sqlite3_finalize(d->find[k]);
		sqlite3_finalize(d->insert[k]);
		sqlite3_finalize(d->keep[k]);
		sqlite3_finalize(d->collect[k]);
		sqlite3_finalize(d->next[k]);
		free(d->cache[k].known);
	}
	free(d);
}

void dict_forget(struct dict *d)
{
	for (unsigned k = 0; k < DICT_KINDS; k++)
		memset(d->cache[k].known, 0, d->cache[k].sets * WAYS * sizeof(struct known));
}

static struct known *set_of(struct dict *d, enum dict_kind kind, struct hash128 h)
{
	return d->cache[kind].known + (h.b & (d->cache[kind].sets - 1)) * WAYS;
}

static struct known *find_known(struct dict *d, enum dict_kind kind, struct hash128 h)
{
	struct known *set = set_of(d, kind, h);

	for (unsigned i = 0; i < WAYS; i++)
		if (set[i].id && set[i].hash.a == h.a && set[i].hash.b == h.b)
			return &set[i];
	return NULL;
}

void dict_ask(const struct dict *d, enum dict_kind kind, struct hash128 h)
{
	const struct known *set = d->cache[kind].known + (h.b & (d->cache[kind].sets - 1)) * WAYS;

	__builtin_prefetch(set);
	__builtin_prefetch((const char *)set + 64);
	__builtin_prefetch((const char *)set + 128);
}

static void remember(struct dict *d, enum dict_kind kind, struct hash128 h, uint32_t id, uint32_t until)
{
	struct known *set = set_of(d, kind, h), *to = find_known(d, kind, h);

	for (unsigned i = 0; !to && i < WAYS; i++)
		if (!set[i].id)
			to = &set[i];
	if (!to) {
		to = set;
		for (unsigned i = 1; i < WAYS; i++)
			if (set[i].used < to->used)
				to = &set[i];
	}
	*to = (struct known){ .hash = h, .id = id, .until = until, .used = ++d->clock };
}

bool dict_known(struct dict *d, enum dict_kind kind, struct hash128 h, uint32_t hour, uint32_t *ret_id)
{
	struct known *k = find_known(d, kind, h);

	if (!k || k->until < hour)
		return false;
	k->used = ++d->clock;
	*ret_id = k->id;
	return true;
}

uint32_t dict_until(struct hash128 h, uint32_t hour)
{
	// Spread over hours, so that not all entries are written at once.
	return hour + KEEP_HOURS + (uint32_t)(h.a % KEEP_HOURS);
}

static int insert(struct dict *d, enum dict_kind kind, struct hash128 h, uint32_t until, const void *body, size_t len,
		  uint32_t *ret_id, struct error *e)
{
	sqlite3_stmt *st = d->insert[kind];
	sqlite3_int64 id;
	int err;

	sqlite3_bind_int64(st, 1, (sqlite3_int64)h.a);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)h.b);
	sqlite3_bind_int64(st, 3, until);
	sqlite3_bind_blob64(st, 4, len ? body : "", len, SQLITE_STATIC);
	err = db_run(st, "write to", e);
	if (err)
		return err;
	id = sqlite3_last_insert_rowid(d->db);
	if (id <= 0 || id > UINT32_MAX)
		return error_set(e, -EOVERFLOW, "the store has more than 4 billion %s: begin a new one", dict_tables[kind]);
	*ret_id = (uint32_t)id;
	return 0;
}

int dict_put(struct dict *d, enum dict_kind kind, struct hash128 h, uint32_t hour, const void *body, size_t len,
	     uint32_t *ret_id, struct error *e)
{
	uint32_t until = dict_until(h, hour), id = 0, kept = 0;
	sqlite3_stmt *st = d->find[kind];
	int r;

	sqlite3_bind_int64(st, 1, (sqlite3_int64)h.a);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)h.b);
	r = db_step(st, "read", e);
	if (r > 0) {
		id = (uint32_t)sqlite3_column_int64(st, 0);
		kept = (uint32_t)sqlite3_column_int64(st, 1);
	}
	sqlite3_reset(st);
	if (r < 0)
		return r;
	if (!r) {
		r = insert(d, kind, h, until, body, len, &id, e);
	} else if (kept < hour) {
		sqlite3_bind_int64(d->keep[kind], 1, id);
		sqlite3_bind_int64(d->keep[kind], 2, until);
		r = db_run(d->keep[kind], "write to", e);
	} else {
		r = 0;
		until = kept;
	}
	if (r)
		return r;
	remember(d, kind, h, id, until);
	*ret_id = id;
	return 0;
}

int dict_collect(struct dict *d, enum dict_kind kind, uint32_t hour, unsigned rows, int64_t *position, uint64_t *ret_deleted,
		 struct error *e)
{
	sqlite3_stmt *st = d->next[kind];
	int64_t last;
	int r;

	sqlite3_bind_int64(st, 1, *position);
	sqlite3_bind_int64(st, 2, rows);
	r = db_step(st, "read", e);
	last = r > 0 ? sqlite3_column_int64(st, 0) : 0;
	sqlite3_reset(st);
	if (r < 0)
		return r;
	if (!last) {
		*position = 0;
		return 0;
	}
	st = d->collect[kind];
	sqlite3_bind_int64(st, 1, *position);
	sqlite3_bind_int64(st, 2, last);
	sqlite3_bind_int64(st, 3, hour);
	r = db_run(st, "clean up", e);
	if (r)
		return r;
	*ret_deleted += (uint64_t)sqlite3_changes64(d->db);
	*position = last + 1;
	return 0;
}
