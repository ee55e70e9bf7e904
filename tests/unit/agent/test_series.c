// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/series.h"

#define SECOND 1000000000ull

static double sum(const double *v)
{
	double s = 0;

	for (unsigned i = 0; i < SERIES_STEPS; i++)
		s += v[i];
	return s;
}

static void steps(void **state)
{
	struct series s = { 0 };

	series_start(&s, SECOND);
	series_add(&s, 3, OP_READ, SECOND - 5, 1, 10); // before the start
	series_add(&s, 3, OP_READ, SECOND + SERIES_STEP_NS, 2, 20);
	series_add(&s, AGGREGATE_NO_DISK, OP_READ, SECOND, 7, 7); // a CPU sample is no I/O
	assert_true(s.of[3][OP_READ]->ops[0] == 1 && s.of[3][OP_READ]->ops[1] == 2);
	assert_true(s.of[3][OP_READ]->time_ns[1] == 20);
	assert_null(s.of[3][OP_WRITE]);
	assert_int_equal(s.n, 2);
	series_free(&s);
}

// However long the window: no more steps, nothing lost.
static void longer(void **state)
{
	struct series s = { 0 };

	series_start(&s, 0);
	for (uint64_t t = 0; t < 3600 * SECOND; t += SECOND)
		series_add(&s, 0, OP_WRITE, t, 1, 100);
	assert_true(s.step * SERIES_STEPS >= 3600 * SECOND && s.step * SERIES_STEPS / 2 < 3600 * SECOND);
	assert_true(sum(s.of[0][OP_WRITE]->ops) == 3600);
	assert_true(sum(s.of[0][OP_WRITE]->time_ns) == 360000);
	for (unsigned i = 0; i + 1 < s.n; i++)
		assert_true(s.of[0][OP_WRITE]->ops[i] == (double)(s.step / SECOND));
	series_free(&s);
}

static void merged(void **state)
{
	struct series a = { 0 }, b = { 0 };

	series_start(&a, 0);
	series_start(&b, 10 * SECOND);
	for (uint64_t t = 0; t < 10; t++) {
		series_add(&a, 0, OP_READ, t * SECOND, 1, 5);
		series_add(&b, 0, OP_READ, (10 + t) * SECOND, 2, 5);
	}
	series_merge(&a, &b);
	assert_true(sum(a.of[0][OP_READ]->ops) == 30);
	assert_true(sum(a.of[0][OP_READ]->time_ns) == 100);
	assert_true(a.of[0][OP_READ]->ops[0] == 1 && a.of[0][OP_READ]->ops[11 * SECOND / a.step] == 2);
	series_free(&a);
	series_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(steps), cmocka_unit_test(longer), cmocka_unit_test(merged) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
