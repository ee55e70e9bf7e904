// SPDX-License-Identifier: Apache-2.0
// What there is, and how it went over time.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/web_internal.h"
#include "common/text.h"
#include "pprof/decode.h"

struct printed {
	struct buf *to;
	const char *kind; // "node"
	uint64_t most;	  // bytes
	unsigned n;
};

static int print_item(void *context, const char *name, uint64_t from, uint64_t to, uint64_t windows)
{
	struct printed *p = context;

	buf_printf(p->to, "%s\n{\"%s\":", p->n++ ? "," : "", p->kind);
	web_json_text(p->to, name);
	buf_printf(p->to, ",\"from\":");
	web_json_time(p->to, from);
	buf_printf(p->to, ",\"to\":");
	web_json_time(p->to, to);
	buf_printf(p->to, ",\"windows\":%" PRIu64 "}", windows);
	return p->to->len > p->most ? -E2BIG : 0;
}

// Without a time: of all that there is.
static int list_window(struct web *w, const struct http_request *q, struct web_window *ret, struct error *e)
{
	static const char *const names[] = { "from", "to", "seconds", "node", NULL };
	int err = http_check_arguments(q, names, e);

	if (!err)
		err = web_window(w, q, "", ret, e);
	if (!err && !http_argument_of(q, "from") && !http_argument_of(q, "seconds"))
		ret->query.from = 0;
	if (!err && !http_argument_of(q, "to"))
		ret->query.to = INT64_MAX;
	return err;
}

static int list(struct web *w, const struct http_request *q, enum store_list what, const char *kinds, const char *kind,
		struct http_response *r, struct error *e)
{
	struct printed p = { &r->body, kind, w->settings->query_memory / 2, 0 };
	struct web_window window;
	int err = list_window(w, q, &window, e);

	if (err)
		return err;
	buf_printf(&r->body, "{\"%s\":[", kinds);
	err = store_list(w->store, what, &window.query, print_item, &p, e);
	if (err == -E2BIG)
		error_set(e, err, "the list is too long: ask for a shorter time, or for one node");
	buf_printf(&r->body, "]}\n");
	r->type = "application/json";
	return err;
}

int web_get_nodes(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	return list(context, q, STORE_NODES, "nodes", "node", r, e);
}

int web_get_services(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	return list(context, q, STORE_SERVICES, "services", "service", r, e);
}

int web_get_windows(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	return list(context, q, STORE_WINDOWS, "windows", "node", r, e);
}

// ---- times that are covered, of each node: windows that touch are one ----

struct covered {
	struct printed p;
	char node[BATCH_NODE_MAX + 1]; // "" = none yet
	uint64_t from, to, windows;
};

static int print_covered(struct covered *c)
{
	return *c->node ? print_item(&c->p, c->node, c->from, c->to, c->windows) : 0;
}

static int join_window(void *context, const char *name, uint64_t from, uint64_t to, uint64_t windows)
{
	struct covered *c = context;
	int err;

	if (!strcmp(c->node, name) && from <= c->to) {
		c->to = to > c->to ? to : c->to;
		c->windows += windows;
		return 0;
	}
	err = print_covered(c);
	snprintf(c->node, sizeof(c->node), "%s", name);
	c->from = from;
	c->to = to;
	c->windows = windows;
	return err;
}

int web_get_coverage(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	struct web *w = context;
	struct covered c = { .p = { &r->body, "node", w->settings->query_memory / 2, 0 } };
	struct web_window window;
	int err = list_window(w, q, &window, e);

	if (err)
		return err;
	buf_printf(&r->body, "{\"coverage\":[");
	err = store_list(w->store, STORE_WINDOWS, &window.query, join_window, &c, e);
	if (!err)
		err = print_covered(&c);
	if (err == -E2BIG)
		error_set(e, err, "the list is too long: ask for a shorter time, or for one node");
	buf_printf(&r->body, "]}\n");
	r->type = "application/json";
	return err;
}

// ---- over time ----

static void print_points(const struct store_series_set *set, const struct store_series *s, size_t type, struct buf *to)
{
	buf_printf(to, "{\"name\":");
	web_json_text(to, s->name);
	buf_printf(to, ",\"values\":[");
	for (size_t i = 0; i < set->buckets; i++)
		buf_printf(to, "%s%" PRId64, i ? "," : "", s->point[i].value[type]);
	buf_printf(to, "],\"ops\":[");
	for (size_t i = 0; i < set->buckets; i++)
		buf_printf(to, "%s%" PRId64, i ? "," : "", s->point[i].value[PPROF_IO_OPS]);
	buf_printf(to, "]}");
}

static void print_series(const struct store_series_set *set, const struct store_query *q, uint64_t step, const char *by,
			 size_t type, const char *name, const char *unit, struct buf *to)
{
	buf_printf(to, "{\"type\":\"%s\",\"unit\":\"%s\",\"from\":", name, unit);
	web_json_time(to, q->from);
	buf_printf(to, ",\"to\":");
	web_json_time(to, q->to);
	buf_printf(to, ",\"step\":%.9g,\"by\":", (double)step / 1e9);
	web_json_text(to, by ? by : "");
	buf_printf(to, ",\"node_seconds\":[");
	for (size_t i = 0; i < set->buckets; i++)
		buf_printf(to, "%s%.3f", i ? "," : "", (double)set->node_seconds_ns[i] / 1e9);
	buf_printf(to, "],\"series\":[");
	for (size_t i = 0; i < set->n; i++) {
		buf_printf(to, i ? ",\n" : "\n");
		print_points(set, &set->series[i], type, to);
	}
	buf_printf(to, "]}\n");
}

// A number, a name, and the unit of a sample type.
static int find_type(const char *asked, size_t *ret, const char **ret_name, const char **ret_unit, struct error *e)
{
	static const char *const names[PPROF_TYPES] = { "io_ops", "io_time", "read_bytes", "write_bytes", "cpu" };
	static const char *const units[PPROF_TYPES] = { "count", "nanoseconds", "bytes", "bytes", "nanoseconds" };

	for (size_t i = 0; i < PPROF_TYPES; i++)
		if (!strcmp(asked ? asked : "io_time", names[i])) {
			*ret = i;
			*ret_name = names[i];
			*ret_unit = units[i];
			return 0;
		}
	return error_set(e, -EINVAL, "there is no type '%.40s'; there are io_ops, io_time, read_bytes, write_bytes, cpu", asked);
}

// About a hundred steps, where none is given.
static int find_step(const struct http_request *q, const struct store_query *window, uint64_t *ret, struct error *e)
{
	static const unsigned good[] = { 1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400 };
	const char *text = http_argument_of(q, "step");
	uint64_t least = (window->to - window->from) / 120;

	if (text)
		return text_duration(text, "step", ret, e);
	*ret = least;
	for (unsigned i = 0; i < sizeof(good) / sizeof(*good); i++)
		if (good[i] * 1000000000ull >= least) {
			*ret = good[i] * 1000000000ull;
			break;
		}
	return 0;
}

int web_get_series(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	static const char *const names[] = { WEB_WINDOW_ARGUMENTS, "type", "step", "by", NULL };
	struct store_series_set *set = NULL;
	const char *name = "", *unit = "", *by = http_argument_of(q, "by");
	struct web_window window;
	struct web *w = context;
	uint64_t step = 0;
	size_t type = 0;
	int err = http_check_arguments(q, names, e);

	if (!err)
		err = find_type(http_argument_of(q, "type"), &type, &name, &unit, e);
	if (!err)
		err = web_window(w, q, "", &window, e);
	if (!err)
		err = find_step(q, &window.query, &step, e);
	if (!err)
		err = store_series(w->store, &window.query, step, by && *by ? by : NULL, &set, e);
	if (err)
		return err;
	print_series(set, &window.query, step, by, type, name, unit, &r->body);
	store_series_free(set);
	r->type = "application/json";
	return 0;
}
