// SPDX-License-Identifier: Apache-2.0
#include "cli/requests_stored.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/remote_internal.h"
#include "cli/requests_table.h"
#include "collector/store_records.h"
#include "common/clock.h"
#include "common/when.h"
#include "request/document.h"

#define DEFAULT_FROM "-15m"
#define DEFAULT_BY "handler_s"

int requests_add_where(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	struct requests_stored *o = target;
	struct where w;
	int err = where_parse(value, &w, e);

	if (!err && o->n_where == WHERE_MAX)
		err = error_set(e, -EINVAL, "'%.60s' is one too many; allowed: at most %d conditions", value, WHERE_MAX);
	if (!err)
		o->where[o->n_where++] = value;
	return err;
}

bool requests_stored_asked(const struct requests_stored *o)
{
	return o->source.stores.n || o->source.collectors.n;
}

int requests_stored_check(const struct requests_stored *o, struct error *e)
{
	bool any;
	int err = source_check(&o->source, &any, e);

	if (!err && !any && (o->from || o->to || o->by || o->n_where))
		err = error_set(e, -EINVAL, "--from, --to, --where and --by are for --store and --collector");
	return err;
}

// ---- rows --------------------------------------------------------------------------------------------------------------

struct answer {
	const struct requests_stored *o;
	struct requests_table *table;
	struct document document;
	bool json;
	uint64_t unreadable; // records
};

static bool missing(const struct document *d, const char *field)
{
	const struct document_field *f = document_find(d, "missing_ss");
	struct document_field one;
	const char *at = NULL;
	char text[64];

	while (f && document_next_text(f, &at, &one)) {
		document_text(&one, text, sizeof(text));
		if (!strcmp(text, field))
			return true;
	}
	return false;
}

static double number(const struct document *d, const char *field)
{
	const struct document_field *f = document_find(d, field);

	// Those that are in every record are 0 where they are not known.
	return missing(d, field) ? -1 : f ? document_double(f) : 0;
}

static uint64_t whole(const struct document *d, const char *field)
{
	double v = number(d, field);

	return v > 0 && v < 1.8e19 ? (uint64_t)v : 0;
}

static void text(const struct document *d, const char *field, char *out, size_t cap)
{
	const struct document_field *f = document_find(d, field);

	*out = 0;
	if (f)
		document_text(f, out, cap);
}

static void fill(struct requests_row *row, const struct document *d)
{
	const struct document_field *incomplete = document_find(d, "incomplete_b");
	char path[300], query[200];

	memset(row, 0, sizeof(*row));
	row->start = record_time(document_find(d, "event_timestamp_dt"));
	row->duration = number(d, "duration_ms_f");
	row->io = number(d, "total_io_duration_ms_f");
	row->oncpu = number(d, "oncpu_ms_f");
	row->runq = number(d, "runq_ms_f");
	row->lock = number(d, "lock_wait_ms_f");
	row->client = number(d, "client_wait_ms_f");
	row->stopped = number(d, "safepoint_ms_f");
	row->disk = number(d, "disk_wait_ms_f");
	row->net = number(d, "net_wait_ms_f");
	row->poll = number(d, "poll_wait_ms_f");
	row->pipe = number(d, "pipe_wait_ms_f");
	row->sleep = number(d, "sleep_wait_ms_f");
	row->other = number(d, "other_wait_ms_f");
	row->disk_max = number(d, "disk_max_ms_f");
	row->read_bytes = whole(d, "read_bytes_l");
	row->write_bytes = whole(d, "write_bytes_l");
	row->requests = 1;
	row->longest = row->duration;
	row->status = (int)whole(d, "status_i");
	row->incomplete = incomplete && document_is_true(incomplete);
	text(d, "hostname_s", row->host, sizeof(row->host));
	text(d, "method_s", row->method, sizeof(row->method));
	text(d, "core_s", row->core, sizeof(row->core));
	text(d, "handler_s", row->handler, sizeof(row->handler));
	text(d, "disk_device_s", row->device, sizeof(row->device));
	text(d, "path_s", path, sizeof(path));
	text(d, "query_s", query, sizeof(query));
	snprintf(row->target, sizeof(row->target), "%s%s%s", path, *query ? "?" : "", query);
}

static int cannot_write(struct error *e)
{
	return error_set(e, -EIO, "cannot write to standard output: %s", strerror(errno));
}

static int take_record(struct answer *a, const char *document, size_t size, struct error *e)
{
	struct requests_row row;

	if (document_read(document, size, &a->document, NULL)) {
		a->unreadable++;
		return 0;
	}
	if (a->json)
		return fwrite(document, 1, size, stdout) != size || putchar('\n') == EOF ? cannot_write(e) : 0;
	fill(&row, &a->document);
	requests_table_add_row(a->table, &row);
	return 0;
}

static void take_sum(struct answer *a, const char *value, const struct requests_sum *s)
{
	struct requests_row row = { .requests = s->requests, .duration = s->duration, .io = s->io, .longest = s->duration_max,
				    .oncpu = s->oncpu, .lock = s->lock };

	snprintf(row.handler, sizeof(row.handler), "%.127s", value);
	requests_table_add_sum(a->table, &row);
}

// ---- from stores -------------------------------------------------------------------------------------------------------

static int read_stores(struct answer *a, const struct store_requests *q, struct error *e)
{
	const struct source_names *names = &a->o->source.stores;
	struct store *store[SOURCES_MAX] = { NULL };
	struct requests_answer *answer = NULL;
	int err = 0;

	for (unsigned i = 0; i < names->n && !err; i++) {
		struct store_options o = { .directory = names->name[i], .read_only = true };

		err = store_open(&o, &store[i], e);
	}
	if (!err)
		err = store_requests(store, names->n, q, &answer, e);
	for (unsigned i = 0; !err && i < answer->n; i++)
		err = take_record(a, answer->record[i].document, answer->record[i].size, e);
	for (unsigned i = 0; !err && answer->n_facets && i < answer->facet[0].n; i++)
		take_sum(a, answer->facet[0].value[i].value, &answer->facet[0].value[i].sum);
	requests_answer_free(answer);
	for (unsigned i = 0; i < names->n; i++)
		store_close(store[i]);
	return err;
}

// ---- from collectors ---------------------------------------------------------------------------------------------------

static double sum_part(const json_t *sum, const char *name)
{
	return json_number_value(json_object_get(sum, name));
}

static void take_facet(struct answer *a, const json_t *values)
{
	size_t i;
	json_t *one;

	json_array_foreach(values, i, one) {
		json_int_t requests = json_integer_value(json_object_get(one, "requests"));
		struct requests_sum s = { .requests = requests > 0 ? (uint64_t)requests : 0,
					  .io = sum_part(one, "total_io_duration_ms_f"), .duration = sum_part(one, "duration_ms_f"),
					  .duration_max = sum_part(one, "max_duration_ms_f"), .oncpu = sum_part(one, "oncpu_ms_f"),
					  .lock = sum_part(one, "lock_wait_ms_f") };
		const char *value = json_string_value(json_object_get(one, "value"));

		if (s.requests)
			take_sum(a, value ? value : "", &s);
	}
}

static int take_answer(struct answer *a, const struct buf *body, struct error *e)
{
	json_t *answer = remote_json(body), *one;
	int err = 0;
	size_t i;

	if (!json_is_array(json_object_get(answer, "requests"))) {
		json_decref(answer);
		return error_set(e, -EBADMSG, "the collector's answer is no list of requests: is it a blkprof collector of this version?");
	}
	json_array_foreach(json_object_get(answer, "requests"), i, one) {
		char *document = json_dumps(one, JSON_COMPACT | JSON_REAL_PRECISION(9));

		if (!err && document)
			err = take_record(a, document, strlen(document), e);
		free(document);
	}
	take_facet(a, json_object_get(json_object_get(answer, "facets"), a->o->by ? a->o->by : DEFAULT_BY));
	json_decref(answer);
	return err;
}

static int ask_collector(struct answer *a, struct remote *r, const struct store_requests *q, struct error *e)
{
	struct store_query window = { .from = q->from, .to = q->to, .node = q->node };
	struct buf path = { 0 }, body = { 0 };
	int err;

	buf_printf(&path, "/api/v1/requests?limit=%u", q->limit);
	for (unsigned i = 0; i < a->o->n_where; i++)
		fetch_add(&path, "where", a->o->where[i]);
	if (q->n_facets)
		fetch_add(&path, "facet", q->facet[0]);
	buf_byte(&path, 0);
	err = path.error ? error_set(e, path.error, "out of memory") : remote_get(r, 0, (char *)path.data, &window, &body, NULL, e);
	if (!err)
		err = take_answer(a, &body, e);
	buf_free(&path);
	buf_free(&body);
	return err;
}

static int read_collector(struct answer *a, const struct store_requests *q, struct error *e)
{
	struct remote *r;
	int err = remote_new(&a->o->source, &r, e);

	if (err)
		return err;
	err = ask_collector(a, r, q, e);
	remote_free(r);
	return err;
}

// ---- the command -------------------------------------------------------------------------------------------------------

static int make_question(const struct requests_stored *o, struct where *where, const char *const *by, struct store_requests *ret,
			 struct error *e)
{
	uint64_t now = clock_realtime();
	int err;

	*ret = (struct store_requests){ .node = o->source.node, .n_where = o->n_where, .where = where, .facet = by };
	err = when_parse(o->from ? o->from : DEFAULT_FROM, now, "--from", &ret->from, e);
	if (!err)
		err = when_parse(o->to ? o->to : "now", now, "--to", &ret->to, e);
	if (!err && ret->from >= ret->to)
		err = error_set(e, -EINVAL, "the window ends before it starts: --from must be before --to");
	for (unsigned i = 0; i < o->n_where && !err; i++)
		err = where_parse(o->where[i], &where[i], e);
	return err;
}

static int read_all(struct answer *a, unsigned slowest, struct error *e)
{
	struct where where[WHERE_MAX];
	const char *by = a->o->by ? a->o->by : DEFAULT_BY;
	struct store_requests q;
	int err = make_question(a->o, where, &by, &q, e);

	if (err)
		return err;
	q.limit = slowest;
	q.n_facets = !a->json;
	return a->o->source.stores.n ? read_stores(a, &q, e) : read_collector(a, &q, e);
}

int requests_stored_print(const struct requests_stored *o, unsigned slowest, bool json, struct error *e)
{
	struct answer *a = calloc(1, sizeof(*a));
	int err = 0;

	if (!a)
		return error_set(e, -ENOMEM, "out of memory");
	a->o = o;
	a->json = json;
	a->table = requests_table_new(slowest);
	if (!a->table)
		err = error_set(e, -ENOMEM, "out of memory");
	if (!err)
		err = read_all(a, slowest, e);
	if (!err && !json)
		requests_table_print(a->table, o->by ? o->by : "handler", stdout);
	if (!err && !json && !requests_table_requests(a->table))
		fprintf(stderr, "no request of that time is there: see --from, and --where and --node where given; agents send them when agent.conf has [requests]\n");
	if (!err && a->unreadable)
		fprintf(stderr, "%llu records are not shown: they are none of this version's\n", (unsigned long long)a->unreadable);
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = cannot_write(e);
	requests_table_free(a->table);
	free(a);
	return err;
}
