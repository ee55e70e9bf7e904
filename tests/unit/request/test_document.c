// SPDX-License-Identifier: Apache-2.0
// Flat documents: what is one, what is none, and the values in it.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "request/document.h"

static struct document doc;

static int read_text(const char *text)
{
	struct error e = { "" };
	int err = document_read(text, strlen(text), &doc, &e);

	if (err)
		assert_true(e.text[0]);
	return err;
}

static void values_come_out(void **state)
{
	char out[64];
	int64_t n;

	assert_int_equal(read_text(" {\"id\" : \"a\\u00e9\\n\\ud83d\\ude00\\udc00\", \"n_i\":-42,\"f_f\":1.5e3, \"b_b\":true,\"c_b\":false,"
				   "\"s_ss\":[ \"x,]\" , \"y\"], \"e_ss\":[]} "), 0);
	assert_int_equal(doc.n, 7);
	assert_int_equal(document_text(document_find(&doc, "id"), out, sizeof(out)), 11);
	assert_string_equal(out, "a\xc3\xa9\n\xf0\x9f\x98\x80\xef\xbf\xbd");
	assert_int_equal(document_text(document_find(&doc, "id"), out, 3), 11);
	assert_string_equal(out, "a"); // never half a character
	assert_int_equal(document_integer(document_find(&doc, "n_i"), &n), 0);
	assert_int_equal(n, -42);
	assert_int_equal(document_integer(document_find(&doc, "f_f"), &n), -EINVAL);
	assert_true(document_double(document_find(&doc, "f_f")) == 1500);
	assert_true(document_is_true(document_find(&doc, "b_b")));
	assert_false(document_is_true(document_find(&doc, "c_b")));
	assert_null(document_find(&doc, "i"));
	assert_null(document_find(&doc, "idx"));
}

static void arrays_come_out(void **state)
{
	struct document_field one;
	const char *at = NULL;
	char out[16];

	assert_int_equal(read_text("{\"s_ss\":[ \"x,]\" ,\"y\"],\"e_ss\":[ ],\"t_s\":\"z\"}"), 0);
	assert_true(document_next_text(&doc.field[0], &at, &one));
	document_text(&one, out, sizeof(out));
	assert_string_equal(out, "x,]");
	assert_true(document_next_text(&doc.field[0], &at, &one));
	document_text(&one, out, sizeof(out));
	assert_string_equal(out, "y");
	assert_false(document_next_text(&doc.field[0], &at, &one));
	at = NULL;
	assert_false(document_next_text(&doc.field[1], &at, &one));
	at = NULL;
	assert_false(document_next_text(&doc.field[2], &at, &one));
}

static void what_is_none_is_refused(void **state)
{
	static const char *const bad[] = {
		"", "{", "}", "[]", "{\"a\":}", "{\"a\":1", "{\"a\":1,}", "{\"a\" 1}", "{a:1}", "{\"a\":NaN}", "{\"a\":-Infinity}", "{\"a\":null}",
		"{\"a\":{}}", "{\"a\":[1]}", "{\"a\":[\"x\"}", "{\"a\":[\"x\",]}", "{\"a\":\"x}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12g4\"}",
		"{\"a\":\"\t\"}", "{\"a\":01}", "{\"a\":1.}", "{\"a\":.5}", "{\"a\":1e}", "{\"a\":+1}", "{\"a\":-}", "{\"a\":tru}",
		"{\"a\":1}x", "{\"a\":1}{}", "{\"\":1}", "{\"1a\":1}", "{\"a b\":1}", "{\"a\":1,\"a\":2}", "{\"a\":\"\xff\"}",
		"{\"a\":\"\xed\xa0\x80\"}", "{\"a\":[\"\\\"]}",
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(read_text(bad[i]), -EBADMSG);
	assert_int_equal(read_text("{}"), 0);
}

static void limits_hold(void **state)
{
	static char text[64 * DOCUMENT_FIELDS_MAX];
	size_t len = 0;

	for (unsigned i = 0; i <= DOCUMENT_FIELDS_MAX; i++)
		len += (size_t)sprintf(text + len, "%c\"f%u\":1", i ? ',' : '{', i);
	strcpy(text + len, "}");
	assert_int_equal(read_text(text), -EBADMSG);
	strcpy(strrchr(text, ','), "}"); // one less
	assert_int_equal(read_text(text), 0);
	assert_int_equal(doc.n, DOCUMENT_FIELDS_MAX);
}

static void whole_numbers_have_limits(void **state)
{
	int64_t n;

	assert_int_equal(read_text("{\"a\":9223372036854775807,\"b\":9223372036854775808,\"c\":-9223372036854775808,"
				   "\"d\":-9223372036854775809,\"e\":0,\"f\":-0,\"g\":1e400}"), 0);
	assert_int_equal(document_integer(&doc.field[0], &n), 0);
	assert_true(n == INT64_MAX);
	assert_int_equal(document_integer(&doc.field[1], &n), -ERANGE);
	assert_int_equal(document_integer(&doc.field[2], &n), 0);
	assert_true(n == INT64_MIN);
	assert_int_equal(document_integer(&doc.field[3], &n), -ERANGE);
	assert_int_equal(document_integer(&doc.field[5], &n), 0);
	assert_int_equal(n, 0);
	assert_true(isinf(document_double(&doc.field[6])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_out),	  cmocka_unit_test(arrays_come_out),
		cmocka_unit_test(what_is_none_is_refused), cmocka_unit_test(limits_hold),
		cmocka_unit_test(whole_numbers_have_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
