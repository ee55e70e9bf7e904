// SPDX-License-Identifier: Apache-2.0
#include "collector/store_indexing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/store_records.h"

#define BATCHES_A_READ 256

struct indexing_reader {
	sqlite3 *db;
	sqlite3_stmt *next, *place;
	struct records_reader records;
};

static int run(sqlite3 *db, const char *sql, const int64_t *value, int n, struct error *e)
{
	sqlite3_stmt *st;
	int err = db_prepare(db, sql, &st, e);

	for (int i = 0; i < n && !err; i++)
		sqlite3_bind_int64(st, i + 1, value[i]);
	if (!err)
		err = db_run(st, "write to", e);
	sqlite3_finalize(st);
	return err;
}

static int write_to(struct store *s, const char *sql, const int64_t *value, int n, struct error *e)
{
	int err;

	if (s->options.read_only)
		return error_set(e, -EROFS, "the store was opened for reading");
	pthread_mutex_lock(&s->lock);
	err = run(s->db, sql, value, n, e);
	pthread_mutex_unlock(&s->lock);
	return err;
}

static int read_place(sqlite3_stmt *st, struct indexing_place *ret, struct error *e)
{
	int r = db_step(st, "read", e);

	if (r > 0)
		*ret = (struct indexing_place){ sqlite3_column_int64(st, 0), (uint64_t)sqlite3_column_int64(st, 1) };
	return r < 0 ? r : r ? 0 : error_set(e, -EBADMSG, "the store is damaged: the place of the index is missing");
}

static const char sql_place[] = "SELECT batch, record FROM indexing";

int store_indexing_start(struct store *s, bool active, struct indexing_place *ret, struct error *e)
{
	sqlite3_stmt *st;
	int err = write_to(s, "UPDATE indexing SET active = ?1", &(int64_t){ active }, 1, e);

	if (err)
		return err;
	pthread_mutex_lock(&s->lock);
	err = db_prepare(s->db, sql_place, &st, e);
	if (!err)
		err = read_place(st, ret, e);
	sqlite3_finalize(st);
	pthread_mutex_unlock(&s->lock);
	return err;
}

int store_indexing_mark(struct store *s, char ret[INDEXING_MARK_SIZE], struct error *e)
{
	sqlite3_stmt *st;
	int r = write_to(s, "INSERT OR IGNORE INTO meta(name, value) VALUES ('indexing_mark', randomblob(16))", NULL, 0, e);

	if (r)
		return r;
	pthread_mutex_lock(&s->lock);
	r = db_prepare(s->db, "SELECT lower(hex(value)) FROM meta WHERE name = 'indexing_mark'", &st, e);
	if (!r)
		r = db_step(st, "read", e);
	if (r > 0)
		snprintf(ret, INDEXING_MARK_SIZE, "%s", (const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	pthread_mutex_unlock(&s->lock);
	return r < 0 ? r : r ? 0 : error_set(e, -EBADMSG, "the store is damaged: the mark of its updates is missing");
}

int store_indexing_advance(struct store *s, const struct indexing_place *from, const struct indexing_place *to, uint64_t aside,
			   struct error *e)
{
	const int64_t value[] = { to->batch, (int64_t)to->record, (int64_t)aside, from->batch, (int64_t)from->record };

	return write_to(s, "UPDATE indexing SET batch = ?1, record = ?2, aside = aside + ?3 WHERE batch = ?4 AND record = ?5", value,
			sizeof(value) / sizeof(*value), e);
}

static int counts(sqlite3 *db, struct indexing_counts *ret, struct error *e)
{
	static const char sql[] = "SELECT dropped, aside, (SELECT coalesce(sum(records), 0) FROM requests WHERE id >= i.batch) - "
				  "iif(EXISTS (SELECT 1 FROM requests WHERE id = i.batch), i.record, 0) FROM indexing i";
	sqlite3_stmt *st;
	int r = db_prepare(db, sql, &st, e);

	if (!r)
		r = db_step(st, "read", e);
	if (r > 0) {
		int64_t waiting = sqlite3_column_int64(st, 2);

		ret->dropped = (uint64_t)sqlite3_column_int64(st, 0);
		ret->aside = (uint64_t)sqlite3_column_int64(st, 1);
		ret->waiting = waiting > 0 ? (uint64_t)waiting : 0;
	}
	sqlite3_finalize(st);
	return r < 0 ? r : 0;
}

// The first batch is looked for before anything is locked: what comes meanwhile lies behind it. A node may have been late:
// the batches behind the first one are taken whatever their time.
static int set_back(sqlite3 *db, uint64_t from, struct error *e)
{
	sqlite3_stmt *st;
	int64_t first = 0;
	int r = db_prepare(db, "SELECT min(id) FROM requests WHERE last >= ?1", &st, e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, (int64_t)from);
	r = db_step(st, "read", e);
	if (r > 0)
		first = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	if (r < 0 || !first)
		return r < 0 ? r : 0;
	return run(db, "UPDATE indexing SET batch = ?1, record = 0 WHERE batch >= ?1", &first, 1, e);
}

int store_indexing_again(const char *directory, uint64_t from, uint64_t *ret_waiting, struct error *e)
{
	struct indexing_counts n = { 0 };
	int64_t version = 0;
	sqlite3 *db = NULL;
	int err = store_beside(directory, &db, e);

	if (!err)
		err = db_number(db, "PRAGMA user_version", &version, e);
	if (!err && version != STORE_VERSION)
		err = error_set(e, -EPROTO, "the store is of another version: use the program of its collector, or start a collector of this one on it once");
	if (!err)
		err = set_back(db, from, e);
	if (!err)
		err = counts(db, &n, e);
	sqlite3_close(db);
	if (err)
		return error_prefix(e, err, "%s", directory);
	*ret_waiting = n.waiting;
	return 0;
}

int store_indexing_counts(struct store *s, struct indexing_counts *ret, struct error *e)
{
	sqlite3 *db;
	int err = store_reader(s, &db, e);

	if (err)
		return err;
	*ret = (struct indexing_counts){ 0 };
	err = counts(db, ret, e);
	sqlite3_close(db);
	return err;
}

int indexing_reader_new(struct store *s, struct indexing_reader **ret, struct error *e)
{
	struct indexing_reader *r = calloc(1, sizeof(*r));
	int err = r ? store_reader(s, &r->db, e) : error_set(e, -ENOMEM, "out of memory");

	if (!err)
		err = db_prepare(r->db, "SELECT r.id, n.name, r.size, r.body FROM requests r JOIN nodes n ON n.id = r.node WHERE "
					"r.id >= ?1 ORDER BY r.id LIMIT ?2", &r->next, e);
	if (!err)
		err = db_prepare(r->db, sql_place, &r->place, e);
	if (err)
		indexing_reader_free(r);
	else
		*ret = r;
	return err;
}

int indexing_place(struct indexing_reader *r, struct indexing_place *ret, struct error *e)
{
	int err = read_place(r->place, ret, e);

	sqlite3_reset(r->place);
	return err;
}

void indexing_reader_free(struct indexing_reader *r)
{
	if (!r)
		return;
	sqlite3_finalize(r->next);
	sqlite3_finalize(r->place);
	sqlite3_close(r->db);
	records_free(&r->records);
	free(r);
}

// One row's documents: 1 when fn wants no more.
static int read_row(struct indexing_reader *r, struct indexing_place *place, indexing_fn fn, void *context, struct error *e)
{
	sqlite3_stmt *st = r->next;
	const char *node = (const char *)sqlite3_column_text(st, 1);
	int64_t id = sqlite3_column_int64(st, 0);
	uint64_t skip = id == place->batch ? place->record : 0, at = 0;
	const void *body = sqlite3_column_blob(st, 3), *document;
	size_t size;
	int more = records_open(&r->records, body ? body : "", (size_t)sqlite3_column_bytes(st, 3), (size_t)sqlite3_column_int64(st, 2), e);

	place->batch = id;
	place->record = skip;
	if (more)
		return more;
	while ((more = records_next(&r->records, &document, &size, e)) > 0) {
		if (at++ < skip)
			continue;
		place->record = at;
		if (fn(context, node ? node : "", document, size))
			return 1;
	}
	if (!more)
		*place = (struct indexing_place){ id + 1, 0 };
	return more;
}

int indexing_read(struct indexing_reader *r, struct indexing_place *place, indexing_fn fn, void *context, struct error *e)
{
	int row, more = 0;

	sqlite3_bind_int64(r->next, 1, place->batch);
	sqlite3_bind_int64(r->next, 2, BATCHES_A_READ);
	while (!more && (row = db_step(r->next, "read", e)) > 0)
		more = read_row(r, place, fn, context, e);
	sqlite3_reset(r->next);
	return more < 0 ? more : !more && row < 0 ? row : 0;
}
