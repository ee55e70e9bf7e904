// SPDX-License-Identifier: Apache-2.0
// What agents had to drop, as ranges of sequence numbers that meet neither each other nor what was stored. A record of a
// gap may name batches that are here: stored, but the agent never heard of it and dropped them later; or back in the spool
// since it was restored from a copy. They are not lost, and a record that stands for such a batch is no duplicate of it.
#include <errno.h>
#include <stdlib.h>

#include "collector/store_internal.h"
#include "collector/store_query.h"

enum {
	FIND_SEEN,
	NEXT_SEEN,
	FIND_GAP,
	NEXT_GAP,
	ADD_GAP,
	DROP_GAP,
	STATEMENTS
};

static const char *const sql[STATEMENTS] = {
	[FIND_SEEN] = "SELECT last FROM seen WHERE agent = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1",
	[NEXT_SEEN] = "SELECT first FROM seen WHERE agent = ?1 AND first > ?2 ORDER BY first LIMIT 1",
	[FIND_GAP] = "SELECT last, first, start, end, bytes FROM gaps WHERE agent = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1",
	[NEXT_GAP] = "SELECT first FROM gaps WHERE agent = ?1 AND first > ?2 ORDER BY first LIMIT 1",
	[ADD_GAP] = "INSERT OR REPLACE INTO gaps(agent, first, last, start, end, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[DROP_GAP] = "DELETE FROM gaps WHERE agent = ?1 AND first = ?2 AND last = ?3",
};

struct gaps {
	sqlite3_stmt *st[STATEMENTS];
};

struct gap {
	int64_t first, last, start, end, bytes;
};

struct gaps *gaps_new(sqlite3 *db, struct error *e)
{
	struct gaps *g = calloc(1, sizeof(*g));
	int err = g ? 0 : error_set(e, -ENOMEM, "out of memory");

	for (unsigned i = 0; i < STATEMENTS && !err; i++)
		err = db_prepare(db, sql[i], &g->st[i], e);
	if (err) {
		gaps_free(g);
		g = NULL;
	}
	return g;
}

void gaps_free(struct gaps *g)
{
	if (!g)
		return;
	for (unsigned i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(g->st[i]);
	free(g);
}

// The first column of the one row, or 0 when there is none.
static int look_up(sqlite3_stmt *st, int64_t agent, int64_t at, int64_t *ret, struct error *e)
{
	int r;

	sqlite3_bind_int64(st, 1, agent);
	sqlite3_bind_int64(st, 2, at);
	r = db_step(st, "read", e);
	*ret = r > 0 ? sqlite3_column_int64(st, 0) : 0;
	sqlite3_reset(st);
	return r < 0 ? r : 0;
}

// Part [first, last] of a gap; its time and bytes by the share of the numbers.
static int add_part(struct gaps *g, int64_t agent, const struct gap *of, int64_t first, int64_t last, struct error *e)
{
	uint64_t begin = (uint64_t)of->first, end = (uint64_t)of->last + 1;
	sqlite3_stmt *st = g->st[ADD_GAP];
	int64_t length = of->end - of->start;

	sqlite3_bind_int64(st, 1, agent);
	sqlite3_bind_int64(st, 2, first);
	sqlite3_bind_int64(st, 3, last);
	sqlite3_bind_int64(st, 4, of->start + adder_share(length, begin, end, begin, (uint64_t)first));
	sqlite3_bind_int64(st, 5, of->start + adder_share(length, begin, end, begin, (uint64_t)last + 1));
	sqlite3_bind_int64(st, 6, adder_share(of->bytes, begin, end, (uint64_t)first, (uint64_t)last + 1));
	return db_run(st, "write to", e);
}

// The last number of the run of known batches that begins at `at`, or at - 1.
static int known_until(struct gaps *g, int64_t agent, int64_t at, int64_t *ret, struct error *e)
{
	int64_t seen, gap = 0;
	int err = look_up(g->st[FIND_SEEN], agent, at, &seen, e);

	if (!err)
		err = look_up(g->st[FIND_GAP], agent, at, &gap, e);
	*ret = seen > gap ? seen : gap;
	if (*ret < at)
		*ret = at - 1;
	return err;
}

// The first known number behind `at`, or the one behind `last`.
static int known_from(struct gaps *g, int64_t agent, int64_t at, int64_t last, int64_t *ret, struct error *e)
{
	int64_t seen, gap = 0;
	int err = look_up(g->st[NEXT_SEEN], agent, at, &seen, e);

	if (!err)
		err = look_up(g->st[NEXT_GAP], agent, at, &gap, e);
	*ret = last + 1;
	if (seen && seen < *ret)
		*ret = seen;
	if (gap && gap < *ret)
		*ret = gap;
	return err;
}

int gaps_add(struct gaps *g, int64_t agent, const struct batch *b, struct entries *entries, struct error *e)
{
	struct gap all = { (int64_t)b->gap_first, (int64_t)b->sequence, (int64_t)b->start, (int64_t)b->end, (int64_t)b->gap_bytes };
	int64_t at = all.first, until;
	bool any = false;
	int err = 0;

	while (!err && at <= all.last) {
		err = known_until(g, agent, at, &until, e);
		if (!err && until >= at) {
			at = until + 1;
			continue;
		}
		if (!err)
			err = known_from(g, agent, at, all.last, &until, e);
		if (!err)
			err = entries_take(entries, e);
		if (!err)
			err = add_part(g, agent, &all, at, until - 1, e);
		any = true;
		at = until;
	}
	return err ? err : any ? 0 : -EEXIST;
}

static int find(struct gaps *g, int64_t agent, int64_t at, struct gap *ret, struct error *e)
{
	sqlite3_stmt *st = g->st[FIND_GAP];
	int r;

	sqlite3_bind_int64(st, 1, agent);
	sqlite3_bind_int64(st, 2, at);
	r = db_step(st, "read", e);
	if (r > 0)
		*ret = (struct gap){ sqlite3_column_int64(st, 1), sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 2),
				     sqlite3_column_int64(st, 3), sqlite3_column_int64(st, 4) };
	sqlite3_reset(st);
	return r;
}

int gaps_found(struct gaps *g, int64_t agent, uint64_t sequence, struct entries *entries, struct error *e)
{
	int64_t at = (int64_t)sequence;
	sqlite3_stmt *st = g->st[DROP_GAP];
	struct gap gap;
	int r = find(g, agent, at, &gap, e);

	if (r <= 0 || gap.last < at)
		return r < 0 ? r : 0;
	sqlite3_bind_int64(st, 1, agent);
	sqlite3_bind_int64(st, 2, gap.first);
	sqlite3_bind_int64(st, 3, gap.last);
	r = db_run(st, "write to", e);
	entries->used += (gap.first < at) + (gap.last > at) - 1;
	if (!r && gap.first < at)
		r = add_part(g, agent, &gap, gap.first, at - 1, e);
	if (!r && gap.last > at)
		r = add_part(g, agent, &gap, at + 1, gap.last, e);
	return r;
}

int gaps_forgot(struct gaps *g, int64_t agent, uint64_t first, uint64_t last, uint64_t start, uint64_t end, struct error *e)
{
	struct gap what = { (int64_t)first, (int64_t)last, (int64_t)start, (int64_t)end, 0 }, before;
	sqlite3_stmt *st = g->st[DROP_GAP];
	int r = find(g, agent, what.first, &before, e), err = 0;
	bool joins = r > 0 && before.last + 1 >= what.first;

	if (r < 0)
		return r;
	if (joins) {
		sqlite3_bind_int64(st, 1, agent);
		sqlite3_bind_int64(st, 2, before.first);
		sqlite3_bind_int64(st, 3, before.last);
		err = db_run(st, "write to", e);
		what.first = before.first;
		what.last = before.last > what.last ? before.last : what.last;
		what.start = before.start < what.start ? before.start : what.start;
		what.end = before.end > what.end ? before.end : what.end;
		what.bytes = before.bytes;
	}
	if (!err)
		err = add_part(g, agent, &what, what.first, what.last, e);
	return err ? err : !joins;
}
