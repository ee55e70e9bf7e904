// SPDX-License-Identifier: Apache-2.0
// Answers that are made of one merged profile, or of two.
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/web_internal.h"
#include "pprof/decode.h"
#include "pprof/diff.h"
#include "pprof/top.h"

#define ROWS_MAX 10000

static void note(struct http_response *r, const struct store_query *q, const struct store_coverage *c)
{
	struct buf b = { 0 };

	store_coverage_print(c, q, &b);
	buf_byte(&b, 0);
	if (!b.error)
		snprintf(r->note, sizeof(r->note), "%s", (char *)b.data);
	buf_free(&b);
}

static int answer_profile(struct http_response *r, const char *name, struct error *e)
{
	r->type = "application/octet-stream";
	r->file_name = name;
	return r->body.error ? error_set(e, r->body.error, "out of memory") : 0;
}

int web_get_io(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	static const char *const names[] = { WEB_WINDOW_ARGUMENTS, "type", NULL };
	struct store_coverage coverage;
	struct web_window window;
	struct web *w = context;
	int err = http_check_arguments(q, names, e);

	if (!err)
		err = web_window(w, q, "", &window, e);
	if (!err)
		err = store_query(w->store, &window.query, &r->body, &coverage, e);
	malloc_trim(1 << 20);
	if (err)
		return err;
	note(r, &window.query, &coverage);
	return answer_profile(r, "io.pb.gz", e);
}

// ---- two windows ----

struct pair {
	struct web_window window[DIFF_SIDES];
	struct store_coverage coverage[DIFF_SIDES];
	struct pprof_reader *reader[DIFF_SIDES];
	const struct profile *profile[DIFF_SIDES];
};

static void pair_free(struct pair *p)
{
	for (unsigned i = 0; i < DIFF_SIDES; i++)
		pprof_reader_free(p->reader[i]);
	free(p);
	malloc_trim(1 << 20);
}

// Which of the two windows it is about: an error says so.
static int side_failed(unsigned side, int err, struct error *e)
{
	return error_prefix(e, err, "%s", side == DIFF_BASE ? "base" : "incident");
}

static int read_side(struct web *w, const struct http_request *q, struct pair *p, unsigned side, struct error *e)
{
	struct pprof_limits limits = PPROF_LIMITS_DEFAULT;
	struct pprof_source source = { .fd = -1 };
	struct buf gz = { 0 };
	int err = web_window(w, q, side == DIFF_BASE ? "base_" : "", &p->window[side], e);

	// Both sides together have the time of one query.
	if (side)
		p->window[side].until = p->window[0].until;
	if (!err)
		err = store_query(w->store, &p->window[side].query, &gz, &p->coverage[side], e);
	if (err)
		return side_failed(side, err, e);
	limits.memory = w->settings->query_memory;
	p->reader[side] = pprof_reader_new(&limits);
	source.data = gz.data;
	source.len = gz.len;
	err = p->reader[side] ? pprof_reader_add(p->reader[side], &source, e) : error_set(e, -ENOMEM, "out of memory");
	buf_free(&gz);
	if (err)
		return side_failed(side, err, e);
	p->profile[side] = pprof_reader_finish(p->reader[side]);
	return web_go_on(&p->window[side], e);
}

static int check_base(const struct http_request *q, struct error *e)
{
	static const char *const any[] = { "base_from", "base_seconds", "base_node", "base_service", "base_device" };

	for (unsigned i = 0; i < sizeof(any) / sizeof(*any); i++)
		if (http_argument_of(q, any[i]))
			return 0;
	return error_set(e, -EINVAL, "with what? base_from and base_to name another time, base_node another node, base_service another service");
}

static int read_pair(struct web *w, const struct http_request *q, const char *const *names, struct pair **ret, struct error *e)
{
	int err = http_check_arguments(q, names, e);
	struct pair *p;

	if (!err)
		err = check_base(q, e);
	p = err ? NULL : calloc(1, sizeof(*p));
	if (!p)
		return err ? err : error_set(e, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < DIFF_SIDES && !err; i++)
		err = read_side(w, q, p, i, e);
	if (err)
		pair_free(p);
	else
		*ret = p;
	return err;
}

#define PAIR_ARGUMENTS \
	WEB_WINDOW_ARGUMENTS, "type", "base_from", "base_to", "base_seconds", "base_node", "base_service", "base_device"

int web_get_diff(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	static const char *const names[] = { PAIR_ARGUMENTS, NULL };
	struct buf message = { 0 };
	struct pair *p;
	int err = read_pair(context, q, names, &p, e);

	if (err)
		return err;
	err = diff_profile(p->profile[DIFF_BASE], p->profile[DIFF_INCIDENT], &message, e);
	if (!err && pprof_gzip(message.data, message.len, &r->body))
		err = error_set(e, -ENOMEM, "out of memory");
	buf_free(&message);
	pair_free(p);
	return err ? err : answer_profile(r, "diff.pb.gz", e);
}

int web_get_api_diff(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	static const char *const names[] = { PAIR_ARGUMENTS, "rows", NULL };
	struct web *w = context;
	struct diff_options o = { .type = http_argument_of(q, "type"), .memory = w->settings->query_memory };
	struct diff *d = NULL;
	struct pair *p = NULL;
	unsigned rows = 0;
	int err = web_number(q, "rows", ROWS_MAX, 10, &rows, e);

	if (!err)
		err = read_pair(w, q, names, &p, e);
	if (err)
		return err;
	err = diff_new(p->profile[DIFF_BASE], p->profile[DIFF_INCIDENT], &o, &d, e);
	if (!err && diff_json(d, rows, &r->body))
		err = error_set(e, -ENOMEM, "out of memory");
	diff_free(d);
	pair_free(p);
	r->type = "application/json";
	return err;
}

// ---- the heaviest ----

static int print_functions(struct top *t, unsigned rows, struct buf *to)
{
	struct top_row *r;
	size_t n;
	int err = top_functions(t, &r, &n);

	if (err)
		return err;
	buf_printf(to, ",\"functions\":[");
	for (size_t i = 0; i < n && (!rows || i < rows); i++) {
		buf_printf(to, "%s\n{\"name\":", i ? "," : "");
		web_json_text(to, r[i].name);
		buf_printf(to, ",\"flat\":%lld,\"cum\":%lld,\"flat_ops\":%lld,\"cum_ops\":%lld}", (long long)r[i].flat, (long long)r[i].cum,
			   (long long)r[i].flat_events, (long long)r[i].cum_events);
	}
	buf_printf(to, "]");
	free(r);
	return 0;
}

static int print_stacks(struct top *t, unsigned rows, struct buf *to)
{
	struct top_stack *s;
	size_t n;
	int err = top_stacks(t, &s, &n);

	if (err)
		return err;
	buf_printf(to, ",\"stacks\":[");
	for (size_t i = 0; i < n && (!rows || i < rows); i++) {
		buf_printf(to, "%s\n{\"value\":%lld,\"ops\":%lld,\"frames\":[", i ? "," : "", (long long)s[i].value,
			   (long long)s[i].events);
		for (uint32_t k = s[i].n; k--;) {
			web_json_text(to, top_node_name(t, s[i].nodes[k]));
			buf_printf(to, k ? "," : "");
		}
		buf_printf(to, "]}");
	}
	buf_printf(to, "]");
	free(s);
	return 0;
}

static int print_labels(struct top *t, unsigned rows, struct buf *to)
{
	struct top_label *l;
	size_t n;
	int err = top_labels(t, &l, &n);

	if (err)
		return err;
	buf_printf(to, ",\"labels\":[");
	for (size_t i = 0; i < n; i++) {
		if (!rows || i < rows) {
			buf_printf(to, "%s\n{\"name\":", i ? "," : "");
			web_json_text(to, l[i].name ? l[i].name : "");
			buf_printf(to, ",\"value\":%lld,\"ops\":%lld}", (long long)l[i].value, (long long)l[i].events);
		}
		free(l[i].made);
	}
	buf_printf(to, "]");
	free(l);
	return 0;
}

static int print_top(struct top *t, const char *by, unsigned rows, const struct web_window *window, const struct store_coverage *c,
		     struct buf *to, struct error *e)
{
	const struct profile *p = top_profile(t);
	const struct profile_type *type = &p->types[top_type(t)];
	int err;

	buf_printf(to, "{\"type\":");
	web_json_text(to, profile_text(p, type->type));
	buf_printf(to, ",\"unit\":");
	web_json_text(to, profile_text(p, type->unit));
	buf_printf(to, ",\"total\":%lld,\"ops\":%lld,\"coverage\":", (long long)top_total(t), (long long)top_events(t));
	web_json_coverage(to, &window->query, c);
	err = by ? print_labels(t, rows, to) : print_functions(t, rows, to);
	if (!err && !by)
		err = print_stacks(t, rows, to);
	buf_printf(to, "}\n");
	return err ? error_set(e, err, "the answer takes too much memory: ask for a shorter time, or for one node or service") : 0;
}

int web_get_top(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	static const char *const names[] = { WEB_WINDOW_ARGUMENTS, "type", "by", "rows", NULL };
	const char *by = http_argument_of(q, "by"), *name = NULL;
	struct top_options o = { .what = by ? TOP_LABEL : TOP_FUNCTIONS | TOP_STACKS, .type = http_argument_of(q, "type"), .label = by };
	struct pprof_limits limits = PPROF_LIMITS_DEFAULT;
	struct pprof_source source = { .fd = -1 };
	struct store_coverage coverage;
	struct web_window window;
	struct web *w = context;
	struct buf gz = { 0 };
	struct top *t = NULL;
	unsigned rows = 0;
	int err = http_check_arguments(q, names, e);

	if (!err)
		err = web_number(q, "rows", ROWS_MAX, 20, &rows, e);
	if (!err)
		err = web_window(w, q, "", &window, e);
	if (!err)
		err = store_query(w->store, &window.query, &gz, &coverage, e);
	if (!err) {
		t = top_new(&o);
		source.data = gz.data;
		source.len = gz.len;
		limits.memory = w->settings->query_memory;
		err = t ? top_read(t, &source, &name, 1, &limits, e) : error_set(e, -ENOMEM, "out of memory");
	}
	if (!err)
		err = print_top(t, by, rows, &window, &coverage, &r->body, e);
	top_free(t);
	buf_free(&gz);
	malloc_trim(1 << 20);
	r->type = "application/json";
	return err;
}
