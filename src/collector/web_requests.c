// SPDX-License-Identifier: Apache-2.0
// Records of requests: the slowest, and sums by the values of fields.
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collector/store_requests.h"
#include "collector/web_internal.h"

#define LIMIT 100

struct question {
	struct web_window window;
	struct store_requests q;
	struct where where[WHERE_MAX];
	const char *facet[REQUESTS_FACETS];
};

static int take_conditions(const struct http_request *q, struct question *to, struct error *e)
{
	const char *text;
	int err = 0;

	for (unsigned i = 0; !err && (text = http_argument_nth(q, "where", i)); i++) {
		if (i == WHERE_MAX)
			return error_set(e, -EINVAL, "at most %d conditions can be asked for", WHERE_MAX);
		err = where_parse(text, &to->where[i], e);
		to->q.n_where = i + 1;
	}
	to->q.where = to->where;
	for (unsigned i = 0; !err && (text = http_argument_nth(q, "facet", i)); i++) {
		if (i == REQUESTS_FACETS)
			return error_set(e, -EINVAL, "at most %d facets can be asked for", REQUESTS_FACETS);
		to->facet[i] = text;
		to->q.n_facets = i + 1;
	}
	to->q.facet = to->facet;
	return err;
}

static int take_question(struct web *w, const struct http_request *q, struct question *to, struct error *e)
{
	static const char *const names[] = { "from", "to", "seconds", "node", "where", "facet", "sort", "kind", "limit", "count", NULL };
	unsigned count;
	int err = http_check_arguments(q, names, e);

	if (!err)
		err = web_window(w, q, "", &to->window, e);
	if (err)
		return err;
	to->q = (struct store_requests){ .from = to->window.query.from, .to = to->window.query.to, .node = to->window.query.node,
					 .kind = http_argument_of(q, "kind"), .sort = http_argument_of(q, "sort"),
					 .limits = to->window.query.limits };
	err = take_conditions(q, to, e);
	if (!err)
		err = web_number(q, "limit", REQUESTS_MOST, LIMIT, &to->q.limit, e);
	if (!err)
		err = web_number(q, "count", 1, 0, &count, e);
	to->q.count = !err && count;
	return err;
}

// JSON has no number for what is beyond all doubles, as sums of what somebody sent may be.
static void print_number(struct buf *to, const char *name, double value)
{
	buf_printf(to, ",\"%s\":%.9g", name, isnan(value) ? 0 : fmax(fmin(value, DBL_MAX), -DBL_MAX));
}

static void print_sum(struct buf *to, const struct requests_sum *s)
{
	buf_printf(to, "\"requests\":%" PRIu64, s->requests);
	print_number(to, "total_io_duration_ms_f", s->io);
	print_number(to, "max_total_io_duration_ms_f", s->io_max);
	print_number(to, "duration_ms_f", s->duration);
	print_number(to, "max_duration_ms_f", s->duration_max);
	print_number(to, "oncpu_ms_f", s->oncpu);
	print_number(to, "lock_wait_ms_f", s->lock);
}

static void print_facet(struct buf *to, const struct requests_facet *f)
{
	web_json_text(to, f->field);
	buf_printf(to, ":[");
	for (unsigned i = 0; i < f->n; i++) {
		buf_printf(to, "%s\n{\"value\":", i ? "," : "");
		web_json_text(to, f->value[i].value);
		buf_byte(to, ',');
		print_sum(to, &f->value[i].sum);
		buf_byte(to, '}');
	}
	buf_byte(to, ']');
}

// Documents were checked when they were read: they stand there as they are.
static void print(struct buf *to, const struct store_requests *q, const struct requests_answer *a)
{
	buf_printf(to, "{\"from\":");
	web_json_time(to, q->from);
	buf_printf(to, ",\"to\":");
	web_json_time(to, q->to);
	buf_printf(to, ",\"whole\":%s,\"read\":%" PRIu64 ",\"unreadable\":%" PRIu64, a->whole ? "true" : "false", a->read, a->unreadable);
	if (a->whole) {
		buf_printf(to, ",\"sum\":{");
		print_sum(to, &a->sum);
		buf_byte(to, '}');
	}
	if (a->n_facets)
		buf_printf(to, ",\"facets\":{");
	for (unsigned i = 0; i < a->n_facets; i++) {
		if (i)
			buf_byte(to, ',');
		print_facet(to, &a->facet[i]);
	}
	buf_printf(to, "%s,\"requests\":[", a->n_facets ? "}" : "");
	for (unsigned i = 0; i < a->n; i++) {
		buf_printf(to, "%s\n", i ? "," : "");
		buf_append(to, a->record[i].document, a->record[i].size);
	}
	buf_printf(to, "]}\n");
}

int web_get_requests(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	struct web *w = context;
	struct question question = { 0 };
	struct requests_answer *answer;
	int err = take_question(w, q, &question, e);

	if (!err)
		err = store_requests(&w->store, 1, &question.q, &answer, e);
	if (err)
		return err;
	print(&r->body, &question.q, answer);
	r->type = "application/json";
	requests_answer_free(answer);
	return 0;
}
