// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/aggregate.h"

#define S 1000000000ull

static struct bio_rec bio(uint64_t submit, uint64_t end, uint32_t window, uint64_t stack, uint32_t size, double weight)
{
	struct bio_rec r = { .type = RECORD_BIO, .end = end };

	r.bio.submit = submit;
	r.bio.window = window;
	r.bio.stack = stack;
	r.bio.size = size;
	r.bio.weight = (uint32_t)(weight * RECORD_WEIGHT_ONE);
	r.bio.tgid = 7;
	r.bio.tid = (uint32_t)stack;
	strcpy(r.bio.comm, "db");
	return r;
}

static void add(struct aggregate *a, struct bio_rec r)
{
	assert_int_equal(aggregate_record(a, &r, 0), 0);
}

static const struct row *find(const struct rows *r, uint64_t stack)
{
	for (unsigned i = 0; i < rows_count(r); i++)
		if (rows_get(r, i)->key.stack == stack)
			return rows_get(r, i);
	return NULL;
}

static double total_time(const struct rows *r, uint64_t stack)
{
	double t = 0;

	for (unsigned i = 0; i < rows_count(r); i++)
		if (rows_get(r, i)->key.stack == stack)
			t += rows_get(r, i)->time_ns;
	return t;
}

static void classes(void **state)
{
	static const uint64_t latency[][2] = {
		{ 0, 0 }, { 999, 0 }, { 1000, 1000 }, { 1999, 1000 }, { 2000, 2000 }, { 4999, 2000 }, { 5000, 5000 },
		{ 9999, 5000 }, { 10000, 10000 }, { 10 * S, 10 * S }, { 19 * S, 10 * S }, { 20 * S, 20 * S },
		{ UINT64_MAX, 10000000000000000000ull },
	};
	static const uint32_t size[][2] = { { 0, 0 }, { 1, 1 }, { 4095, 2048 }, { 4096, 4096 }, { 8191, 4096 },
					    { UINT32_MAX, 1u << 31 } };

	for (unsigned i = 0; i < sizeof(latency) / sizeof(*latency); i++)
		assert_int_equal(latency_class(latency[i][0]), latency[i][1]);
	for (unsigned i = 0; i < sizeof(size) / sizeof(*size); i++)
		assert_int_equal(bytes_class(size[i][0]), size[i][1]);
}

static void totals_are_exact(void **state)
{
	struct aggregate *a = aggregate_new(100);
	uint64_t ops = 0, bytes = 0;
	struct rows *r;

	aggregate_begin(a, 0, 0);
	for (unsigned i = 1; i <= 7; i++)
		add(a, bio(i, i + 1000, 0, i, 4096 * i, 1 + i / 3.0));
	r = aggregate_take(a);
	rows_exact(r, 0, OP_READ, 1009, 123456789);
	assert_int_equal(rows_scale(r), 0);
	assert_int_equal(rows_count(r), 7);
	for (unsigned i = 0; i < 7; i++) {
		const struct row *row = rows_get(r, i);

		assert_true(row->ops == (double)(uint64_t)row->ops);
		ops += (uint64_t)row->ops;
		bytes += (uint64_t)row->bytes;
	}
	assert_int_equal(ops, 1009);
	assert_int_equal(bytes, 123456789);
	rows_free(r);
	aggregate_free(a);
}

static void not_sampled_is_named(void **state)
{
	struct aggregate *a = aggregate_new(100);
	struct rows *r;

	aggregate_begin(a, 0, 0);
	r = aggregate_take(a);
	rows_exact(r, 3, OP_WRITE, 17, 17 * 4096);
	assert_int_equal(rows_scale(r), 0);
	assert_int_equal(rows_count(r), 1);
	assert_true(rows_get(r, 0)->key.not_sampled);
	assert_true(rows_get(r, 0)->ops == 17);
	assert_true(rows_get(r, 0)->bytes == 17 * 4096);
	rows_free(r);
	aggregate_free(a);
}

// A bio of 25 s over three windows of 10 s: operations and bytes in the first, time in each, the parts add up.
static void parts_add_up(void **state)
{
	struct aggregate *a = aggregate_new(100);
	struct bio_rec r = bio(2 * S, 27 * S, 0, 5, 4096, 1);
	struct rows *w;

	aggregate_begin(a, 0, 0);
	aggregate_cut(a, 10 * S);
	assert_int_equal(aggregate_in_flight(a, &r.bio, 0), 0);
	w = aggregate_take(a);
	rows_exact(w, 0, OP_READ, 1, 4096);
	rows_scale(w);
	assert_int_equal(rows_count(w), 1);
	assert_true(total_time(w, 5) == 8.0 * S);
	assert_true(find(w, 5)->ops == 1 && find(w, 5)->bytes == 4096);
	assert_int_equal(find(w, 5)->key.latency, 5 * S);
	rows_free(w);

	aggregate_cut(a, 20 * S);
	assert_int_equal(aggregate_in_flight(a, &r.bio, 0), 0);
	w = aggregate_take(a);
	rows_scale(w);
	assert_true(total_time(w, 5) == 10.0 * S);
	assert_true(find(w, 5)->ops == 0 && find(w, 5)->bytes == 0);
	rows_free(w);

	add(a, r);
	aggregate_cut(a, 30 * S);
	w = aggregate_take(a);
	rows_scale(w);
	assert_true(total_time(w, 5) == 7.0 * S);
	assert_true(find(w, 5)->ops == 0);
	assert_int_equal(find(w, 5)->key.latency, 20 * S);
	rows_free(w);
	aggregate_free(a);
}

// It completed between the cut and the scan of the map: its record is all there is.
static void completed_around_the_cut(void **state)
{
	struct aggregate *a = aggregate_new(100);
	struct rows *w;

	aggregate_begin(a, 0, 0);
	aggregate_cut(a, 10 * S);
	add(a, bio(9 * S, 10 * S + 5, 0, 5, 512, 2));
	w = aggregate_take(a);
	rows_exact(w, 0, OP_READ, 2, 1024);
	rows_scale(w);
	assert_true(total_time(w, 5) == 2.0 * S);
	assert_true(find(w, 5)->ops == 2);
	rows_free(w);
	w = aggregate_take(a);
	rows_scale(w);
	assert_true(total_time(w, 5) == 10);
	assert_true(find(w, 5)->ops == 0);
	rows_free(w);
	aggregate_free(a);
}

// Seen by the scan, then its record before the window is taken: the part of the old window is charged once.
static void seen_by_the_scan_then_completed(void **state)
{
	struct aggregate *a = aggregate_new(100);
	struct bio_rec r = bio(9 * S, 11 * S, 0, 5, 512, 1);
	struct rows *w;

	aggregate_begin(a, 0, 0);
	aggregate_cut(a, 10 * S);
	assert_int_equal(aggregate_in_flight(a, &r.bio, 0), 0);
	add(a, r);
	w = aggregate_take(a);
	rows_exact(w, 0, OP_READ, 1, 512);
	rows_scale(w);
	assert_true(total_time(w, 5) == 1.0 * S);
	rows_free(w);
	w = aggregate_take(a);
	rows_scale(w);
	assert_true(total_time(w, 5) == 1.0 * S);
	rows_free(w);
	aggregate_free(a);
}

static void in_flight_at_the_end(void **state)
{
	struct aggregate *a = aggregate_new(100);
	struct bio_rec r = bio(1 * S, 0, 0, 5, 512, 1);
	struct rows *w;

	aggregate_begin(a, 0, 0);
	assert_int_equal(aggregate_in_flight_last(a, &r.bio, 0, 4 * S), 0);
	w = aggregate_take(a);
	rows_exact(w, 0, OP_READ, 1, 512);
	rows_scale(w);
	assert_true(find(w, 5)->key.in_flight);
	assert_true(total_time(w, 5) == 3.0 * S);
	assert_true(find(w, 5)->ops == 1);
	assert_int_equal(find(w, 5)->key.latency, 2 * S);
	rows_free(w);
	aggregate_free(a);
}

static void again_counts_as_nothing(void **state)
{
	struct aggregate *a = aggregate_new(100);
	struct bio_rec r = bio(1, 2, 0, 5, 512, 1);
	struct rows *w;

	aggregate_begin(a, 0, 0);
	r.end_reason = END_AGAIN;
	add(a, r);
	add(a, bio(3, 7, 0, 6, 512, 1));
	w = aggregate_take(a);
	rows_exact(w, 0, OP_READ, 2, 1024);
	rows_scale(w);
	assert_null(find(w, 5));
	assert_true(find(w, 6)->ops == 1 && find(w, 6)->bytes == 512 && find(w, 6)->time_ns == 4);
	rows_free(w);
	aggregate_free(a);
}

// Its end was never seen: an operation and its bytes, no time. The others' time makes up for it.
static void unseen_end(void **state)
{
	struct aggregate *a = aggregate_new(100);
	struct bio_rec r = bio(S, 0, 0, 5, 512, 1);
	struct rows *w;

	aggregate_begin(a, 0, 0);
	r.end_reason = END_UNSEEN;
	add(a, r);
	add(a, bio(S, S + 600, 0, 6, 512, 2));
	w = aggregate_take(a);
	rows_exact(w, 0, OP_READ, 3, 1536);
	rows_scale(w);
	assert_true(find(w, 5)->ops == 1 && find(w, 5)->time_ns == 0);
	assert_true(find(w, 6)->ops == 2 && find(w, 6)->time_ns == 1800);
	rows_free(w);
	aggregate_free(a);
}

static void too_many_rows_fold(void **state)
{
	struct aggregate *a = aggregate_new(10);
	double ops = 0;
	struct rows *w;

	aggregate_begin(a, 0, 0);
	for (unsigned i = 1; i <= 1000; i++)
		add(a, bio(i, i + 10, 0, i, 512, 1));
	assert_int_equal(aggregate_rows_full(a), 990);
	w = aggregate_take(a);
	rows_exact(w, 0, OP_READ, 1000, 512000);
	rows_scale(w);
	assert_true(rows_count(w) <= 11);
	for (unsigned i = 0; i < rows_count(w); i++)
		ops += rows_get(w, i)->ops;
	assert_true(ops == 1000);
	rows_free(w);
	aggregate_free(a);
}

static void cpu_samples_have_no_disk(void **state)
{
	struct aggregate *a = aggregate_new(10);
	struct bio_rec r = bio(5, 5, 0, 9, 0, 1);
	struct rows *w;

	aggregate_begin(a, 0, 0);
	r.type = RECORD_CPU;
	add(a, r);
	add(a, r);
	w = aggregate_take(a);
	rows_scale(w);
	assert_int_equal(rows_count(w), 1);
	assert_true(rows_get(w, 0)->cpu == 2);
	assert_int_equal(rows_get(w, 0)->key.disk, AGGREGATE_NO_DISK);
	rows_free(w);
	aggregate_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes),
		cmocka_unit_test(totals_are_exact),
		cmocka_unit_test(not_sampled_is_named),
		cmocka_unit_test(parts_add_up),
		cmocka_unit_test(completed_around_the_cut),
		cmocka_unit_test(seen_by_the_scan_then_completed),
		cmocka_unit_test(in_flight_at_the_end),
		cmocka_unit_test(again_counts_as_nothing),
		cmocka_unit_test(unseen_end),
		cmocka_unit_test(too_many_rows_fold),
		cmocka_unit_test(cpu_samples_have_no_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
