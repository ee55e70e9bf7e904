// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "common/quote.h"

static void quoted_is(const char *text, size_t len, const char *expected)
{
	struct buf b = { 0 };

	quote_append(&b, text, len);
	assert_int_equal(b.error, 0);
	assert_int_equal(b.len, strlen(expected));
	assert_memory_equal(b.data, expected, b.len);
	buf_free(&b);
}

static void quotes(void **state)
{
	(void)state;
	quoted_is("", 0, "\"\"");
	quoted_is("plain", 5, "\"plain\"");
	quoted_is("plain", 3, "\"pla\"");
	quoted_is("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
	quoted_is("x\ny\x7fz", 5, "\"x?y?z\"");
	quoted_is("\xff\xc3\xa9", 3, "\"?\xc3\xa9\"");
	quoted_is("a\0b", 3, "\"a\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(quotes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
