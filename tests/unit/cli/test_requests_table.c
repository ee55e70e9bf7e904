// SPDX-License-Identifier: Apache-2.0
// The table of requests: the slowest, and means of what is known.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/requests_table.h"

static struct requests_row row(double duration, double io)
{
	struct requests_row r = { .duration = duration, .io = io, .oncpu = io, .runq = io, .lock = -1, .client = io, .requests = 1,
				  .longest = duration, .status = 200 };

	snprintf(r.handler, sizeof(r.handler), "/select");
	snprintf(r.target, sizeof(r.target), "/took/%.0f", duration);
	return r;
}

static char *printed(const struct requests_table *t)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	requests_table_print(t, "handler", to);
	fclose(to);
	return text;
}

static void means_are_of_what_is_known(void **state)
{
	struct requests_table *t = requests_table_new(2);
	struct requests_row known = row(10, 4), unknown = row(30, -1), slow = row(80, 2);
	char *text;

	requests_table_add(t, &known);
	requests_table_add(t, &unknown);
	requests_table_add(t, &slow);
	text = printed(t);
	assert_int_equal(requests_table_requests(t), 3);
	assert_non_null(strstr(text, "        3    40.00    80.00     3.00     3.00        ?  /select\n"));
	assert_null(strstr(text, "/took/10"));
	assert_true(strstr(text, "/took/80") < strstr(text, "/took/30"));
	free(text);
	requests_table_free(t);
}

static void what_took_longest_is_named(void **state)
{
	static const struct {
		struct requests_row row;
		const char *want;
	} cases[] = {
		{ { .duration = 100, .disk = 97, .oncpu = 3, .device = "sda" }, " 97% disk sda " },
		{ { .duration = 100, .disk = 30, .oncpu = 60, .lock = 9, .device = "sda" }, " 60% CPU, 30% disk sda " },
		{ { .duration = 100, .runq = 50, .lock = 50 }, " 50% queue, 50% locks " },
		{ { .duration = 100, .disk = 88, .oncpu = 12, .device = "s\033[1m" }, " 88% disk s" },
		{ { .duration = 100, .other = 100.4 }, " 100% other " },
		{ { .duration = 100, .disk = -1, .oncpu = -1, .runq = -1, .lock = -1, .client = -1, .net = -1, .poll = -1, .pipe = -1, .sleep = -1,
		    .other = -1 }, "?    " },
		{ { .duration = -1, .disk = 5 }, "?    " },
		{ { .duration = 0 }, "?    " },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct requests_table *t = requests_table_new(2);
		char *text;

		requests_table_add(t, &cases[i].row);
		text = printed(t);
		assert_non_null(strstr(text, cases[i].want));
		assert_null(strchr(text, '\033'));
		free(text);
		requests_table_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(means_are_of_what_is_known),
		cmocka_unit_test(what_took_longest_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
