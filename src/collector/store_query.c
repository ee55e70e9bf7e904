// SPDX-License-Identifier: Apache-2.0
// One merged profile of any window over any nodes of one or several stores.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collector/store_query.h"
#include "pprof/decode.h"

static int no_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "out of memory");
}

struct query_node *query_node(struct query *q, const char *name)
{
	struct query_node *n;

	for (size_t i = 0; q->n_stores > 1 && i < q->n_nodes; i++)
		if (!strcmp(q->node[i]->name, name))
			return q->node[i];
	n = calloc(1, sizeof(*n));
	if (!n || memory_grow(NULL, &q->node, &q->nodes_cap, q->n_nodes + 1, sizeof(*q->node))) {
		free(n);
		return NULL;
	}
	snprintf(n->name, sizeof(n->name), "%s", name);
	q->node[q->n_nodes++] = n;
	return n;
}

int64_t query_agent_number(void *query, int64_t agent)
{
	struct query *q = query;
	uint8_t key[BATCH_NODE_MAX + 1 + 16] = { 0 };
	uint32_t *found = agent > 0 && agent < UINT32_MAX ? idmap_find(&q->st.agents, (uint32_t)agent) : NULL, id = 0;
	sqlite3_stmt *st = q->st.instance;

	if (found)
		return *found;
	sqlite3_bind_int64(st, 1, agent);
	memcpy(key, q->at->name, sizeof(q->at->name));
	if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_bytes(st, 0) == 16)
		memcpy(key + BATCH_NODE_MAX + 1, sqlite3_column_blob(st, 0), 16);
	sqlite3_reset(st);
	if (intern_put(&q->instances, key, sizeof(key), &id, NULL) || idmap_put(&q->st.agents, (uint32_t)agent, id))
		q->error = -ENOMEM;
	return id;
}

static int find_service(struct query *q, struct store *s, struct error *e)
{
	struct hash128 h = hash128_start(&s->secret, DICT_TEXT);
	sqlite3_stmt *st;
	int r;

	if (!q->q->service)
		return 0;
	hash128_add_bytes(&h, &s->secret, q->q->service, strlen(q->q->service));
	h = hash128_end(h, &s->secret);
	r = db_prepare(q->st.db, "SELECT id FROM texts WHERE hash = ?1 AND tell = ?2", &st, e);
	if (r)
		return r;
	sqlite3_bind_int64(st, 1, (int64_t)h.a);
	sqlite3_bind_int64(st, 2, (int64_t)h.b);
	r = db_step(st, "read", e);
	q->st.no_service = r == 0;
	if (r > 0)
		q->st.service = (uint32_t)sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return r < 0 ? r : 0;
}

int query_open(struct query *q, struct store *s, struct error *e)
{
	int err = store_reader(s, &q->st.db, e);

	if (!err)
		watch_db(&q->watch, q->st.db);
	if (!err)
		err = db_exec(q->st.db, "BEGIN", "read", e);
	if (!err)
		err = spans_new(q->st.db, &q->st.spans, e);
	if (!err)
		err = bodies_new(q->st.db, q->p, &q->st.bodies, e);
	if (!err)
		err = db_prepare(q->st.db, "SELECT id, data FROM columns WHERE id BETWEEN ?1 AND ?2", &q->st.columns, e);
	if (!err)
		err = db_prepare(q->st.db, "SELECT instance FROM agents WHERE id = ?1", &q->st.instance, e);
	return err ? err : find_service(q, s, e);
}

void query_close(struct query_store *st)
{
	spans_free(st->spans);
	bodies_free(st->bodies);
	sqlite3_finalize(st->columns);
	sqlite3_finalize(st->instance);
	adder_free(&st->adder);
	idmap_free(&st->matches);
	idmap_free(&st->agents);
	notes_free(&st->notes);
	sqlite3_close(st->db);
	memset(st, 0, sizeof(*st));
}

static int one_node(struct query *q, int64_t id, const char *name, uint64_t longest, struct error *e)
{
	uint64_t ambiguous = 0;
	struct spans_query sq = {
		.node = id, .from = q->q->from, .to = q->q->to, .longest = longest, .agent = q->n_stores > 1 ? query_agent_number : NULL,
		.fn = query_gather, .context = q, .ret_ambiguous = &ambiguous,
	};
	int err;

	q->at = query_node(q, name);
	if (!q->at)
		return no_memory(e);
	sq.taken = &q->at->taken;
	err = spans_choose(q->st.spans, &sq, e);
	if (!err)
		err = q->error ? no_memory(e) : query_end_node(q, e);
	q->coverage.ambiguous += (unsigned)ambiguous;
	return err;
}

static int gather_gaps(struct query *q, int64_t node, struct error *e)
{
	sqlite3_stmt *st;
	int r = db_prepare(q->st.db, "SELECT g.agent, g.first, g.last, g.start, g.end FROM gaps g JOIN agents a ON a.id = g.agent "
				     "WHERE a.node = ?1 AND g.start < ?3 AND g.end > ?2", &st, e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, node);
	sqlite3_bind_int64(st, 2, (int64_t)q->q->from);
	sqlite3_bind_int64(st, 3, (int64_t)q->q->to);
	while ((r = db_step(st, "read", e)) > 0) {
		int64_t agent = sqlite3_column_int64(st, 0);
		struct source what = { q->n_stores > 1 ? query_agent_number(q, agent) : agent, (uint64_t)sqlite3_column_int64(st, 1),
				       (uint64_t)sqlite3_column_int64(st, 2) };

		r = query_note_gap(q->at, what, (uint64_t)sqlite3_column_int64(st, 3), (uint64_t)sqlite3_column_int64(st, 4));
		if (r || q->error) {
			r = no_memory(e);
			break;
		}
	}
	sqlite3_finalize(st);
	return r;
}

int query_each_node(struct query *q, struct error *e)
{
	sqlite3_stmt *st;
	int r = db_prepare(q->st.db, "SELECT id, name, longest FROM nodes WHERE ?1 IS NULL OR name = ?1 ORDER BY name", &st, e);

	if (r)
		return r;
	sqlite3_bind_text(st, 1, q->q->node, -1, SQLITE_STATIC);
	while ((r = db_step(st, "read", e)) > 0) {
		int64_t id = sqlite3_column_int64(st, 0);

		r = one_node(q, id, (const char *)sqlite3_column_text(st, 1), (uint64_t)sqlite3_column_int64(st, 2), e);
		if (!r && !q->take)
			r = gather_gaps(q, id, e);
		if (r)
			break;
	}
	sqlite3_finalize(st);
	return r;
}

static int one_store(struct query *q, struct store *s, struct error *e)
{
	int err = query_open(q, s, e);

	if (!err)
		err = query_each_node(q, e);
	if (!err)
		err = query_end_store(q, e);
	query_close(&q->st);
	return err ? error_prefix(e, err, "%s", s->directory) : 0;
}

int query_start(struct query *q, struct error *e)
{
	char owner[BATCH_SERVICE_MAX + 16];
	size_t type;

	if (q->q->from >= q->q->to || q->q->to > INT64_MAX)
		return error_set(e, -EINVAL, "the window is empty: its end is not behind its start");
	if (q->q->n_labels > CONDITIONS_MAX - 1)
		return error_set(e, -EINVAL, "more than %d labels are asked for", CONDITIONS_MAX - 1);
	q->conditions = (1u << (q->q->n_labels + (q->q->device != NULL))) - 1;
	snprintf(owner, sizeof(owner), q->q->service ? "[service %s]" : "[node %s]",
		 q->q->service ? q->q->service : q->q->node ? q->q->node : "*");
	q->builder = pprof_builder_new(owner);
	q->unpacker = unpacker_new();
	q->adders = adders_new();
	if (!q->builder || !q->unpacker || !q->adders)
		return no_memory(e);
	q->p = pprof_builder_profile(q->builder);
	q->watch.limits = q->q->limits;
	q->p->budget.limit = q->q->limits ? q->q->limits->memory : 0;
	intern_init(&q->instances, NULL);
	if (profile_type_index(q->p, q->q->type, &type, e))
		return -EINVAL;
	q->p->default_type = q->p->types[type].type;
	return 0;
}

void query_clear_nodes(struct query *q)
{
	for (size_t i = 0; i < q->n_nodes; i++) {
		taken_free(&q->node[i]->taken);
		intervals_free(&q->node[i]->when);
		free(q->node[i]->total);
		free(q->node[i]->lost);
		free(q->node[i]);
	}
	q->n_nodes = 0;
}

void query_finish(struct query *q)
{
	query_clear_nodes(q);
	free(q->node);
	notes_free(&q->notes);
	intern_free(&q->instances);
	adders_free(q->adders);
	unpacker_free(q->unpacker);
	pprof_builder_free(q->builder);
}

int query_nothing(struct store *const *stores, unsigned n, const struct store_query *q, struct error *e)
{
	uint64_t before = 0, after = 0;

	store_nearest(stores, n, q, &before, &after);
	if (!before && !after)
		return error_set(e, -ENODATA, "there are no windows%s%.64s in the store; see 'blkprof query --list nodes'",
				 q->node ? " of node " : "", q->node ? q->node : "");
	return store_say_nearest(before, after, e);
}

int store_query_many(struct store *const *stores, unsigned n, const struct store_query *sq, struct buf *ret_gz,
		     struct store_coverage *ret, struct error *e)
{
	struct query q = { .q = sq, .n_stores = n };
	int err = query_start(&q, e);

	for (unsigned i = 0; i < n && !err; i++)
		err = one_store(&q, stores[i], e);
	if (!err)
		err = query_end_lost(&q, e);
	if (!err && !q.coverage.windows)
		err = query_nothing(stores, n, sq, e);
	if (!err)
		err = query_answer(&q, ret_gz, e);
	q.coverage.empty = !err && !q.p->samples.n;
	if (!err && ret)
		*ret = q.coverage;
	err = watch_end(&q.watch, err, e);
	query_finish(&q);
	return err;
}

int store_query(struct store *s, const struct store_query *q, struct buf *ret_gz, struct store_coverage *ret, struct error *e)
{
	return store_query_many(&s, 1, q, ret_gz, ret, e);
}
