// SPDX-License-Identifier: Apache-2.0
// Where bodies end, in one piece, byte by byte, and out of sight.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "request/body.h"

static struct piece piece_of(const char *text, uint64_t total)
{
	return (struct piece){ text, strlen(text), total ? total : strlen(text) };
}

static void of_a_length(void **state)
{
	struct piece p = piece_of("hello, world", 0);
	struct body b;

	body_of_length(&b, 5);
	assert_int_equal(body_take(&b, &p), 5);
	assert_int_equal(b.kind, BODY_NONE);
	assert_string_equal(p.at, ", world");
	body_of_length(&b, 0);
	assert_int_equal(b.kind, BODY_NONE);
	assert_int_equal(body_take(&b, &p), 0);
}

static void longer_than_what_is_kept(void **state)
{
	struct piece p = piece_of("hell", 100000);
	struct body b;

	body_of_length(&b, 150000);
	assert_int_equal(body_take(&b, &p), 100000);
	assert_int_equal(b.left, 50000);
	p = piece_of("", 50001);
	assert_int_equal(body_take(&b, &p), 50000);
	assert_int_equal(p.total, 1);
	assert_int_equal(b.kind, BODY_NONE);
}

#define CHUNKS "5\r\nhello\r\n00A;name=\"v\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"

static void chunks(void **state)
{
	struct piece p = piece_of(CHUNKS "GET", 0);
	struct body b;

	body_in_chunks(&b);
	assert_int_equal(body_take(&b, &p), strlen(CHUNKS));
	assert_int_equal(b.kind, BODY_NONE);
	assert_string_equal(p.at, "GET");
}

static void chunks_in_single_bytes(void **state)
{
	struct body b;

	body_in_chunks(&b);
	for (const char *at = CHUNKS; *at; at++) {
		struct piece p = { at, 1, 1 };

		assert_true(body_is_followed(&b));
		assert_int_equal(body_take(&b, &p), 1);
	}
	assert_int_equal(b.kind, BODY_NONE);
}

// Data may be out of sight, what is between them not.
static void chunks_out_of_sight(void **state)
{
	struct piece p = piece_of("1000\r\nabc", 6 + 4096);
	struct body b;

	body_in_chunks(&b);
	body_take(&b, &p);
	assert_true(body_is_followed(&b));
	p = piece_of("\r\n0\r\n\r\n", 0);
	body_take(&b, &p);
	assert_int_equal(b.kind, BODY_NONE);
	body_in_chunks(&b);
	p = piece_of("1000\r\nabc", 6 + 4096 + 1);
	assert_int_equal(body_take(&b, &p), 6 + 4096 + 1);
	assert_int_equal(b.kind, BODY_OPEN);
}

static void no_chunks(void **state)
{
	static const char *const bad[] = { "hello", "-5\r\n", "\r\n", "5\r\nhelloX", "fffffffffffffffff\r\n", " 5\r\n", "5x\r\n" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct piece p = piece_of(bad[i], 0);
		struct body b;

		body_in_chunks(&b);
		assert_int_equal(body_take(&b, &p), strlen(bad[i]));
		assert_int_equal(b.kind, BODY_OPEN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_a_length),		  cmocka_unit_test(longer_than_what_is_kept),
		cmocka_unit_test(chunks),		  cmocka_unit_test(chunks_in_single_bytes),
		cmocka_unit_test(chunks_out_of_sight), cmocka_unit_test(no_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
