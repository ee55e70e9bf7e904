// SPDX-License-Identifier: Apache-2.0
// Questions about stored requests, against the records themselves.
#include <time.h>

#include "batches.h"

#include "collector/store_requests.h"

#define BATCHES 40
#define PER_BATCH 25
#define RECORDS (BATCHES * PER_BATCH)

struct record {
	double io, duration;
	unsigned status, handler, node;
	uint64_t time;
};

struct fixture {
	char *directory;
	struct store *s;
	struct record record[RECORDS];
};

static const char *const nodes[] = { "n1", "n2" }, *const handlers[] = { "/select", "/update", "/get" };

static struct store *open_quiet(const char *directory)
{
	struct store_options o = { .directory = directory, .no_background = true };
	struct store *s = NULL;

	assert_int_equal(store_open(&o, &s, NULL), 0);
	return s;
}

static void put(struct store *s, unsigned batch, const char *const *text, unsigned n)
{
	struct batch_profile documents[PER_BATCH];
	struct batch b = { .kind = BATCH_REQUESTS, .node = nodes[batch % 2], .sequence = batch + 1, .start = T0 + batch * S,
			   .end = T0 + (batch + 1) * S, .n_requests = n, .requests = documents };
	const struct batch *list = &b;
	int result = -1;

	memset(b.instance, 7, sizeof(b.instance));
	for (unsigned i = 0; i < n; i++)
		documents[i] = (struct batch_profile){ .data = text[i], .size = strlen(text[i]) };
	assert_int_equal(store_put(s, &list, 1, &result, NULL), 0);
	assert_int_equal(result, 0);
}

static void put_made(struct store *s, struct record *all, unsigned batch, uint64_t *random)
{
	char *text[PER_BATCH], when[40];

	for (unsigned i = 0; i < PER_BATCH; i++) {
		struct record *r = &all[batch * PER_BATCH + i];
		time_t second;

		*r = (struct record){ .io = (double)(next_random(random) % 2000), .status = i % 10 ? 200 : 500, .handler = i % 3,
				      .node = batch % 2, .time = T0 + batch * S + i * 1000000 };
		r->duration = r->io + (double)(next_random(random) % 100) / 4;
		second = (time_t)(r->time / S);
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", gmtime(&second));
		assert_true(asprintf(&text[i], "{\"id\":\"%s:%u\",\"kind_s\":\"request\",\"hostname_s\":\"%s\",\"total_io_duration_ms_f\":%g,"
				     "\"duration_ms_f\":%g,\"status_i\":%u,\"handler_s\":\"%s\",\"params_ss\":[\"rows=%u\",\"q=x\"],"
				     "\"event_timestamp_dt\":\"%s.%03uZ\"}",
				     nodes[r->node], batch * PER_BATCH + i, nodes[r->node], r->io, r->duration, r->status, handlers[r->handler],
				     i % 2, when, (unsigned)(r->time / 1000000 % 1000)) > 0);
	}
	put(s, batch, (const char *const *)text, PER_BATCH);
	for (unsigned i = 0; i < PER_BATCH; i++)
		free(text[i]);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	uint64_t random = 5;

	f->directory = make_directory();
	f->s = open_quiet(f->directory);
	for (unsigned b = 0; b < BATCHES; b++)
		put_made(f->s, f->record, b, &random);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	store_close(f->s);
	remove_tree(f->directory);
	free(f->directory);
	free(f);
	return 0;
}

static struct requests_answer *ask(struct fixture *f, struct store_requests q)
{
	struct requests_answer *a = NULL;
	struct error e = { "" };

	if (!q.to) {
		q.from = T0;
		q.to = T0 + BATCHES * S;
	}
	if (store_requests(&f->s, 1, &q, &a, &e))
		fail_msg("%s", e.text);
	return a;
}

static int down(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

static void the_slowest_come_first(void **state)
{
	struct fixture *f = *state;
	static const char *const sorts[] = { NULL, "total_io_duration_ms_f" };
	double want[RECORDS];

	for (unsigned s = 0; s < 2; s++) {
		struct requests_answer *a = ask(f, (struct store_requests){ .limit = 17, .sort = sorts[s] });

		for (unsigned i = 0; i < RECORDS; i++)
			want[i] = s ? f->record[i].io : f->record[i].duration;
		qsort(want, RECORDS, sizeof(*want), down);
		assert_int_equal(a->n, 17);
		for (unsigned i = 0; i < 17; i++)
			assert_true(a->record[i].key == want[i]);
		assert_true(a->read <= RECORDS);
		requests_answer_free(a);
	}
}

// The slowest of a quiet time lie in one batch: the others are not looked into.
static void batches_without_slow_ones_are_not_read(void **state)
{
	struct fixture *f = *state;
	const char *slow = "{\"id\":\"n1:x\",\"duration_ms_f\":90000,\"total_io_duration_ms_f\":80000,\"event_timestamp_dt\":"
			   "\"2023-11-14T22:00:01Z\"}";
	struct where where;
	struct requests_answer *a;

	put(f->s, BATCHES, &slow, 1);
	a = ask(f, (struct store_requests){ .limit = 1 });
	assert_int_equal(a->n, 1);
	assert_int_equal(a->read, 1);
	assert_false(a->whole);
	assert_non_null(strstr(a->record[0].document, "n1:x"));
	requests_answer_free(a);
	assert_int_equal(where_parse("total_io_duration_ms_f>=5000", &where, NULL), 0);
	a = ask(f, (struct store_requests){ .limit = 10, .where = &where, .n_where = 1, .count = true });
	assert_int_equal(a->sum.requests, 1);
	assert_int_equal(a->read, 1);
	assert_true(a->whole);
	requests_answer_free(a);
}

static bool meets(const struct record *r, unsigned i)
{
	switch (i) {
	case 0: return r->status >= 500;
	case 1: return r->handler == 0;
	case 2: return r->handler != 0;
	case 3: return r->io > 1000 && r->io <= 1500;
	case 4: return r->node == 1;
	case 5: return r->handler != 2; // */[su]*, by wildcards below
	default: return false;
	}
}

static void conditions_hold(void **state)
{
	struct fixture *f = *state;
	static const char *const texts[][2] = {
		{ "status_i>=500", NULL }, { "handler_s=/select", NULL }, { "handler_s!=/select", NULL },
		{ "total_io_duration_ms_f>1000", "total_io_duration_ms_f<=1500" }, { "hostname_s=n2", NULL }, { "handler_s!=/g?t", NULL },
	};

	for (unsigned i = 0; i < 6; i++) {
		struct where where[2];
		struct store_requests q = { .where = where, .count = true };
		struct requests_answer *a;
		uint64_t n = 0;
		double io = 0;

		for (unsigned k = 0; k < 2 && texts[i][k]; k++)
			assert_int_equal(where_parse(texts[i][k], &where[q.n_where++], NULL), 0);
		a = ask(f, q);
		for (unsigned k = 0; k < RECORDS; k++) {
			n += meets(&f->record[k], i);
			io += meets(&f->record[k], i) ? f->record[k].io : 0;
		}
		assert_int_equal(a->sum.requests, n);
		assert_true(a->sum.io == io);
		requests_answer_free(a);
	}
}

static void times_partition(void **state)
{
	struct fixture *f = *state;
	static const uint64_t cuts[] = { T0, T0 + 1, T0 + 3 * S + 5000000, T0 + 3 * S + 5000001, T0 + 20 * S, T0 + BATCHES * S };
	uint64_t n = 0;

	for (unsigned i = 0; i + 1 < sizeof(cuts) / sizeof(*cuts); i++) {
		struct requests_answer *a = ask(f, (struct store_requests){ .from = cuts[i], .to = cuts[i + 1], .count = true });

		n += a->sum.requests;
		requests_answer_free(a);
	}
	assert_int_equal(n, RECORDS);
}

static void facets_add_up(void **state)
{
	struct fixture *f = *state;
	static const char *const fields[] = { "handler_s", "status_i", "params_ss", "nothing_s" };
	struct requests_answer *a = ask(f, (struct store_requests){ .facet = fields, .n_facets = 4, .node = "n1" });
	uint64_t n[3] = { 0 };

	for (unsigned i = 0; i < RECORDS; i++)
		n[f->record[i].handler] += f->record[i].node == 0;
	assert_int_equal(a->sum.requests, RECORDS / 2);
	assert_int_equal(a->facet[0].n, 3);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 3; k++)
			if (!strcmp(a->facet[0].value[i].value, handlers[k]))
				assert_int_equal(a->facet[0].value[i].sum.requests, n[k]);
	assert_int_equal(a->facet[1].n, 2);
	assert_string_equal(a->facet[1].value[0].value, "200");
	assert_int_equal(a->facet[2].n, 3);
	assert_string_equal(a->facet[2].value[0].value, "q=x");
	assert_int_equal(a->facet[3].n, 1);
	assert_string_equal(a->facet[3].value[0].value, "");
	requests_answer_free(a);
}

// Sums of handlers count for as many as they stand for, and are no single request.
static void sums_of_handlers_count_in_sums_only(void **state)
{
	struct fixture *f = *state;
	const char *sum[] = { "{\"id\":\"n1:s\",\"kind_s\":\"handler\",\"requests_l\":5000,\"duration_ms_f\":99999,\"max_duration_ms_f\":70,"
			      "\"handler_s\":\"/sum\",\"event_timestamp_dt\":\"2023-11-14T22:00:01Z\"}",
			      "{\"id\":\"n1:t\",\"kind_s\":\"thread\",\"duration_ms_f\":99999,\"event_timestamp_dt\":\"2023-11-14T22:00:01Z\"}" };
	struct requests_answer *a;

	put(f->s, BATCHES, sum, 2);
	a = ask(f, (struct store_requests){ .count = true, .limit = 1 });
	assert_int_equal(a->sum.requests, RECORDS + 5000);
	assert_true(a->sum.duration_max < 3000);
	assert_true(a->record[0].key < 3000);
	requests_answer_free(a);
	a = ask(f, (struct store_requests){ .count = true, .limit = 10, .kind = "thread" });
	assert_int_equal(a->n, 1);
	assert_int_equal(a->sum.requests, 1);
	requests_answer_free(a);
}

// 5000 quick requests took more than a second together, and none of them did.
static void conditions_are_of_requests(void **state)
{
	static const struct {
		const char *where;
		bool holds;
	} cases[] = {
		{ "duration_ms_f>=1000", false }, { "duration_ms_f>=2", true },	   { "duration_ms_f>2", false },  { "duration_ms_f<=70", true },
		{ "duration_ms_f<70", false },	  { "duration_ms_f>=50", false },  { "duration_ms_f!=1", true },  { "duration_ms_f!=50", false },
		{ "duration_ms_f=50", false },	  { "handler_s=/sum", true },	   { "handler_s!=/sum", false },  { "status_i=200", true },
	};
	struct fixture *f = *state;
	const char *sum = "{\"id\":\"n1:s\",\"kind_s\":\"handler\",\"requests_l\":5000,\"duration_ms_f\":99999,\"min_duration_ms_f\":2,"
			  "\"max_duration_ms_f\":70,\"handler_s\":\"/sum\",\"status_i\":200,\"event_timestamp_dt\":\"2023-11-14T22:00:01Z\"}";
	struct requests_answer *a;

	put(f->s, BATCHES, &sum, 1);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct where where;

		assert_int_equal(where_parse(cases[i].where, &where, NULL), 0);
		a = ask(f, (struct store_requests){ .where = &where, .n_where = 1, .count = true });
		assert_int_equal(a->sum.requests >= 5000, cases[i].holds);
		requests_answer_free(a);
	}
}

static void a_batch_of_two_stores_counts_once(void **state)
{
	struct fixture *f = *state;
	char *directory = make_directory();
	struct store *both[2] = { f->s, open_quiet(directory) };
	struct record other[RECORDS];
	uint64_t random = 5;
	struct store_requests q = { .from = T0, .to = T0 + (BATCHES + 5) * S, .count = true };
	struct requests_answer *a;
	const char *more = "{\"id\":\"n1:y\",\"duration_ms_f\":1,\"event_timestamp_dt\":\"2023-11-14T22:00:01Z\"}";

	for (unsigned b = 0; b < BATCHES / 2; b++)
		put_made(both[1], other, b, &random);
	put(both[1], BATCHES + 1, &more, 1);
	assert_int_equal(store_requests(both, 2, &q, &a, NULL), 0);
	assert_int_equal(a->sum.requests, RECORDS + 1);
	requests_answer_free(a);
	store_close(both[1]);
	remove_tree(directory);
	free(directory);
}

static void what_is_no_document_is_counted(void **state)
{
	struct fixture *f = *state;
	const char *bad[] = { "{\"id\":NaN}", "", "{\"id\":\"n1:z\",\"event_timestamp_dt\":\"2023-11-14T22:00:01Z\"}" };
	struct requests_answer *a;

	put(f->s, 1001, bad, 3);
	a = ask(f, (struct store_requests){ .from = T0, .to = T0 + 2000 * S, .count = true });
	assert_int_equal(a->unreadable, 2);
	assert_int_equal(a->sum.requests, RECORDS + 1);
	requests_answer_free(a);
}

static int no_more(void *context, struct error *e)
{
	return error_set(e, -ETIMEDOUT, "enough");
}

static void limits_end_a_question(void **state)
{
	struct fixture *f = *state;
	struct store_limits limits = { .go_on = no_more };
	struct store_requests q = { .from = T0, .to = T0 + BATCHES * S, .count = true, .limits = &limits };
	struct requests_answer *a;
	struct error e;

	assert_int_equal(store_requests(&f->s, 1, &q, &a, &e), -ETIMEDOUT);
	assert_string_equal(e.text, "enough");
	limits = (struct store_limits){ .memory = 100 };
	q.limit = 1000;
	assert_int_equal(store_requests(&f->s, 1, &q, &a, &e), -E2BIG);
	q.limit = REQUESTS_MOST + 1;
	assert_int_equal(store_requests(&f->s, 1, &q, &a, &e), -EINVAL);
	q = (struct store_requests){ .from = T0, .to = T0 + S, .kind = "requests" };
	assert_int_equal(store_requests(&f->s, 1, &q, &a, &e), -EINVAL);
	assert_string_equal(e.text, "'requests' is no kind of records; allowed: request, handler, thread, all");
	q = (struct store_requests){ .from = T0, .to = T0 + S, .facet = (const char *[]){ "handler_s", "core" }, .n_facets = 2 };
	assert_int_equal(store_requests(&f->s, 1, &q, &a, &e), -EINVAL);
	q = (struct store_requests){ .from = T0, .to = T0 + S, .sort = "duration" };
	assert_int_equal(store_requests(&f->s, 1, &q, &a, &e), -EINVAL);
	assert_non_null(strstr(e.text, "'duration' is no field of a record"));
}

static void conditions_are_checked(void **state)
{
	static const char *const bad[] = { "", "=", "a", "=1", "a!1", "a~1", "gc_ms>0", "core_s = x", "core_s==x", "status_i>=abc", "status_i=",
					   "duration_ms_f>50ms", "Duration_ms_f>50", "_s=1" };
	struct where w;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(where_parse(bad[i], &w, NULL), -EINVAL);
	assert_int_equal(where_parse("a_s=", &w, NULL), 0);
	assert_int_equal(where_parse("a_s=x=y", &w, NULL), 0);
	assert_string_equal(w.text, "x=y");
	assert_int_equal(where_parse("id=x", &w, NULL), 0);
	assert_int_equal(where_parse("journal_ms_f>0.5", &w, NULL), 0); // a plugin's
	assert_int_equal(where_parse("event_timestamp_dt>=2026-11-30T10", &w, NULL), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(the_slowest_come_first),
		T(batches_without_slow_ones_are_not_read),
		T(conditions_hold),
		T(times_partition),
		T(facets_add_up),
		T(sums_of_handlers_count_in_sums_only),
		T(conditions_are_of_requests),
		T(a_batch_of_two_stores_counts_once),
		T(what_is_no_document_is_counted),
		T(limits_end_a_question),
		cmocka_unit_test(conditions_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
