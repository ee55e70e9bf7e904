// SPDX-License-Identifier: Apache-2.0
// Lists of collectors, and of several of them as one.
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/remote_internal.h"
#include "common/text.h"
#include "common/when.h"
#include "pprof/intern.h"

static const char *const whats[] = { [STORE_NODES] = "nodes", [STORE_SERVICES] = "services", [STORE_WINDOWS] = "windows" };
static const char *const kinds[] = { [STORE_NODES] = "node", [STORE_SERVICES] = "service", [STORE_WINDOWS] = "node" };

void remote_items_free(struct remote_items *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->item[i].name);
	free(l->item);
	memset(l, 0, sizeof(*l));
}

static int add_item(struct remote_items *l, json_t *from, const char *kind, unsigned collector)
{
	const char *name, *start, *end;
	json_int_t windows;
	struct remote_item i = { .collector = collector };

	if (json_unpack(from, "{s:s, s:s, s:s, s:I}", kind, &name, "from", &start, "to", &end, "windows", &windows) || windows < 0 ||
	    when_parse(start, 0, "", &i.from, NULL) || when_parse(end, 0, "", &i.to, NULL))
		return -EBADMSG;
	i.windows = (uint64_t)windows;
	i.name = malloc(strlen(name) + 1);
	if (!i.name || memory_grow(NULL, &l->item, &l->cap, l->n + 1, sizeof(*l->item))) {
		free(i.name);
		return -ENOMEM;
	}
	text_sanitize(i.name, strlen(name) + 1, name, strlen(name));
	l->item[l->n++] = i;
	return 0;
}

int remote_items_get(struct remote *r, unsigned collector, const char *what, const char *kind, const struct store_query *q,
		     struct remote_items *to, struct error *e)
{
	struct buf text = { 0 };
	char path[64] = "/api/v1/";
	json_t *root = NULL, *list, *one;
	size_t at;
	int err;

	strcat(path, what);
	err = remote_get(r, collector, path, q, &text, NULL, e);
	if (!err) {
		root = remote_json(&text);
		list = json_object_get(root, what);
		err = json_is_array(list) ? 0 : -EBADMSG;
		if (!err)
			json_array_foreach(list, at, one)
				err = err ? err : add_item(to, one, kind, collector);
		if (err)
			error_set(e, err, err == -ENOMEM ? "out of memory" : "collector %u on the command line does not answer as one does",
				  collector + 1);
	}
	json_decref(root);
	buf_free(&text);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct remote_item *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	if (c)
		return c;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->collector > y->collector) - (x->collector < y->collector);
}

static bool same(const struct remote_item *a, const struct remote_item *b)
{
	return !strcmp(a->name, b->name) && a->from == b->from && a->to == b->to;
}

// A window as often as the collector that has it most often: one that reached two collectors is one.
static void keep_once(struct remote_items *l)
{
	size_t n = 0, next;

	for (size_t i = 0; i < l->n; i = next) {
		size_t most = 0, count = 0;

		for (next = i; next < l->n && same(&l->item[i], &l->item[next]); next++) {
			count = next > i && l->item[next].collector == l->item[next - 1].collector ? count + 1 : 1;
			most = count > most ? count : most;
		}
		for (size_t k = i; k < next; k++) {
			if (k - i < most)
				l->item[n++] = l->item[k];
			else
				free(l->item[k].name);
		}
	}
	l->n = n;
}

// Neighbours of one name become one, from the first to the last.
static void join_names(struct remote_items *l, bool add)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct remote_item *last = n ? &l->item[n - 1] : NULL, *at = &l->item[i];

		if (!last || strcmp(last->name, at->name)) {
			l->item[n++] = *at;
			continue;
		}
		last->from = at->from < last->from ? at->from : last->from;
		last->to = at->to > last->to ? at->to : last->to;
		if (add)
			last->windows += at->windows;
		else
			last->windows = at->windows > last->windows ? at->windows : last->windows;
		free(at->name);
	}
	l->n = n;
}

int remote_list(struct remote *r, enum store_list what, const struct store_query *q, store_list_fn fn, void *context, struct error *e)
{
	const unsigned n = r->options->collectors.n;
	// Only windows can be told apart: of nodes they are counted here.
	enum store_list ask = n > 1 && what == STORE_NODES ? STORE_WINDOWS : what;
	struct store_query times = { .from = q->from, .to = q->to, .node = q->node };
	struct remote_items l = { 0 };
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++)
		err = remote_items_get(r, i, whats[ask], kinds[ask], &times, &l, e);
	if (!err && l.n)
		qsort(l.item, l.n, sizeof(*l.item), compare);
	if (!err && n > 1 && ask == STORE_WINDOWS)
		keep_once(&l);
	if (!err && n > 1 && what != STORE_WINDOWS)
		join_names(&l, what == STORE_NODES);
	for (size_t i = 0; i < l.n && !err; i++)
		err = fn(context, l.item[i].name, l.item[i].from, l.item[i].to, l.item[i].windows);
	remote_items_free(&l);
	return err;
}
