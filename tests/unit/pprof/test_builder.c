// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "sample_profile.h"

static struct buf encoded(struct pprof_builder *b)
{
	struct buf out = { 0 };

	assert_non_null(b);
	assert_int_equal(pprof_encode(b, &out), 0);
	pprof_builder_free(b);
	return out;
}

// PPROF_GOLDEN_WRITE=1 in the environment writes the file instead.
static void golden_bytes(void **state)
{
	struct buf got = encoded(sample_profile()), want = { 0 };
	const char *path = TEST_DATA "/pprof/builder.pb";

	if (getenv("PPROF_GOLDEN_WRITE"))
		assert_int_equal(file_write_atomic(path, got.data, got.len, NULL), 0);
	assert_int_equal(file_read(path, 1 << 20, &want), 0);
	assert_int_equal(got.len, want.len);
	assert_memory_equal(got.data, want.data, want.len);
	buf_free(&got);
	buf_free(&want);
}

static void equal_input_gives_equal_bytes(void **state)
{
	struct buf a = encoded(sample_profile()), b = encoded(sample_profile());

	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, b.len);
	buf_free(&a);
	buf_free(&b);
}

static void an_empty_profile_by_the_byte(void **state)
{
	static const uint8_t want[] =
		"\x0a\x04\x08\x01\x10\x02" "\x0a\x04\x08\x03\x10\x04" "\x0a\x04\x08\x05\x10\x06" "\x0a\x04\x08\x07\x10\x06"
		"\x0a\x04\x08\x08\x10\x04"
		"\x1a\x06\x08\x01\x28\x0a\x38\x01"
		"\x32\x00" "\x32\x06io_ops" "\x32\x05" "count" "\x32\x07io_time" "\x32\x0bnanoseconds"
		"\x32\x0aread_bytes" "\x32\x05" "bytes" "\x32\x0bwrite_bytes" "\x32\x03" "cpu" "\x32\x02io" "\x32\x08[node x]"
		"\x48\x05\x50\x07" "\x5a\x04\x08\x09\x10\x02" "\x60\x01" "\x70\x03";
	struct pprof_builder *b = pprof_builder_new("[node x]");
	struct buf got;

	pprof_set_time(b, 5, 7);
	got = encoded(b);
	assert_int_equal(got.len, sizeof(want) - 1);
	assert_memory_equal(got.data, want, got.len);
	buf_free(&got);
}

static void ids_are_dense_and_interned(void **state)
{
	struct pprof_builder *b = pprof_builder_new("[node x]");
	struct pprof_mapping_info m = { 1, 2, 3, "/a", NULL, true, false, false, false };
	struct pprof_line_info f = { "f", NULL, NULL, 0 }, g = { "f", "_f", NULL, 0 };

	assert_int_equal(pprof_add_mapping(b, &m), 2);
	assert_int_equal(pprof_add_mapping(b, &m), 2);
	m.offset = 4;
	assert_int_equal(pprof_add_mapping(b, &m), 3);
	assert_int_equal(pprof_add_frame(b, "f"), 1);
	assert_int_equal(pprof_add_location(b, 1, 0, &f, 1), 1);
	assert_int_equal(pprof_add_location(b, 2, 0, &f, 1), 2);
	assert_int_equal(pprof_add_location(b, 2, 0, &g, 1), 3);
	for (unsigned i = 0; i < 5000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "frame %u", i);
		assert_int_equal(pprof_add_frame(b, name), 4 + i);
	}
	assert_int_equal(pprof_add_frame(b, "frame 17"), 21);
	pprof_builder_free(b);
}

static void sums_saturate(void **state)
{
	struct pprof_builder *b = pprof_builder_new("[node x]"), *c = pprof_builder_new("[node x]");
	int64_t near[PPROF_TYPES] = { 1, INT64_MAX - 1, 0, 0, 0 }, more[PPROF_TYPES] = { 1, 5, 0, 0, 0 };
	int64_t most[PPROF_TYPES] = { 2, INT64_MAX, 0, 0, 0 };
	uint32_t f = pprof_add_frame(b, "f"), h = pprof_add_frame(c, "f");
	struct buf got, want;

	assert_int_equal(pprof_add_sample(b, &f, 1, near, NULL, 0), 0);
	assert_int_equal(pprof_add_sample(b, &f, 1, more, NULL, 0), 0);
	assert_int_equal(pprof_add_sample(c, &h, 1, most, NULL, 0), 0);
	got = encoded(b);
	want = encoded(c);
	assert_int_equal(got.len, want.len);
	assert_memory_equal(got.data, want.data, got.len);
	buf_free(&got);
	buf_free(&want);
}

static void unknown_locations_are_refused(void **state)
{
	struct pprof_builder *b = pprof_builder_new("[node x]");
	int64_t v[PPROF_TYPES] = { 1 };
	uint32_t bad[] = { 0, 2 };

	pprof_add_frame(b, "f");
	assert_int_equal(pprof_add_sample(b, &bad[0], 1, v, NULL, 0), -EINVAL);
	assert_int_equal(pprof_add_sample(b, &bad[1], 1, v, NULL, 0), -EINVAL);
	pprof_builder_free(b);
}

static void a_nameless_frame_gets_a_name(void **state)
{
	struct pprof_builder *b = pprof_builder_new(NULL);
	struct pprof_line_info empty = { "", NULL, NULL, 0 };
	uint32_t unknown = pprof_add_frame(b, "[unknown]");

	assert_int_equal(pprof_add_location(b, 1, 0, &empty, 1), unknown);
	assert_int_equal(pprof_add_location(b, 1, 0, NULL, 0), unknown);
	pprof_builder_free(b);
}

static void gzip_has_no_name_and_no_time(void **state)
{
	struct buf out = { 0 };

	assert_int_equal(pprof_gzip("hello", 5, &out), 0);
	assert_true(out.len > 18);
	assert_memory_equal(out.data, "\x1f\x8b\x08\x00\x00\x00\x00\x00", 8);
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_bytes),
		cmocka_unit_test(equal_input_gives_equal_bytes),
		cmocka_unit_test(an_empty_profile_by_the_byte),
		cmocka_unit_test(ids_are_dense_and_interned),
		cmocka_unit_test(sums_saturate),
		cmocka_unit_test(unknown_locations_are_refused),
		cmocka_unit_test(a_nameless_frame_gets_a_name),
		cmocka_unit_test(gzip_has_no_name_and_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
