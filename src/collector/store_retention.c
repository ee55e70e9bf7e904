// SPDX-License-Identifier: Apache-2.0
// What is too old goes; when the store is larger than it may be, the oldest windows go first, then the finest roll-ups of
// them. Then what no span refers to any more, and the pages that became free.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_maintenance.h"
#include "collector/store_sources.h"
#include "common/clock.h"

#define SPANS_A_STEP 64
#define ROWS_A_STEP 4000
#define COLLECT_EVERY_NS HOUR_NS
#define VACUUM_PAGES 64
#define LOG_BYTES (32ull << 20)

enum {
	NODES,
	OLD_SPANS,
	DROP_SPAN,
	DROP_COLUMNS,
	DROP_PENDING,
	DROP_GAPS,
	DROP_REQUESTS,
	OLDEST,
	OLDEST_REQUEST,
	RECENT,
	LOST,
	GAPS_GONE,
	STATEMENTS
};

static const char *const sql[STATEMENTS] = {
	[NODES] = "SELECT id FROM nodes WHERE id > ?1 ORDER BY id LIMIT 1",
	// ?5: also what no roll-up has yet.
	[OLD_SPANS] = "SELECT id FROM spans s WHERE level = ?1 AND node = ?2 AND slot < ?3 AND (?5 OR NOT EXISTS "
		      "(SELECT 1 FROM pending p WHERE p.node = s.node AND p.level > s.level AND p.slot = s.start / CASE p.level "
		      "WHEN 1 THEN 60000000000 WHEN 2 THEN 600000000000 ELSE 3600000000000 END)) ORDER BY slot LIMIT ?4",
	[DROP_SPAN] = "DELETE FROM spans WHERE id = ?1",
	[DROP_COLUMNS] = "DELETE FROM columns WHERE id BETWEEN ?1 AND ?2",
	[DROP_PENDING] = "DELETE FROM pending WHERE level = ?1 AND node = ?2 AND slot < ?3",
	[DROP_GAPS] = "DELETE FROM gaps WHERE end < ?1",
	[DROP_REQUESTS] = "DELETE FROM requests WHERE id IN (SELECT id FROM requests WHERE node = ?1 AND start < ?2 LIMIT ?3)",
	[OLDEST] = "SELECT min((SELECT min(slot) FROM spans WHERE level = ?1 AND node = n.id)) FROM nodes n",
	// Those that the next level has, or (?5) does not have.
	[RECENT] = "SELECT id, start, end, agent, sequence, sources FROM spans s WHERE level = ?1 AND node = ?2 AND slot <= ?3 AND "
		   "?5 = (level = 3 OR EXISTS (SELECT 1 FROM pending p WHERE p.node = s.node AND p.level = s.level + 1 AND p.slot = "
		   "s.start / CASE s.level WHEN 0 THEN 60000000000 WHEN 1 THEN 600000000000 ELSE 3600000000000 END)) "
		   "ORDER BY slot, start LIMIT ?4",
	[LOST] = "UPDATE nodes SET entries = entries + ?2 WHERE id = ?1",
	[GAPS_GONE] = "UPDATE nodes SET entries = max(0, entries - (SELECT count(*) FROM gaps g JOIN agents a ON a.id = g.agent "
		      "WHERE g.end < ?1 AND a.node = nodes.id)) WHERE id IN "
		      "(SELECT a.node FROM gaps g JOIN agents a ON a.id = g.agent WHERE g.end < ?1)",
	[OLDEST_REQUEST] = "SELECT min((SELECT min(start) FROM requests WHERE node = n.id)) FROM nodes n",
};

struct retention {
	sqlite3_stmt *st[STATEMENTS];
	struct gaps *gaps;
	// Where the sweep by age is: node and level.
	int64_t node;
	unsigned level;
	uint64_t swept, collected; // when they were last done, ns since the epoch
	unsigned kind;		   // of the dictionary that is being collected
	int64_t position;
	bool collecting, vacuuming;
};

int retention_new(struct store *s, struct retention **ret, struct error *e)
{
	struct retention *r = calloc(1, sizeof(*r));
	int err = r ? 0 : error_set(e, -ENOMEM, "out of memory");

	for (unsigned i = 0; i < STATEMENTS && !err; i++)
		err = db_prepare(s->db, sql[i], &r->st[i], e);
	if (!err) {
		r->gaps = gaps_new(s->db, e);
		err = r->gaps ? 0 : -ENOMEM;
	}
	if (err)
		retention_free(r);
	else
		*ret = r;
	return err;
}

void retention_free(struct retention *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(r->st[i]);
	gaps_free(r->gaps);
	free(r);
}

// Slots of windows are minutes too.
static uint64_t slot_ns(unsigned level)
{
	return level_ns(level == LEVEL_WINDOW ? LEVEL_MINUTE : level);
}

static int drop_span(struct retention *r, int64_t id, struct error *e)
{
	int err;

	sqlite3_bind_int64(r->st[DROP_SPAN], 1, id);
	err = db_run(r->st[DROP_SPAN], "clean up", e);
	if (err)
		return err;
	sqlite3_bind_int64(r->st[DROP_COLUMNS], 1, id * COLUMNS_PER_SPAN);
	sqlite3_bind_int64(r->st[DROP_COLUMNS], 2, id * COLUMNS_PER_SPAN + COLUMNS_PER_SPAN - 1);
	return db_run(r->st[DROP_COLUMNS], "clean up", e);
}

// Spans of a node before a slot; *ret_n of them were deleted.
static int drop_spans(struct retention *r, unsigned level, int64_t node, uint64_t slot, bool all, unsigned *ret_n, struct error *e)
{
	sqlite3_stmt *st = r->st[OLD_SPANS];
	int64_t ids[SPANS_A_STEP];
	unsigned n = 0;
	int err;

	sqlite3_bind_int64(st, 1, level);
	sqlite3_bind_int64(st, 2, node);
	sqlite3_bind_int64(st, 3, (int64_t)slot);
	sqlite3_bind_int64(st, 4, SPANS_A_STEP);
	sqlite3_bind_int64(st, 5, all);
	while ((err = db_step(st, "read", e)) > 0 && n < SPANS_A_STEP)
		ids[n++] = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	for (unsigned i = 0; i < n && err >= 0; i++)
		err = drop_span(r, ids[i], e);
	*ret_n += n;
	return err < 0 ? err : 0;
}

static int run2(sqlite3_stmt *st, int64_t a, int64_t b, int64_t c, struct error *e)
{
	sqlite3_bind_int64(st, 1, a);
	sqlite3_bind_int64(st, 2, b);
	sqlite3_bind_int64(st, 3, c);
	return db_run(st, "clean up", e);
}

// The next node behind r->node: 1, or 0 behind the last.
static int next_node(struct retention *r, struct error *e)
{
	sqlite3_stmt *st = r->st[NODES];
	int n;

	sqlite3_bind_int64(st, 1, r->node);
	n = db_step(st, "read", e);
	r->node = n > 0 ? sqlite3_column_int64(st, 0) : 0;
	sqlite3_reset(st);
	return n;
}

// Of one node. Whole periods of a level go at once.
static int sweep_node(struct store *s, struct retention *r, uint64_t before, unsigned *ret_n, struct error *e)
{
	int err = 0;

	for (unsigned level = 0; level < LEVELS && !err; level++) {
		uint64_t slot = before / slot_ns(level);

		err = drop_spans(r, level, r->node, slot, true, ret_n, e);
		if (!err && level)
			err = run2(r->st[DROP_PENDING], level, r->node, (int64_t)slot, e);
	}
	return err ? err : run2(r->st[DROP_REQUESTS], r->node, (int64_t)before, SPANS_A_STEP, e);
}

// By age, a node after the other.
static int sweep(struct store *s, uint64_t now, struct error *e)
{
	struct retention *r = s->maintenance->retention;
	uint64_t until = clock_monotonic() + STEP_NS, before;
	unsigned n;
	int more = 1, err = 0;

	if (!s->options.max_age_ns || now < s->options.max_age_ns || (!r->node && now < r->swept + level_ns(LEVEL_MINUTE)))
		return 0;
	before = now - s->options.max_age_ns;
	while (!err && more > 0 && clock_monotonic() < until) {
		if (!r->node)
			more = next_node(r, e);
		n = 0;
		if (more > 0)
			err = sweep_node(s, r, before, &n, e);
		// A node with more than a step's worth stays.
		if (!err && more > 0 && n < SPANS_A_STEP)
			more = next_node(r, e);
	}
	if (err || more < 0)
		return err ? err : more;
	if (more)
		return 1;
	r->swept = now;
	sqlite3_bind_int64(r->st[GAPS_GONE], 1, (int64_t)before);
	err = db_run(r->st[GAPS_GONE], "clean up", e);
	if (err)
		return err;
	sqlite3_bind_int64(r->st[DROP_GAPS], 1, (int64_t)before);
	return db_run(r->st[DROP_GAPS], "clean up", e);
}

static int pragma(struct store *s, const char *text, int64_t *ret, struct error *e)
{
	return db_number(s->db, text, ret, e);
}

static int used_bytes(struct store *s, uint64_t *ret, struct error *e)
{
	int64_t pages, unused, size;
	int err = pragma(s, "PRAGMA page_count", &pages, e);

	if (!err)
		err = pragma(s, "PRAGMA freelist_count", &unused, e);
	if (!err)
		err = pragma(s, "PRAGMA page_size", &size, e);
	if (!err)
		*ret = (uint64_t)((pages - unused) * size);
	return err;
}

// Room for the log beside the database, which grows by what is deleted too.
static uint64_t limit(uint64_t max_size)
{
	return max_size - (max_size / 16 < LOG_BYTES ? max_size / 16 : LOG_BYTES);
}

static int oldest(struct retention *r, unsigned level, int64_t *ret, struct error *e)
{
	sqlite3_stmt *st = r->st[OLDEST];
	int n;

	sqlite3_bind_int64(st, 1, level);
	n = db_step(st, "read", e);
	*ret = n > 0 && sqlite3_column_type(st, 0) != SQLITE_NULL ? sqlite3_column_int64(st, 0) : -1;
	sqlite3_reset(st);
	return n < 0 ? n : 0;
}

// The oldest hour of the finest level that has one, of all nodes.
static int drop_hour(struct store *s, unsigned level, uint64_t now, unsigned *ret_n, struct error *e)
{
	struct retention *r = s->maintenance->retention;
	uint64_t per_hour = HOUR_NS / slot_ns(level);
	int64_t slot;
	int err = oldest(r, level, &slot, e), more;

	// The last hours stay for as long as anything older is there.
	if (err || slot < 0 || (uint64_t)slot / per_hour + 2 > now / HOUR_NS)
		return err;
	r->node = 0;
	while (!err && *ret_n < SPANS_A_STEP && (more = next_node(r, e)) > 0)
		err = drop_spans(r, level, r->node, ((uint64_t)slot / per_hour + 1) * per_hour, level == LEVEL_HOUR, ret_n, e);
	r->node = 0;
	return err;
}

// *ret: -1 = there is none. One may begin at 0, when its node's clock was not set yet.
static int oldest_request(struct retention *r, int64_t *ret, struct error *e)
{
	sqlite3_stmt *st = r->st[OLDEST_REQUEST];
	int n = db_step(st, "read", e);

	*ret = n > 0 && sqlite3_column_type(st, 0) != SQLITE_NULL ? sqlite3_column_int64(st, 0) : -1;
	sqlite3_reset(st);
	return n < 0 ? n : 0;
}

static int drop_requests(struct store *s, unsigned *ret_n, struct error *e)
{
	struct retention *r = s->maintenance->retention;
	int64_t start;
	int err = oldest_request(r, &start, e), more;

	if (err || start < 0)
		return err;
	r->node = 0;
	err = 0;
	while (!err && (more = next_node(r, e)) > 0) {
		err = run2(r->st[DROP_REQUESTS], r->node, start < INT64_MAX - (int64_t)HOUR_NS ? start + (int64_t)HOUR_NS : INT64_MAX,
			   SPANS_A_STEP, e);
		*ret_n += (unsigned)sqlite3_changes(s->db);
	}
	r->node = 0;
	return err;
}

// A span of which nothing coarser is there.
struct last_span {
	int64_t id, agent;
	uint64_t sequence, start, end;
	struct sources sources; // of a roll-up
};

static int read_last(sqlite3_stmt *st, unsigned level, struct last_span *to, struct error *e)
{
	struct intervals when = { 0 };
	int err = 0;

	*to = (struct last_span){ .id = sqlite3_column_int64(st, 0), .start = (uint64_t)sqlite3_column_int64(st, 1),
				  .end = (uint64_t)sqlite3_column_int64(st, 2), .agent = sqlite3_column_int64(st, 3),
				  .sequence = (uint64_t)sqlite3_column_int64(st, 4) };
	if (level)
		err = sources_unpack(sqlite3_column_blob(st, 5), (size_t)sqlite3_column_bytes(st, 5), &to->sources, &when);
	else
		err = sources_append(&to->sources, (struct source){ to->agent, to->sequence, to->sequence });
	intervals_free(&when);
	// What is damaged is dropped all the same, and nobody can say what was in it.
	return err == -ENOMEM ? error_set(e, err, "out of memory") : 0;
}

static int remember_lost(struct retention *r, int64_t node, const struct last_span *l, struct error *e)
{
	int64_t added = 0;
	int n = 0;

	for (size_t i = 0; i < l->sources.n && n >= 0; i++) {
		const struct source *w = &l->sources.source[i];

		n = gaps_forgot(r->gaps, w->agent, w->first, w->last, l->start, l->end, e);
		added += n > 0;
	}
	if (n < 0 || !added)
		return n < 0 ? n : 0;
	sqlite3_bind_int64(r->st[LOST], 1, node);
	sqlite3_bind_int64(r->st[LOST], 2, added);
	return db_run(r->st[LOST], "write to", e);
}

// Spans of a node up to a slot that the next level has, or, with `lost`, that it does not have: these are remembered as gaps.
static int drop_recent_of(struct retention *r, unsigned level, uint64_t slot, bool lost, unsigned *ret_n, struct error *e)
{
	sqlite3_stmt *st = r->st[RECENT];
	struct last_span last[SPANS_A_STEP];
	unsigned n = 0;
	int err;

	sqlite3_bind_int64(st, 1, level);
	sqlite3_bind_int64(st, 2, r->node);
	sqlite3_bind_int64(st, 3, (int64_t)slot);
	sqlite3_bind_int64(st, 4, SPANS_A_STEP);
	sqlite3_bind_int64(st, 5, lost);
	while ((err = db_step(st, "read", e)) > 0 && n < SPANS_A_STEP) {
		err = read_last(st, level, &last[n++], e);
		if (err)
			break;
	}
	sqlite3_reset(st);
	for (unsigned i = 0; i < n; i++) {
		if (err >= 0 && lost)
			err = remember_lost(r, r->node, &last[i], e);
		if (err >= 0)
			err = drop_span(r, last[i].id, e);
		sources_free(&last[i].sources);
	}
	*ret_n += n;
	return err < 0 ? err : 0;
}

// The oldest slot of a level, of all nodes.
static int drop_recent(struct store *s, unsigned level, bool lost, unsigned *ret_n, struct error *e)
{
	struct retention *r = s->maintenance->retention;
	int64_t slot;
	int err = oldest(r, level, &slot, e), more = 0;

	if (err || slot < 0)
		return err;
	r->node = 0;
	while (!err && *ret_n < SPANS_A_STEP && (more = next_node(r, e)) > 0)
		err = drop_recent_of(r, level, (uint64_t)slot, lost, ret_n, e);
	r->node = 0;
	return err ? err : more < 0 ? more : 0;
}

// Nothing but the last hours is left and it is still too much: the oldest of them go, and what goes with them for ever is
// remembered.
static int drop_last_hours(struct store *s, unsigned *ret_n, struct error *e)
{
	int err = 0;

	for (unsigned lost = 0; lost < 2; lost++)
		for (unsigned level = 0; level < LEVELS && !err && !*ret_n; level++)
			err = drop_recent(s, level, lost, ret_n, e);
	return err;
}

// Requests that go into no index for an hour must not push out the profiles of that hour.
static int drop_older_requests(struct store *s, unsigned *ret_n, struct error *e)
{
	struct retention *r = s->maintenance->retention;
	int64_t slot, start;
	int err = oldest(r, LEVEL_WINDOW, &slot, e);

	if (!err)
		err = oldest_request(r, &start, e);
	if (err || start < 0 || (slot >= 0 && start > slot * (int64_t)slot_ns(LEVEL_WINDOW)))
		return err;
	return drop_requests(s, ret_n, e);
}

static int shrink(struct store *s, uint64_t now, struct error *e)
{
	uint64_t used;
	unsigned n = 0;
	int err;

	if (!s->options.max_size || s->maintenance->retention->node)
		return 0;
	err = used_bytes(s, &used, e);
	if (err || used <= limit(s->options.max_size))
		return err;
	err = drop_older_requests(s, &n, e);
	for (unsigned level = 0; level < LEVELS && !err && !n; level++)
		err = drop_hour(s, level, now, &n, e);
	if (!err && !n)
		err = drop_requests(s, &n, e);
	if (!err && !n)
		err = drop_last_hours(s, &n, e);
	return err ? err : n != 0;
}

int retention_step(struct store *s, uint64_t now, struct error *e)
{
	int r = store_begin(s, e), err;

	if (r)
		return r;
	r = sweep(s, now, e);
	if (!r)
		r = shrink(s, now, e);
	if (r < 0) {
		store_rollback(s);
		return r;
	}
	err = store_commit(s, e);
	return err ? err : r;
}

// The hour before which nothing is needed.
static int oldest_hour(struct store *s, uint64_t now, uint32_t *ret, struct error *e)
{
	uint64_t hour = now / HOUR_NS;
	int64_t slot;
	int err = 0;

	for (unsigned level = 0; level < LEVELS && !err; level++) {
		err = oldest(s->maintenance->retention, level, &slot, e);
		if (!err && slot >= 0 && (uint64_t)slot * slot_ns(level) / HOUR_NS < hour)
			hour = (uint64_t)slot * slot_ns(level) / HOUR_NS;
	}
	*ret = (uint32_t)hour;
	return err;
}

static int collect_some(struct store *s, uint64_t now, uint64_t *ret_deleted, struct error *e)
{
	struct retention *r = s->maintenance->retention;
	uint32_t hour;
	int err = oldest_hour(s, now, &hour, e);

	if (err)
		return err;
	err = dict_collect(s->dict, r->kind, hour, ROWS_A_STEP, &r->position, ret_deleted, e);
	if (err || r->position)
		return err ? err : 1;
	r->kind = (r->kind + 1) % DICT_KINDS;
	r->collecting = r->kind != 0;
	return r->collecting;
}

int collect_step(struct store *s, uint64_t now, struct error *e)
{
	struct retention *r = s->maintenance->retention;
	uint64_t deleted = 0;
	int more, err;

	if (!r->collecting && now < r->collected + COLLECT_EVERY_NS)
		return 0;
	if (!r->collecting)
		r->collected = now;
	r->collecting = true;
	err = store_begin(s, e);
	if (err)
		return err;
	more = collect_some(s, now, &deleted, e);
	if (more < 0) {
		store_rollback(s);
		return more;
	}
	err = store_commit(s, e);
	// What is known in memory may be gone.
	if (deleted)
		dict_forget(s->dict);
	return err ? err : more;
}

// Gives pages back when an eighth of the file is free, until a sixteenth is.
int vacuum_step(struct store *s, uint64_t now, struct error *e)
{
	struct retention *r = s->maintenance->retention;
	int64_t pages, unused;
	char text[64];
	int err = pragma(s, "PRAGMA page_count", &pages, e);

	if (!err)
		err = pragma(s, "PRAGMA freelist_count", &unused, e);
	if (err)
		return err;
	(void)now;
	r->vacuuming = unused > 2 * VACUUM_PAGES && unused > pages / (r->vacuuming ? 16 : 8);
	if (!r->vacuuming)
		return 0;
	snprintf(text, sizeof(text), "PRAGMA incremental_vacuum(%d)", VACUUM_PAGES);
	err = db_exec(s->db, text, "shrink", e);
	return err ? err : 1;
}
