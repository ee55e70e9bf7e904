// SPDX-License-Identifier: Apache-2.0
// Batches in. What can be wrong with a batch is found before anything of it is written.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_ahead.h"
#include "collector/store_internal.h"
#include "collector/store_notes.h"
#include "collector/store_records.h"
#include "collector/store_resolve.h"
#include "common/clock.h"
#include "pprof/wire.h"

enum {
	ADD_SPAN,
	ADD_COLUMNS,
	ADD_PENDING,
	ADD_REQUESTS,
	COUNT_WINDOWS,
	STATEMENTS
};

static const char *const sql[STATEMENTS] = {
	[ADD_SPAN] = "INSERT INTO spans(level, node, slot, start, end, agent, sequence, labels, services, notes, lossy) "
		     "VALUES (0, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
	[COUNT_WINDOWS] = "SELECT count(*) FROM (SELECT 1 FROM spans WHERE level = 0 AND node = ?1 AND slot = ?2 LIMIT ?3)",
	[ADD_COLUMNS] = "INSERT INTO columns(id, data) VALUES (?1, ?2)",
	[ADD_PENDING] = "INSERT OR IGNORE INTO pending(level, node, slot, due) VALUES (?1, ?2, ?3, ?4)",
	[ADD_REQUESTS] = "INSERT INTO requests(node, agent, sequence, start, end, records, first, last, slowest, longest, size, body) "
			 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
};

struct ingest {
	struct seen *seen;
	struct gaps *gaps;
	sqlite3_stmt *st[STATEMENTS];
	struct ahead ahead;
	struct records_packer *records;
	const struct parsed_batch *parsed; // of the batch at hand
	struct notes notes;
	struct buf services, packed_notes, pattern;
	struct idmap labels; // of the profile at hand: id of a set by its index + 1
	uint64_t now;
};

struct ingest *ingest_new(struct store *s, struct error *e)
{
	struct ingest *in = calloc(1, sizeof(*in));
	int err = in ? 0 : error_set(e, -ENOMEM, "out of memory");

	if (!err)
		ahead_init(&in->ahead, &s->secret);
	if (!err && !(in->records = records_packer_new()))
		err = error_set(e, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < STATEMENTS && !err; i++)
		err = db_prepare(s->db, sql[i], &in->st[i], e);
	if (!err) {
		in->seen = seen_new(s->db, &s->options, e);
		in->gaps = in->seen ? gaps_new(s->db, e) : NULL;
		err = in->gaps ? 0 : -ENOMEM;
	}
	if (err) {
		ingest_free(in);
		in = NULL;
	}
	return in;
}

void ingest_free(struct ingest *in)
{
	if (!in)
		return;
	for (unsigned i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(in->st[i]);
	seen_free(in->seen);
	gaps_free(in->gaps);
	ahead_free(&in->ahead);
	records_packer_free(in->records);
	notes_free(&in->notes);
	idmap_free(&in->labels);
	buf_free(&in->services);
	buf_free(&in->packed_notes);
	buf_free(&in->pattern);
	free(in);
}

// The dictionaries are larger than the caches: what some samples ahead will need is asked for.
#define AHEAD_SAMPLES 6

static int add_samples(struct store *s, const struct parsed *r, uint32_t hour, struct error *e)
{
	struct idmap *labels = &s->ingest->labels;
	int err = 0;

	idmap_clear(labels);
	sums_clear(&s->sums);
	for (size_t i = 0; i < r->n_samples && !err; i++) {
		const struct parsed_sample *p = &r->samples[i];
		struct row_id id = { .pid = r->labels[p->labels].pid };
		uint32_t *known = idmap_find(labels, p->labels + 1);

		if (i + AHEAD_SAMPLES < r->n_samples)
			dict_ask(s->dict, DICT_STACK, r->samples[i + AHEAD_SAMPLES].stack);
		err = resolve_stack_row(s, r, p, hour, &id.stack, e);
		if (!err && known)
			id.labels = *known;
		else if (!err)
			err = resolve_labels(s, r, p->labels, hour, &id.labels, e);
		if (!err && !known && idmap_put(labels, p->labels + 1, id.labels))
			err = error_set(e, -ENOMEM, "out of memory");
		if (!err && sums_add(&s->sums, id, p->value))
			err = error_set(e, -ENOMEM, "out of memory");
	}
	return err;
}

static int add_notes(struct store *s, const struct parsed *r, uint32_t hour, struct error *e)
{
	struct ingest *in = s->ingest;
	struct note note;
	int err = 0;

	for (size_t i = 0; i < r->t->n_comments && i < NOTES_MAX && !err; i++) {
		const char *text = raw_text(r->t, r->t->comments[i]);
		size_t len = r->t->strings[r->t->comments[i]].len;

		in->pattern.len = 0;
		if (!buf_reserve(&in->pattern, len + 1))
			return error_set(e, -ENOMEM, "out of memory");
		if (!note_parse(text, (char *)in->pattern.data, &note))
			continue;
		err = resolve_text(s, (char *)in->pattern.data, strlen((char *)in->pattern.data), hour, &note.text, e);
		// Each profile of a batch tells what is true of its node: once.
		if (!err && note.text && notes_add(&in->notes, &note, 1))
			err = error_set(e, -ENOMEM, "out of memory");
	}
	return err;
}

static int add_columns(struct store *s, int64_t id, struct error *e)
{
	sqlite3_stmt *st = s->ingest->st[ADD_COLUMNS];
	const void *data;
	size_t len;
	int err;

	sums_sort(&s->sums);
	err = columns_pack(s->packer, &s->sums, &data, &len);
	if (err)
		return error_set(e, err, "the samples of a window cannot be packed: %s", strerror(-err));
	sqlite3_bind_int64(st, 1, id);
	sqlite3_bind_blob64(st, 2, data, len, SQLITE_STATIC);
	return db_run(st, "write to", e);
}

static int add_services(struct store *s, const struct batch *b, uint32_t hour, struct error *e)
{
	struct ingest *in = s->ingest;
	uint32_t id;
	int err = 0;

	in->services.len = 0;
	for (unsigned i = 0; i < b->n_profiles && !err; i++) {
		uint8_t *o = buf_reserve(&in->services, WIRE_VARINT_MAX);

		if (!o)
			return error_set(e, -ENOMEM, "out of memory");
		err = resolve_text(s, b->profiles[i].service, strlen(b->profiles[i].service), hour, &id, e);
		if (!err)
			in->services.len += (size_t)(wire_put_varint(o, id) - o);
	}
	return err;
}

// A roll-up is made some time after its period, when what was sent in time has come.
static int add_pending(struct store *s, int64_t node, uint64_t start, struct error *e)
{
	struct ingest *in = s->ingest;
	sqlite3_stmt *st = in->st[ADD_PENDING];
	int err = 0;

	for (unsigned level = LEVEL_MINUTE; level < LEVELS && !err; level++) {
		uint64_t slot = start / level_ns(level), end = (slot + 1) * level_ns(level);
		uint64_t due = (end > in->now && end - in->now < level_ns(level) ? end : in->now) + level_ns(LEVEL_MINUTE) / 2;

		sqlite3_bind_int64(st, 1, level);
		sqlite3_bind_int64(st, 2, node);
		sqlite3_bind_int64(st, 3, (int64_t)slot);
		sqlite3_bind_int64(st, 4, (int64_t)due);
		err = db_run(st, "write to", e);
	}
	return err;
}

static int add_window(struct store *s, const struct batch *b, int64_t node, int64_t agent, struct error *e)
{
	struct ingest *in = s->ingest;
	uint32_t hour = (uint32_t)(b->end / HOUR_NS) + 1, labels = 0;
	sqlite3_stmt *st = in->st[ADD_SPAN];
	bool pids = false;
	int64_t span;
	int err = resolve_batch_labels(s, b->labels, b->n_labels, hour, &labels, e);

	notes_clear(&in->notes);
	in->packed_notes.len = 0;
	for (unsigned i = 0; i < in->parsed->n; i++)
		for (uint32_t k = 0; k < in->parsed->parsed[i].sets.n; k++)
			pids |= in->parsed->parsed[i].labels[k].pid != 0;
	for (unsigned i = 0; i < in->parsed->n && !err; i++)
		err = add_notes(s, &in->parsed->parsed[i], hour, e);
	if (!err)
		err = add_services(s, b, hour, e);
	if (!err && notes_pack(&in->notes, &in->packed_notes))
		err = error_set(e, -ENOMEM, "out of memory");
	if (err)
		return err;
	sqlite3_bind_int64(st, 1, node);
	sqlite3_bind_int64(st, 2, (int64_t)(b->start / level_ns(LEVEL_MINUTE)));
	sqlite3_bind_int64(st, 3, (int64_t)b->start);
	sqlite3_bind_int64(st, 4, (int64_t)b->end);
	sqlite3_bind_int64(st, 5, agent);
	sqlite3_bind_int64(st, 6, (int64_t)b->sequence);
	sqlite3_bind_int64(st, 7, labels);
	sqlite3_bind_blob64(st, 8, in->services.len ? (void *)in->services.data : "", in->services.len, SQLITE_STATIC);
	sqlite3_bind_blob64(st, 9, in->packed_notes.len ? (void *)in->packed_notes.data : "", in->packed_notes.len, SQLITE_STATIC);
	sqlite3_bind_int64(st, 10, pids);
	err = db_run(st, "write to", e);
	span = sqlite3_last_insert_rowid(s->db);
	for (unsigned i = 0; i < in->parsed->n && !err; i++) {
		err = add_samples(s, &in->parsed->parsed[i], hour, e);
		if (!err)
			err = add_columns(s, span * COLUMNS_PER_SPAN + i, e);
	}
	return err ? err : add_pending(s, node, b->start, e);
}

static int add_requests(struct store *s, const struct batch *b, int64_t node, int64_t agent, struct error *e)
{
	sqlite3_stmt *st = s->ingest->st[ADD_REQUESTS];
	struct packed_records row;

	if (records_pack(s->ingest->records, b, &row))
		return error_set(e, -ENOMEM, "out of memory");
	sqlite3_bind_int64(st, 1, node);
	sqlite3_bind_int64(st, 2, agent);
	sqlite3_bind_int64(st, 3, (int64_t)b->sequence);
	sqlite3_bind_int64(st, 4, (int64_t)b->start);
	sqlite3_bind_int64(st, 5, (int64_t)b->end);
	sqlite3_bind_int64(st, 6, b->n_requests);
	sqlite3_bind_int64(st, 7, (int64_t)row.first);
	sqlite3_bind_int64(st, 8, (int64_t)row.last);
	sqlite3_bind_double(st, 9, row.slowest);
	sqlite3_bind_double(st, 10, row.longest);
	sqlite3_bind_int64(st, 11, (int64_t)row.size);
	sqlite3_bind_blob64(st, 12, row.body, row.body_size, SQLITE_STATIC);
	return db_run(st, "write to", e);
}

// All windows of a minute are looked at when it is rolled up or asked for.
static int check_minute(struct store *s, const struct batch *b, int64_t node, int64_t agent, struct error *e)
{
	unsigned max = s->options.max_windows ? s->options.max_windows : MAX_WINDOWS;
	sqlite3_stmt *st = s->ingest->st[COUNT_WINDOWS];
	int64_t n;
	int r;

	if (b->kind != BATCH_WINDOW)
		return 0;
	sqlite3_bind_int64(st, 1, node);
	sqlite3_bind_int64(st, 2, (int64_t)(b->start / level_ns(LEVEL_MINUTE)));
	sqlite3_bind_int64(st, 3, max);
	r = db_step(st, "read", e);
	n = r > 0 ? sqlite3_column_int64(st, 0) : 0;
	sqlite3_reset(st);
	if (r < 0 || n < max)
		return r < 0 ? r : 0;
	r = seen_has(s->ingest->seen, agent, b->sequence, e);
	return r < 0 ? r : r ? -EEXIST : error_set(e, -EUSERS, "this minute of its node has %u windows already, as many as it may", max);
}

static int add_data(struct store *s, const struct batch *b, int64_t node, int64_t agent, struct entries *entries, struct error *e)
{
	int err = check_minute(s, b, node, agent, e);

	if (!err)
		err = seen_add(s->ingest->seen, agent, b->sequence, entries, e);
	if (!err)
		err = gaps_found(s->ingest->gaps, agent, b->sequence, entries, e);
	if (err)
		return err;
	return b->kind == BATCH_WINDOW ? add_window(s, b, node, agent, e) : add_requests(s, b, node, agent, e);
}

// *ret: 0 stored, -EEXIST, -EUSERS. Other failures are those of the whole transaction.
static int add_batch(struct store *s, const struct batch *b, int *ret, struct error *e)
{
	struct seen *seen = s->ingest->seen;
	struct entries entries = { 0 };
	int64_t node = 0, agent;
	int err = seen_node(seen, b->node, b->kind == BATCH_WINDOW ? b->end - b->start : 0, &node, &entries, e);

	if (!err)
		err = seen_agent(seen, node, b->instance, &agent, &entries, e);
	if (!err)
		err = b->kind == BATCH_GAP ? gaps_add(s->ingest->gaps, agent, b, &entries, e) :
					     add_data(s, b, node, agent, &entries, e);
	*ret = err == -EEXIST || err == -EUSERS ? err : 0;
	if (!err || *ret)
		err = seen_entries(seen, node, &entries, *ret ? NULL : e);
	return err;
}

static int put_all(struct store *s, const struct batch *const *batches, unsigned n, int *results, struct error *const *whys,
		   struct error *e)
{
	int err = 0;

	s->ingest->now = clock_realtime();
	ahead_start(&s->ingest->ahead, batches, n);
	for (unsigned i = 0; i < n && !err; i++) {
		const struct parsed_batch *p = s->ingest->parsed = ahead_next(&s->ingest->ahead, i);
		struct error why = p->why;

		if (p->err == -ENOMEM)
			err = error_set(e, p->err, "out of memory");
		else if (p->err)
			results[i] = p->err == -EFBIG ? p->err : -EBADMSG;
		else
			err = add_batch(s, batches[i], &results[i], &why);
		if (err && e && !p->err)
			*e = why;
		else if (!err && whys && results[i] && results[i] != -EEXIST)
			*whys[i] = why;
		ahead_release(&s->ingest->ahead, i);
	}
	ahead_stop(&s->ingest->ahead);
	return err;
}

int store_put_why(struct store *s, const struct batch *const *batches, unsigned n, int *results, struct error *const *whys,
		  struct error *e)
{
	int err;

	if (s->options.read_only)
		return error_set(e, -EROFS, "the store was opened for reading");
	pthread_mutex_lock(&s->lock);
	// Work in the background uses a lighter mode: what is acknowledged never depends on that it was left.
	err = db_exec(s->db, "PRAGMA synchronous = FULL", "write to", e);
	if (!err)
		err = store_begin(s, e);
	if (!err) {
		err = put_all(s, batches, n, results, whys, e);
		if (err)
			store_rollback(s);
		else
			err = store_commit(s, e);
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

int store_put(struct store *s, const struct batch *const *batches, unsigned n, int *results, struct error *e)
{
	return store_put_why(s, batches, n, results, NULL, e);
}
