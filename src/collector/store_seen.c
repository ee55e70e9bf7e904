// SPDX-License-Identifier: Apache-2.0
// Nodes, agents (a start of one: its instance), and which of an agent's sequence numbers were received: as ranges, which
// outlive the data, so that a batch is never stored twice.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_internal.h"

enum {
	FIND_NODE,
	COUNT_NODES,
	ADD_NODE,
	ENTRIES,
	LONGER,
	FIND_AGENT,
	ADD_AGENT,
	FIND_RANGE,
	FIND_NEXT,
	ADD_RANGE,
	EXTEND,
	DROP_RANGE,
	STATEMENTS
};

static const char *const sql[STATEMENTS] = {
	[FIND_NODE] = "SELECT id, longest, entries FROM nodes WHERE name = ?1",
	[COUNT_NODES] = "SELECT count(*) FROM nodes",
	[ENTRIES] = "UPDATE nodes SET entries = ?2 WHERE id = ?1",
	[ADD_NODE] = "INSERT INTO nodes(name, longest) VALUES (?1, ?2)",
	[LONGER] = "UPDATE nodes SET longest = ?2 WHERE id = ?1",
	[FIND_AGENT] = "SELECT id FROM agents WHERE node = ?1 AND instance = ?2",
	[ADD_AGENT] = "INSERT INTO agents(node, instance) VALUES (?1, ?2)",
	[FIND_RANGE] = "SELECT first, last FROM seen WHERE agent = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1",
	[FIND_NEXT] = "SELECT last FROM seen WHERE agent = ?1 AND first = ?2",
	[ADD_RANGE] = "INSERT INTO seen(agent, first, last) VALUES (?1, ?2, ?3)",
	[EXTEND] = "UPDATE seen SET last = ?3 WHERE agent = ?1 AND first = ?2",
	[DROP_RANGE] = "DELETE FROM seen WHERE agent = ?1 AND first = ?2",
};

struct seen {
	sqlite3 *db;
	sqlite3_stmt *st[STATEMENTS];
	int64_t max_nodes, max_entries;
};

int entries_take(struct entries *n, struct error *e)
{
	if (n->used >= n->max)
		return error_set(e, -EUSERS, "its starts and gaps take %lld entries of the store, as many as those of a node may: "
					     "does its agent start again and again, or does another use its key?", (long long)n->used);
	n->used++;
	return 0;
}

struct seen *seen_new(sqlite3 *db, const struct store_options *options, struct error *e)
{
	struct seen *n = calloc(1, sizeof(*n));
	int err = n ? 0 : error_set(e, -ENOMEM, "out of memory");

	for (unsigned i = 0; i < STATEMENTS && !err; i++) {
		n->db = db;
		n->max_nodes = options->max_nodes ? options->max_nodes : MAX_NODES;
		n->max_entries = options->max_entries ? options->max_entries : MAX_ENTRIES;
		err = db_prepare(db, sql[i], &n->st[i], e);
	}
	if (err) {
		seen_free(n);
		n = NULL;
	}
	return n;
}

void seen_free(struct seen *n)
{
	if (!n)
		return;
	for (unsigned i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(n->st[i]);
	free(n);
}

static int add(struct seen *n, unsigned statement, int64_t *ret, struct error *e)
{
	int err = db_run(n->st[statement], "write to", e);

	if (!err)
		*ret = sqlite3_last_insert_rowid(n->db);
	return err;
}

static int add_node(struct seen *n, const char *node, uint64_t length, int64_t *ret, struct error *e)
{
	sqlite3_stmt *st = n->st[COUNT_NODES];
	int r = db_step(st, "read", e);
	int64_t nodes = r > 0 ? sqlite3_column_int64(st, 0) : 0;

	sqlite3_reset(st);
	if (r < 0)
		return r;
	if (nodes >= n->max_nodes)
		return error_set(e, -EUSERS, "the store has %lld nodes, as many as it may", (long long)nodes);
	sqlite3_bind_text(n->st[ADD_NODE], 1, node, -1, SQLITE_STATIC);
	sqlite3_bind_int64(n->st[ADD_NODE], 2, (int64_t)length);
	return add(n, ADD_NODE, ret, e);
}

int seen_node(struct seen *n, const char *node, uint64_t length, int64_t *ret, struct entries *ret_entries, struct error *e)
{
	sqlite3_stmt *st = n->st[FIND_NODE];
	int64_t longest = 0;
	int r;

	*ret_entries = (struct entries){ .max = n->max_entries };
	sqlite3_bind_text(st, 1, node, -1, SQLITE_STATIC);
	r = db_step(st, "read", e);
	if (r > 0) {
		*ret = sqlite3_column_int64(st, 0);
		longest = sqlite3_column_int64(st, 1);
		ret_entries->used = ret_entries->before = sqlite3_column_int64(st, 2);
	}
	sqlite3_reset(st);
	if (r < 0)
		return r;
	if (!r)
		return add_node(n, node, length, ret, e);
	if ((int64_t)length <= longest)
		return 0;
	sqlite3_bind_int64(n->st[LONGER], 1, *ret);
	sqlite3_bind_int64(n->st[LONGER], 2, (int64_t)length);
	return db_run(n->st[LONGER], "write to", e);
}

int seen_agent(struct seen *n, int64_t node, const uint8_t instance[16], int64_t *ret, struct entries *entries, struct error *e)
{
	sqlite3_stmt *st = n->st[FIND_AGENT];
	int r;

	sqlite3_bind_int64(st, 1, node);
	sqlite3_bind_blob(st, 2, instance, 16, SQLITE_STATIC);
	r = db_step(st, "read", e);
	if (r > 0)
		*ret = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	if (r)
		return r < 0 ? r : 0;
	r = entries_take(entries, e);
	if (r)
		return r;
	sqlite3_bind_int64(n->st[ADD_AGENT], 1, node);
	sqlite3_bind_blob(n->st[ADD_AGENT], 2, instance, 16, SQLITE_STATIC);
	return add(n, ADD_AGENT, ret, e);
}

static int run3(struct seen *n, unsigned statement, int64_t a, int64_t b, int64_t c, struct error *e)
{
	sqlite3_stmt *st = n->st[statement];

	sqlite3_bind_int64(st, 1, a);
	sqlite3_bind_int64(st, 2, b);
	if (sqlite3_bind_parameter_count(st) > 2)
		sqlite3_bind_int64(st, 3, c);
	return db_run(st, "write to", e);
}

// 1 when there is a range that begins at `first`.
static int next_range(struct seen *n, int64_t agent, int64_t first, int64_t *ret_last, struct error *e)
{
	sqlite3_stmt *st = n->st[FIND_NEXT];
	int r;

	sqlite3_bind_int64(st, 1, agent);
	sqlite3_bind_int64(st, 2, first);
	r = db_step(st, "read", e);
	if (r > 0)
		*ret_last = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return r;
}

// The last range that begins at or before `at`: 1, or 0.
static int range_at(struct seen *n, int64_t agent, int64_t at, int64_t *ret_first, int64_t *ret_last, struct error *e)
{
	sqlite3_stmt *st = n->st[FIND_RANGE];
	int r;

	sqlite3_bind_int64(st, 1, agent);
	sqlite3_bind_int64(st, 2, at);
	r = db_step(st, "read", e);
	if (r > 0) {
		*ret_first = sqlite3_column_int64(st, 0);
		*ret_last = sqlite3_column_int64(st, 1);
	}
	sqlite3_reset(st);
	return r;
}

int seen_has(struct seen *n, int64_t agent, uint64_t sequence, struct error *e)
{
	int64_t first, last = -1;
	int r = range_at(n, agent, (int64_t)sequence, &first, &last, e);

	return r > 0 ? (int64_t)sequence <= last : r;
}

int seen_entries(struct seen *n, int64_t node, const struct entries *entries, struct error *e)
{
	sqlite3_stmt *st = n->st[ENTRIES];

	if (entries->used == entries->before)
		return 0;
	sqlite3_bind_int64(st, 1, node);
	sqlite3_bind_int64(st, 2, entries->used);
	return db_run(st, "write to", e);
}

int seen_add(struct seen *n, int64_t agent, uint64_t sequence, struct entries *entries, struct error *e)
{
	int64_t at = (int64_t)sequence, first = 0, last = -1, next_last = at;
	int r = range_at(n, agent, at, &first, &last, e), err = 0;
	bool joins;

	if (r < 0)
		return r;
	if (r && at <= last)
		return -EEXIST;
	joins = r && last + 1 == at;
	r = next_range(n, agent, at + 1, &next_last, e);
	if (r < 0)
		return r;
	if (!joins && !r)
		err = entries_take(entries, e);
	if (joins && r)
		entries->used--;
	if (r)
		err = run3(n, DROP_RANGE, agent, at + 1, 0, e);
	if (!err)
		err = joins ? run3(n, EXTEND, agent, first, next_last, e) : run3(n, ADD_RANGE, agent, at, next_last, e);
	return err;
}
