// SPDX-License-Identifier: Apache-2.0
// The bound of a second, and the sums of threads outside of requests.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "request/storm.h"
#include "request/thread_sums.h"

#define MS 1000000ull

struct told {
	unsigned full, sums, threads;
	uint64_t requests, duration, ttfb, slowest_missing;
	uint64_t oncpu;
	bool has[5000];
	struct request_record last;
};

static void tell(void *context, const struct request_record *r)
{
	struct told *t = context;

	t->duration += r->times.value[METRIC_DURATION];
	t->ttfb += r->times.value[METRIC_TTFB];
	t->oncpu += r->times.value[METRIC_ONCPU];
	if (r->kind == REQUEST_ONE) {
		t->full++;
		t->requests++;
		t->has[r->number] = true;
	} else if (r->kind == REQUEST_HANDLER) {
		t->sums++;
		t->requests += r->times.value[METRIC_REQUESTS];
		assert_non_null(r->handler);
		if (r->times.parts > 1)
			assert_non_null(r->times.range);
	} else {
		t->threads++;
	}
	t->last = *r;
}

static void storms_are_bounded_and_exact(void **state)
{
	static struct told told;
	struct breakdown_table m;
	struct storm *s;
	uint64_t sum = 0;

	breakdown_table_init(&m);
	s = storm_new(&m, 100);
	for (unsigned i = 0; i < 5000; i++) {
		struct request_record r = { .kind = REQUEST_ONE, .pid = 1, .number = i, .status = 200 };
		uint64_t took = (i * 7919) % 5000 + 1;

		snprintf(r.handler, sizeof(r.handler), "/h%u", i % 3);
		breakdown_set(&r.times, METRIC_DURATION, took);
		breakdown_set(&r.times, METRIC_TTFB, took);
		breakdown_set(&r.times, METRIC_ONCPU, took / 2);
		sum += took;
		storm_add(s, &r);
	}
	storm_flush(s, 1, 2, tell, &told);
	assert_int_equal(told.full, 100);
	assert_int_equal(told.sums, 3);
	assert_int_equal(told.requests, 5000);
	assert_int_equal(told.duration, sum);
	assert_int_equal(told.ttfb, sum);
	assert_int_equal(storm_summed(s), 4900);
	for (unsigned i = 0; i < 5000; i++)
		if ((i * 7919) % 5000 + 1 > 4950)
			assert_true(told.has[i]);
	memset(&told, 0, sizeof(told));
	storm_flush(s, 2, 3, tell, &told);
	assert_int_equal(told.requests, 0);
	storm_free(s);
}

static void few_are_told_in_full(void **state)
{
	static struct told told;
	struct breakdown_table m;
	struct storm *s;

	breakdown_table_init(&m);
	s = storm_new(&m, 100);
	for (unsigned i = 0; i < 100; i++) {
		struct request_record r = { .kind = REQUEST_ONE, .number = i, .end = 100 - i };

		breakdown_set(&r.times, METRIC_DURATION, i);
		storm_add(s, &r);
	}
	storm_flush(s, 1, 2, tell, &told);
	assert_int_equal(told.full, 100);
	assert_int_equal(told.sums, 0);
	storm_free(s);
}

static void handlers_without_number(void **state)
{
	static struct told told;
	struct breakdown_table m;
	struct storm *s;

	breakdown_table_init(&m);
	s = storm_new(&m, 2);
	for (unsigned i = 0; i < 4000; i++) {
		struct request_record r = { .kind = REQUEST_ONE, .number = i };

		snprintf(r.handler, sizeof(r.handler), "/made/up/%u", i);
		storm_add(s, &r);
	}
	storm_flush(s, 1, 2, tell, &told);
	assert_int_equal(told.requests, 4000);
	assert_int_equal(told.sums, 513);
	storm_free(s);
}

static bool nobody(void *context, uint32_t tid)
{
	return tid == 99;
}

static void threads_less_their_requests(void **state)
{
	struct req_sums sums = { .oncpu = 100 * MS, .disk_read_ops = 5 }, from = { .oncpu = 10 * MS }, to = { .oncpu = 70 * MS, .disk_read_ops = 2 };
	static struct told told;
	struct breakdown_table m;
	struct thread_sums *t;

	breakdown_table_init(&m);
	t = thread_sums_new(&m, 10);
	thread_sums_attribute(t, 5, &from, &to);
	thread_sums_see(t, 1, 5, "merge", &sums, 1000);
	thread_sums_see(t, 1, 99, "busy", &sums, 1000);
	thread_sums_flush(t, false, 2000, nobody, tell, &told);
	assert_int_equal(told.threads, 0);
	thread_sums_flush(t, true, 2000, nobody, tell, &told);
	assert_int_equal(told.threads, 1);
	assert_int_equal(told.oncpu, 40 * MS);
	assert_int_equal(told.last.times.value[METRIC_DISK_OPS], 3);
	assert_string_equal(told.last.comm, "merge");
	assert_int_equal(told.last.attribution, ATTRIBUTION_THREAD_ONLY);
	thread_sums_flush(t, true, 3000, nobody, tell, &told); // nothing more
	assert_int_equal(told.threads, 1);
	thread_sums_ended(t, 99);
	thread_sums_flush(t, false, 4000, nobody, tell, &told);
	assert_int_equal(told.threads, 2);
	for (unsigned i = 0; i < 20; i++)
		thread_sums_see(t, 1, 100 + i, "x", &sums, 5000);
	assert_int_equal(thread_sums_dropped(t), 11);
	thread_sums_free(t);
}

// Ends that were not told: of threads, of those that only a request or a name told of.
static void threads_that_ended_unseen(void **state)
{
	const uint64_t start = 1000000000000000ull, minute = 60000000000ull;
	struct req_sums sums = { .oncpu = 100 * MS }, none = { 0 };
	static struct told told;
	struct breakdown_table m;
	struct thread_sums *t;

	breakdown_table_init(&m);
	t = thread_sums_new(&m, 4);
	thread_sums_name(t, 1, "named");
	thread_sums_attribute(t, 2, &none, &sums);
	thread_sums_see(t, 7, 3, "lives", &sums, start);
	thread_sums_see(t, 7, 99, "busy", &sums, start);
	for (unsigned i = 0; i < 8; i++) {
		assert_string_equal(thread_sums_name_of(t, 1), i < 7 ? "named" : "");
		thread_sums_see(t, 7, 3, "lives", &sums, start + i * minute);
		thread_sums_flush(t, true, start + i * minute, nobody, tell, &told);
	}
	assert_int_equal(told.threads, 2); // the busy one at its end
	thread_sums_see(t, 7, 4, "x", &sums, start + 8 * minute);
	thread_sums_see(t, 7, 5, "x", &sums, start + 8 * minute);
	thread_sums_see(t, 7, 6, "x", &sums, start + 8 * minute);
	assert_int_equal(thread_sums_dropped(t), 0);
	thread_sums_free(t);
}

// A clock that was set back.
static void threads_end_no_sooner_than_they_begin(void **state)
{
	struct req_sums sums = { .oncpu = 100 * MS };
	static struct told told;
	struct breakdown_table m;
	struct thread_sums *t;

	breakdown_table_init(&m);
	t = thread_sums_new(&m, 4);
	thread_sums_see(t, 7, 3, "x", &sums, 5000);
	thread_sums_flush(t, true, 4000, nobody, tell, &told);
	assert_int_equal(told.threads, 1);
	assert_int_equal(told.last.start, 5000);
	assert_int_equal(told.last.end, 5000);
	thread_sums_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(storms_are_bounded_and_exact),
		cmocka_unit_test(few_are_told_in_full),
		cmocka_unit_test(handlers_without_number),
		cmocka_unit_test(threads_less_their_requests),
		cmocka_unit_test(threads_that_ended_unseen),
		cmocka_unit_test(threads_end_no_sooner_than_they_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
