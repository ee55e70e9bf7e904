// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/procstat.h"

#define REST " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35"

static void a_name_may_hold_anything(void **state)
{
	struct procstat s;

	assert_int_equal(procstat_parse("42 (a) S (b c) D" REST " 3 0 0", &s), 0);
	assert_string_equal(s.comm, "a) S (b c");
	assert_int_equal(s.state, 'D');
	assert_int_equal(s.cpu, 3);
	assert_false(s.kernel);
}

static void threads_of_the_kernel_are_known(void **state)
{
	struct procstat s;

	assert_int_equal(procstat_parse("10 (kworker/0:0H) I 2 0 0 0 -1 69238880 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 "
				        "27 28 29 30 31 32 33 34 35 1 0", &s), 0);
	assert_true(s.kernel);
	assert_int_equal(s.cpu, 1);
}

static void what_is_cut_off_is_refused(void **state)
{
	static const char text[] = "42 (bash) R" REST " 1";
	char cut[sizeof(text)];
	struct procstat s;

	for (size_t len = 0; len < sizeof(text) - 2; len++) {
		memcpy(cut, text, len);
		cut[len] = 0;
		assert_int_equal(procstat_parse(cut, &s), -EINVAL);
	}
	assert_int_equal(procstat_parse(text, &s), 0);
}

static void our_own_is_read(void **state)
{
	struct procstat s;

	assert_int_equal(procstat_read("/proc/self", &s), 0);
	assert_int_equal(s.state, 'R');
	assert_int_equal(procstat_read("/proc/0", &s), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_may_hold_anything),
		cmocka_unit_test(threads_of_the_kernel_are_known),
		cmocka_unit_test(what_is_cut_off_is_refused),
		cmocka_unit_test(our_own_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
