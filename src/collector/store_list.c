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
	uint32_t name; // in `names`
	uint64_t from, to, windows;
};

struct listing {
	struct query q; // the steps of one, without its sums
	enum store_list what;
	struct intern names;
	struct idmap by_service; // of the store at hand: index + 1
	struct listed *item;	 // of nodes and services: in the order of `names`
	size_t n, cap;
	uint32_t node;
};

static int no_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "out of memory");
}

// The item of that name, made when there is none.
static int find_item(struct listing *l, const char *name, size_t *ret, struct error *e)
{
	uint32_t id;
	bool made;

	if (intern_put(&l->names, name, strlen(name), &id, &made))
		return no_memory(e);
	*ret = id - 1;
	if (!made)
		return 0;
	if (memory_grow(NULL, &l->item, &l->cap, id, sizeof(*l->item)))
		return no_memory(e);
	l->item[l->n++] = (struct listed){ .name = id };
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
			err = bodies_text(l->q.st.bodies, (uint32_t)id, &text, e);
			if (!err)
				err = find_item(l, profile_text(l->q.p, text), &at, e);
			if (!err && idmap_put(&l->by_service, (uint32_t)id, (uint32_t)at + 1))
				err = no_memory(e);
			if (err)
				return err;
		}
		extend(&l->item[at], s);
	}
	return 0;
}

static int list_window(struct listing *l, const struct span *s, struct error *e)
{
	if (memory_grow(NULL, &l->item, &l->cap, l->n + 1, sizeof(*l->item)))
		return no_memory(e);
	l->item[l->n++] = (struct listed){ l->node, s->start, s->end, s->windows };
	return watch_memory(&l->q.watch, l->cap * sizeof(*l->item), e);
}

static int list_span(void *context, struct span *s, struct error *e)
{
	struct listing *l = context;
	int err = watch_ask(&l->q.watch, e);

	if (err)
		return err;
	if (l->what == STORE_SERVICES)
		return list_services(l, s, e);
	if (l->what == STORE_WINDOWS)
		return list_window(l, s, e);
	extend(&l->item[l->node - 1], s);
	return 0;
}

static int name_node(struct listing *l, const char *name, struct error *e)
{
	size_t at;
	int err = 0;

	if (l->what == STORE_NODES)
		err = find_item(l, name, &at, e);
	else if (l->what == STORE_WINDOWS && intern_put(&l->names, name, strlen(name), &l->node, NULL))
		err = no_memory(e);
	if (!err && l->what == STORE_NODES)
		l->node = (uint32_t)at + 1;
	return err;
}

static int list_node(struct listing *l, int64_t id, const char *name, uint64_t longest, struct error *e)
{
	uint64_t ambiguous = 0;
	struct spans_query sq = { .node = id, .from = l->q.q->from, .to = l->q.q->to, .longest = longest,
				  .agent = l->q.n_stores > 1 ? query_agent_number : NULL, .fn = list_span, .context = l,
				  .ret_ambiguous = &ambiguous };
	int err = name_node(l, name, e);

	l->q.at = err ? NULL : query_node(&l->q, name);
	if (!l->q.at)
		return err ? err : no_memory(e);
	sq.taken = &l->q.at->taken;
	err = spans_choose(l->q.st.spans, &sq, e);
	return err ? err : l->q.error ? no_memory(e) : 0;
}

static int list_nodes(struct listing *l, struct error *e)
{
	sqlite3_stmt *st;
	int r = db_prepare(l->q.st.db, "SELECT id, name, longest FROM nodes WHERE ?1 IS NULL OR name = ?1 ORDER BY name", &st, e);

	if (r)
		return r;
	sqlite3_bind_text(st, 1, l->q.q->node, -1, SQLITE_STATIC);
	while ((r = db_step(st, "read", e)) > 0) {
		r = list_node(l, sqlite3_column_int64(st, 0), (const char *)sqlite3_column_text(st, 1),
			      (uint64_t)sqlite3_column_int64(st, 2), e);
		if (r)
			break;
	}
	sqlite3_finalize(st);
	return r;
}

static int list_store(struct listing *l, struct store *s, struct error *e)
{
	int err = query_open(&l->q, s, e);

	if (!err)
		err = list_nodes(l, e);
	query_close(&l->q.st);
	idmap_clear(&l->by_service);
	return err;
}

static int compare_items(const void *a, const void *b, void *names)
{
	const struct listed *x = a, *y = b;
	int c = x->name == y->name ? 0 : strcmp(intern_key(names, x->name), intern_key(names, y->name));

	if (c)
		return c;
	return x->from != y->from ? (x->from < y->from ? -1 : 1) : (x->to > y->to) - (x->to < y->to);
}

static int report(struct listing *l, store_list_fn fn, void *context)
{
	int err = 0;

	if (l->n)
		qsort_r(l->item, l->n, sizeof(*l->item), compare_items, &l->names);
	for (size_t i = 0; i < l->n && !err; i++)
		if (l->item[i].windows)
			err = fn(context, intern_key(&l->names, l->item[i].name), l->item[i].from, l->item[i].to, l->item[i].windows);
	return err;
}

int store_list_many(struct store *const *stores, unsigned n, enum store_list what, const struct store_query *q, store_list_fn fn,
		    void *context, struct error *e)
{
	struct listing l = { .q = { .q = q, .n_stores = n }, .what = what };
	int err = query_start(&l.q, e);

	intern_init(&l.names, NULL);
	for (unsigned i = 0; i < n && !err; i++) {
		err = list_store(&l, stores[i], e);
		if (err)
			error_prefix(e, err, "%s", stores[i]->directory);
	}
	err = watch_end(&l.q.watch, err, e);
	if (!err)
		err = report(&l, fn, context);
	intern_free(&l.names);
	idmap_free(&l.by_service);
	free(l.item);
	query_finish(&l.q);
	return err;
}

int store_list(struct store *s, enum store_list what, const struct store_query *q, store_list_fn fn, void *context,
	       struct error *e)
{
	return store_list_many(&s, 1, what, q, fn, context, e);
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
