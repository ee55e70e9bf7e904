// SPDX-License-Identifier: Apache-2.0
// What there is: nodes, services, windows.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_query.h"
#include "common/when.h"
#include "pprof/wire.h"

struct listed {
	char *name;
	uint64_t from, to, windows;
};

struct listing {
	enum store_list what;
	const struct store_query *q;
	store_list_fn fn;
	void *fn_context;
	sqlite3 *db;
	struct spans *spans;
	struct bodies *bodies;
	struct pprof_builder *builder;
	struct idmap by_service; // index + 1
	struct listed *item;
	size_t n, cap;
	const char *node;
};

static int no_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "out of memory");
}

static int add_item(struct listing *l, const char *name, size_t *ret, struct error *e)
{
	char *copy = strdup(name);

	if (!copy || memory_grow(NULL, &l->item, &l->cap, l->n + 1, sizeof(*l->item))) {
		free(copy);
		return no_memory(e);
	}
	l->item[l->n] = (struct listed){ .name = copy };
	*ret = l->n++;
	return 0;
}

static void extend(struct listed *i, const struct span *s)
{
	i->from = !i->from || s->start < i->from ? s->start : i->from;
	i->to = s->end > i->to ? s->end : i->to;
	i->windows += s->windows;
}

static int list_services(struct listing *l, struct span *s, struct error *e)
{
	const uint8_t *p = s->services.data, *end = p + s->services.len;
	uint32_t *found, text;
	size_t at;
	uint64_t id;
	int err;

	while (p < end) {
		if (wire_get_varint(&p, end, &id) || !id || id > UINT32_MAX)
			return error_set(e, -EBADMSG, "the store is damaged: span %lld is wrong", (long long)s->id);
		found = idmap_find(&l->by_service, (uint32_t)id);
		at = found ? *found - 1 : 0;
		if (!found) {
			err = bodies_text(l->bodies, (uint32_t)id, &text, e);
			if (!err)
				err = add_item(l, profile_text(pprof_builder_profile(l->builder), text), &at, e);
			if (!err && idmap_put(&l->by_service, (uint32_t)id, (uint32_t)at + 1))
				err = no_memory(e);
			if (err)
				return err;
		}
		extend(&l->item[at], s);
	}
	return 0;
}

static int list_span(void *context, struct span *s, struct error *e)
{
	struct listing *l = context;

	if (l->what == STORE_SERVICES)
		return list_services(l, s, e);
	if (l->what == STORE_NODES) {
		extend(&l->item[l->n - 1], s);
		return 0;
	}
	return l->fn(l->fn_context, l->node, s->start, s->end, s->windows);
}

static int list_node(struct listing *l, int64_t id, const char *name, uint64_t longest, struct error *e)
{
	struct sources taken = { 0 };
	uint64_t ambiguous = 0;
	struct spans_query sq = { .node = id, .from = l->q->from, .to = l->q->to, .longest = longest, .taken = &taken,
				  .fn = list_span, .context = l, .ret_ambiguous = &ambiguous };
	size_t at;
	int err = l->what == STORE_NODES ? add_item(l, name, &at, e) : 0;

	l->node = name;
	if (!err)
		err = spans_choose(l->spans, &sq, e);
	sources_free(&taken);
	return err;
}

static int list_nodes(struct listing *l, struct error *e)
{
	sqlite3_stmt *st;
	int r = db_prepare(l->db, "SELECT id, name, longest FROM nodes WHERE ?1 IS NULL OR name = ?1 ORDER BY name", &st, e);

	if (r)
		return r;
	sqlite3_bind_text(st, 1, l->q->node, -1, SQLITE_STATIC);
	while ((r = db_step(st, "read", e)) > 0) {
		r = list_node(l, sqlite3_column_int64(st, 0), (const char *)sqlite3_column_text(st, 1),
			      (uint64_t)sqlite3_column_int64(st, 2), e);
		if (r)
			break;
	}
	sqlite3_finalize(st);
	return r;
}

static int compare_items(const void *a, const void *b)
{
	return strcmp(((const struct listed *)a)->name, ((const struct listed *)b)->name);
}

static int report(struct listing *l)
{
	int err = 0;

	if (l->n)
		qsort(l->item, l->n, sizeof(*l->item), compare_items);
	for (size_t i = 0; i < l->n && !err; i++)
		if (l->item[i].windows)
			err = l->fn(l->fn_context, l->item[i].name, l->item[i].from, l->item[i].to, l->item[i].windows);
	return err;
}

int store_list(struct store *s, enum store_list what, const struct store_query *q, store_list_fn fn, void *context,
	       struct error *e)
{
	struct listing l = { .what = what, .q = q, .fn = fn, .fn_context = context, .builder = pprof_builder_new("") };
	int err = l.builder ? store_reader(s, &l.db, e) : no_memory(e);

	if (!err)
		err = db_exec(l.db, "BEGIN", "read", e);
	if (!err)
		err = spans_new(l.db, &l.spans, e);
	if (!err)
		err = bodies_new(l.db, pprof_builder_profile(l.builder), &l.bodies, e);
	if (!err)
		err = list_nodes(&l, e);
	if (!err)
		err = report(&l);
	spans_free(l.spans);
	bodies_free(l.bodies);
	sqlite3_close(l.db);
	for (size_t i = 0; i < l.n; i++)
		free(l.item[i].name);
	free(l.item);
	idmap_free(&l.by_service);
	pprof_builder_free(l.builder);
	return err;
}

static void nearest_of(struct store *s, const struct store_query *q, uint64_t *before, uint64_t *after)
{
	static const char *const sql[] = {
		"SELECT max(s.end) FROM nodes n, spans s WHERE (?1 IS NULL OR n.name = ?1) AND s.node = n.id AND s.level IN (0, 3) "
		"AND s.end <= ?2",
		"SELECT min(s.start) FROM nodes n, spans s WHERE (?1 IS NULL OR n.name = ?1) AND s.node = n.id AND s.level IN (0, 3) "
		"AND s.start >= ?2",
	};
	sqlite3 *db;
	sqlite3_stmt *st;

	if (store_reader(s, &db, NULL))
		return;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t at;

		if (db_prepare(db, sql[i], &st, NULL))
			continue;
		sqlite3_bind_text(st, 1, q->node, -1, SQLITE_STATIC);
		sqlite3_bind_int64(st, 2, (int64_t)(i ? q->to : q->from));
		at = sqlite3_step(st) == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
		if (!i && at > *before)
			*before = at;
		if (i && at && (!*after || at < *after))
			*after = at;
		sqlite3_finalize(st);
	}
	sqlite3_close(db);
}

void store_nearest(struct store *const *stores, unsigned n, const struct store_query *q, uint64_t *ret_before, uint64_t *ret_after)
{
	for (unsigned i = 0; i < n; i++)
		nearest_of(stores[i], q, ret_before, ret_after);
}

int store_say_nearest(uint64_t before, uint64_t after, struct error *e)
{
	char a[WHEN_SIZE], b[WHEN_SIZE];

	if (before && after)
		return error_set(e, -ENODATA, "there is nothing in this window; the nearest before it ends at %s, the next starts at %s",
				 when_text(before, a), when_text(after, b));
	return before ? error_set(e, -ENODATA, "there is nothing in this window; the last one before it ends at %s", when_text(before, a)) :
			error_set(e, -ENODATA, "there is nothing in this window; the first one behind it starts at %s", when_text(after, a));
}
