// SPDX-License-Identifier: Apache-2.0
// What a JVM stood still during a request.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/request/traffic.h"

static void stands_still(struct traffic *t, uint64_t gc, uint64_t safepoint)
{
	t->gc += gc;
	t->safepoint += safepoint;
	t->now += safepoint;
}

static void assert_paused(const struct traffic *t, unsigned i, uint64_t gc, uint64_t safepoint)
{
	assert_int_equal(t->got[i].times.state[METRIC_GC], VALUE_SET);
	assert_int_equal(value(&t->got[i], METRIC_GC), gc);
	assert_int_equal(t->got[i].times.state[METRIC_SAFEPOINT], VALUE_SET);
	assert_int_equal(value(&t->got[i], METRIC_SAFEPOINT), safepoint);
}

static void each_request_has_its_part(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	t->jvm = JVM_SEEN;
	stands_still(t, 50 * MS, 60 * MS);
	reads(t, 1, 2, GET);
	reads(t, 2, 3, GET);
	stands_still(t, 4 * MS, 5 * MS);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	stands_still(t, 0, 7 * MS);
	writes(t, 2, 3, OK);
	asks_next(t, 2, 3);
	reads(t, 1, 2, GET);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 3);
	assert_paused(t, 0, 4 * MS, 5 * MS);
	assert_paused(t, 1, 4 * MS, 12 * MS);
	assert_paused(t, 2, 0, 0);
	traffic_free(t);
}

// It stands still with all of its threads: who answers does not matter, as it does for the thread's own times.
static void handed_over(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	t->jvm = JVM_SEEN;
	reads(t, 1, 2, GET);
	stands_still(t, 4 * MS, 5 * MS);
	writes(t, 1, 3, OK);
	asks_next(t, 1, 3);
	assert_int_equal(t->got[0].attribution, ATTRIBUTION_HANDLER_THREAD);
	assert_paused(t, 0, 4 * MS, 5 * MS);
	traffic_free(t);
}

static void body_on_another_thread(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	t->jvm = JVM_SEEN;
	reads(t, 1, 2, "POST /x HTTP/1.1\r\nContent-Length: 4\r\n\r\n");
	stands_still(t, 4 * MS, 5 * MS);
	reads(t, 1, 3, "body");
	stands_still(t, 1 * MS, 1 * MS);
	writes(t, 1, 3, OK);
	asks_next(t, 1, 3);
	assert_int_equal(t->got[0].attribution, ATTRIBUTION_EXACT);
	assert_paused(t, 0, 5 * MS, 6 * MS);
	traffic_free(t);
}

// The second of a pipeline begins when the first was answered.
static void pipelined(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	t->jvm = JVM_SEEN;
	reads(t, 1, 2, GET GET);
	stands_still(t, 4 * MS, 5 * MS);
	writes(t, 1, 2, OK);
	stands_still(t, 1 * MS, 2 * MS);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 2);
	assert_paused(t, 0, 4 * MS, 5 * MS);
	assert_paused(t, 1, 1 * MS, 2 * MS);
	traffic_free(t);
}

// Behind a request that found no room: it begins when that one was answered.
static void behind_one_that_is_not_followed(void **state)
{
	struct traffic *t = traffic_new(0, 1, 0);

	t->jvm = JVM_SEEN;
	reads(t, 2, 3, GET);
	reads(t, 1, 2, GET);
	writes(t, 2, 3, OK);
	asks_next(t, 2, 3);
	reads(t, 1, 2, GET);
	stands_still(t, 4 * MS, 5 * MS);
	writes(t, 1, 2, OK);
	stands_still(t, 1 * MS, 2 * MS);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 2);
	assert_paused(t, 1, 1 * MS, 2 * MS);
	assert_int_equal(value(&t->got[1], METRIC_DURATION), 2 * MS);
	traffic_free(t);
}

static void one(struct traffic *t, uint32_t before, uint32_t after)
{
	t->jvm = before;
	reads(t, 1, 2, GET);
	t->jvm = after;
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
}

static void not_seen_is_missing(void **state)
{
	static const uint32_t cases[][2] = { { JVM_UNSEEN, JVM_UNSEEN }, { JVM_NONE, JVM_SEEN }, { JVM_SEEN, JVM_NONE },
					     { JVM_NONE, JVM_UNSEEN }, { JVM_UNSEEN, JVM_SEEN }, { 7, 7 } };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct traffic *t = traffic_new(0, 0, 0);

		one(t, cases[i][0], cases[i][1]);
		assert_int_equal(t->got[0].times.state[METRIC_GC], VALUE_MISSING);
		assert_int_equal(t->got[0].times.state[METRIC_SAFEPOINT], VALUE_MISSING);
		// The rest is whole.
		assert_false(t->got[0].incomplete);
		assert_int_equal(t->got[0].attribution, ATTRIBUTION_EXACT);
		traffic_free(t);
	}
}

static void other_programs_have_none(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	one(t, JVM_NONE, JVM_NONE);
	assert_int_equal(t->got[0].times.state[METRIC_GC], VALUE_ZERO);
	assert_int_equal(t->got[0].times.state[METRIC_SAFEPOINT], VALUE_ZERO);
	traffic_free(t);
}

// Clocks of two CPUs differ by some ns; another process with its number begins anew.
static void sums_that_shrink(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	t->jvm = JVM_SEEN;
	t->gc = (uint64_t)-20;
	t->safepoint = 5000 * MS;
	reads(t, 1, 2, GET);
	t->gc = (uint64_t)-40;
	t->safepoint = 0;
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->got[0].times.state[METRIC_GC], VALUE_SET);
	assert_int_equal(value(&t->got[0], METRIC_GC), 0);
	assert_int_equal(t->got[0].times.state[METRIC_SAFEPOINT], VALUE_MISSING);
	traffic_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_request_has_its_part), cmocka_unit_test(handed_over),	     cmocka_unit_test(body_on_another_thread),
		cmocka_unit_test(pipelined),		     cmocka_unit_test(not_seen_is_missing), cmocka_unit_test(other_programs_have_none),
		cmocka_unit_test(sums_that_shrink),	     cmocka_unit_test(behind_one_that_is_not_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
