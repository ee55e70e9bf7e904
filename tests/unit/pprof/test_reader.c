// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "message.h"
#include "pprof/builder.h"
#include "sample_profile.h"

static struct pprof_reader *merged(const struct tiny *a, const struct tiny *b)
{
	struct pprof_reader *r = pprof_reader_new(NULL);
	struct error e = { { 0 } };

	assert_non_null(r);
	if (add_tiny(r, a, &e) || add_tiny(r, b, &e))
		fail_msg("%s", e.text);
	return r;
}

static void refused(const struct tiny *a, const struct tiny *b, int code, const char *why)
{
	struct pprof_reader *r = pprof_reader_new(NULL);
	struct error e = { { 0 } };
	int err = add_tiny(r, a, &e);

	if (!err)
		err = add_tiny(r, b, &e);
	assert_int_equal(err, code);
	assert_non_null(strstr(e.text, why));
	pprof_reader_free(r);
}

static void a_profile_of_ours_comes_back_as_it_was(void **state)
{
	struct pprof_builder *b = sample_profile();
	struct pprof_reader *r = pprof_reader_new(NULL), *again = pprof_reader_new(NULL);
	struct buf first = { 0 }, gz = { 0 }, second = { 0 }, third = { 0 };
	struct error e = { { 0 } };

	assert_int_equal(pprof_encode(b, &first), 0);
	assert_int_equal(pprof_gzip(first.data, first.len, &gz), 0);
	assert_int_equal(add_bytes(r, &gz, &e), 0);
	assert_int_equal(profile_encode(pprof_reader_finish(r), &second), 0);
	assert_int_equal(add_bytes(again, &second, &e), 0);
	assert_int_equal(profile_encode(pprof_reader_finish(again), &third), 0);
	assert_int_equal(second.len, third.len);
	assert_memory_equal(second.data, third.data, third.len);
	assert_int_equal(pprof_reader_finish(r)->samples.n, 3);
	assert_int_equal(pprof_reader_finish(r)->n_types, PPROF_TYPES);
	assert_int_equal(pprof_reader_finish(r)->duration_ns, 10000000000);
	pprof_builder_free(b);
	pprof_reader_free(r);
	pprof_reader_free(again);
	buf_free(&first);
	buf_free(&gz);
	buf_free(&second);
	buf_free(&third);
}

static void equal_samples_add_up_across_address_spaces(void **state)
{
	struct tiny a = tiny_default(), b = tiny_default();
	struct pprof_reader *r;
	const struct profile *p;

	b.start = 0x7f0000000000;
	b.value = 7;
	r = merged(&a, &b);
	p = pprof_reader_finish(r);
	assert_int_equal(p->samples.n, 1);
	assert_int_equal(p->mappings.n, 1);
	assert_int_equal(p->locations.n, 2);
	assert_int_equal(p->values[0], 12);
	pprof_reader_free(r);
}

static void other_labels_and_names_stay_apart(void **state)
{
	struct tiny a = tiny_default(), b = tiny_default();
	struct pprof_reader *r;

	b.value_of_label = "b";
	r = merged(&a, &b);
	assert_int_equal(pprof_reader_finish(r)->samples.n, 2);
	pprof_reader_free(r);
	b = tiny_default();
	b.leaf = "other";
	r = merged(&a, &b);
	assert_int_equal(pprof_reader_finish(r)->samples.n, 2);
	pprof_reader_free(r);
}

static void sums_saturate(void **state)
{
	struct tiny a = tiny_default(), b = tiny_default();
	struct pprof_reader *r;

	a.value = INT64_MAX - 1;
	r = merged(&a, &b);
	assert_int_equal(pprof_reader_finish(r)->values[0], INT64_MAX);
	pprof_reader_free(r);
}

static void duration_is_the_union_of_the_windows(void **state)
{
	struct tiny a = tiny_default(), b = tiny_default();
	struct pprof_reader *r;

	b.time_ns = 1050; // 1000..1100 and 1050..1150
	r = merged(&b, &a);
	assert_int_equal(pprof_reader_finish(r)->duration_ns, 150);
	assert_int_equal(pprof_reader_finish(r)->time_ns, 1000);
	pprof_reader_free(r);
	b.time_ns = 5000; // apart
	r = merged(&a, &b);
	assert_int_equal(pprof_reader_finish(r)->duration_ns, 200);
	pprof_reader_free(r);
	b.time_ns = 1000; // the same
	r = merged(&a, &b);
	assert_int_equal(pprof_reader_finish(r)->duration_ns, 100);
	pprof_reader_free(r);
	b.time_ns = 0; // nobody knows when
	r = merged(&a, &b);
	assert_int_equal(pprof_reader_finish(r)->duration_ns, 200);
	pprof_reader_free(r);
}

static void units_become_the_finer_one(void **state)
{
	struct tiny ns = tiny_default(), us = tiny_default();
	struct pprof_reader *r;
	const struct profile *p;

	us.unit = "us";
	r = merged(&us, &ns);
	p = pprof_reader_finish(r);
	assert_int_equal(p->values[0], 5005);
	assert_string_equal(profile_text(p, p->types[0].unit), "nanoseconds");
	pprof_reader_free(r);
	r = merged(&ns, &us);
	assert_int_equal(pprof_reader_finish(r)->values[0], 5005);
	pprof_reader_free(r);
	us.value = INT64_MAX / 10;
	r = merged(&ns, &us);
	assert_int_equal(pprof_reader_finish(r)->values[0], INT64_MAX);
	pprof_reader_free(r);
}

static void what_does_not_fit_is_refused(void **state)
{
	struct tiny a = tiny_default(), b = tiny_default();

	b.unit = "bytes";
	refused(&a, &b, -EINVAL, "its cpu is in 'bytes'");
	b = tiny_default();
	b.period = "wall";
	refused(&a, &b, -EINVAL, "samples 'wall/nanoseconds'");
	b = tiny_default();
	b.type = "wall";
	refused(&a, &b, -EINVAL, "none of the sample types");
	b = tiny_default();
	b.value = -1;
	refused(&a, &b, -EINVAL, "a value below zero");
}

static void types_that_not_all_have_are_dropped(void **state)
{
	struct pprof_builder *b = sample_profile();
	struct pprof_reader *r = pprof_reader_new(NULL);
	struct tiny t = tiny_default();
	struct buf ours = { 0 }, theirs;
	struct error e = { { 0 } };
	int64_t sum = 0;
	const struct profile *p;

	// It has cpu/nanoseconds only; ours has that as the last of five.
	t.period = "io";
	t.period_unit = "count";
	theirs = tiny_profile(&t);
	assert_int_equal(pprof_encode(b, &ours), 0);
	if (add_bytes(r, &ours, &e) || add_bytes(r, &theirs, &e))
		fail_msg("%s", e.text);
	p = pprof_reader_finish(r);
	assert_int_equal(p->n_types, 1);
	assert_string_equal(profile_text(p, p->default_type), "cpu");
	for (uint32_t i = 0; i < p->samples.n; i++)
		sum += p->values[i];
	assert_int_equal(sum, 3000005);
	pprof_reader_free(r);
	pprof_builder_free(b);
	buf_free(&ours);
	buf_free(&theirs);
}

static void errors_name_the_byte(void **state)
{
	struct tiny t = tiny_default();
	struct buf b = tiny_profile(&t);
	struct pprof_reader *r = pprof_reader_new(NULL);
	struct error e = { { 0 } };
	char where[32];

	snprintf(where, sizeof(where), "byte %zu:", b.len);
	put_number(&b, 3, 1);
	assert_int_equal(add_bytes(r, &b, &e), -EBADMSG);
	assert_ptr_equal(strstr(e.text, where), e.text);
	pprof_reader_free(r);
	buf_free(&b);
}

static void memory_is_bounded(void **state)
{
	struct pprof_limits small = { .message = 1 << 20, .memory = 64 << 10, .frames = 1 << 20 };
	struct tiny t = tiny_default();
	struct buf b = tiny_profile(&t);
	struct pprof_reader *r = pprof_reader_new(&small);
	struct error e = { { 0 } };

	for (unsigned i = 0; i < 10000; i++)
		put_bytes(&b, 6, "abc", 3);
	assert_int_equal(add_bytes(r, &b, &e), -E2BIG);
	assert_non_null(strstr(e.text, "64.00 KiB"));
	pprof_reader_free(r);
	small.memory = 1 << 20;
	small.message = b.len - 1;
	r = pprof_reader_new(&small);
	assert_int_equal(add_bytes(r, &b, &e), -EFBIG);
	pprof_reader_free(r);
	small.message = b.len;
	small.frames = 3; // its one stack counts 4: two locations with a line each
	r = pprof_reader_new(&small);
	assert_int_equal(add_bytes(r, &b, &e), -E2BIG);
	assert_non_null(strstr(e.text, "frames"));
	pprof_reader_free(r);
	buf_free(&b);
}

static void names_are_made_clean(void **state)
{
	struct tiny t = tiny_default();
	struct pprof_reader *r = pprof_reader_new(NULL);
	struct error e = { { 0 } };
	const struct profile *p;
	const struct profile_function *f;

	t.leaf = "\x1b[2J\xc2\x9b\xff \xc3\xa9";
	assert_int_equal(add_tiny(r, &t, &e), 0);
	p = pprof_reader_finish(r);
	f = intern_key(&p->functions, 1);
	assert_string_equal(profile_text(p, f->name), "?[2J??? \xc3\xa9");
	pprof_reader_free(r);
}

static void sample_types_are_found(void **state)
{
	struct pprof_builder *b = sample_profile();
	struct pprof_reader *r = pprof_reader_new(NULL);
	struct buf ours = { 0 };
	struct error e = { { 0 } };
	const struct profile *p;
	size_t i;

	pprof_encode(b, &ours);
	assert_int_equal(add_bytes(r, &ours, &e), 0);
	p = pprof_reader_finish(r);
	assert_int_equal(profile_type_index(p, NULL, &i, &e), 0);
	assert_int_equal(i, PPROF_IO_TIME);
	assert_int_equal(profile_type_index(p, "write_bytes", &i, &e), 0);
	assert_int_equal(i, PPROF_WRITE_BYTES);
	assert_int_equal(profile_type_index(p, "0", &i, &e), 0);
	assert_int_equal(i, 0);
	assert_int_equal(profile_type_index(p, "5", &i, &e), -EINVAL);
	assert_int_equal(profile_type_index(p, "nothing", &i, &e), -EINVAL);
	assert_non_null(strstr(e.text, "io_ops, io_time, read_bytes"));
	pprof_reader_free(r);
	pprof_builder_free(b);
	buf_free(&ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_profile_of_ours_comes_back_as_it_was),
		cmocka_unit_test(equal_samples_add_up_across_address_spaces),
		cmocka_unit_test(other_labels_and_names_stay_apart),
		cmocka_unit_test(sums_saturate),
		cmocka_unit_test(duration_is_the_union_of_the_windows),
		cmocka_unit_test(units_become_the_finer_one),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(types_that_not_all_have_are_dropped),
		cmocka_unit_test(errors_name_the_byte),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(names_are_made_clean),
		cmocka_unit_test(sample_types_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
