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

static struct aggregate *aggregate_of(unsigned max_rows)
{
	struct aggregate_options o = { .max_rows = max_rows, .latency = true, .bytes = true };

	return aggregate_new(&o);
}

// Who a made-up bio is of: its stack's number stands for the stack.
static const struct row_who *who(const struct bio_rec *r)
{
	static struct row_who w;

	w = (struct row_who){ .stack = (uint32_t)r->bio.stack, .process = 1, .service = 1, .tgid = r->bio.tgid };
	return &w;
}

static void add(struct aggregate *a, struct bio_rec r)
{
	assert_int_equal(aggregate_record(a, &r, who(&r), 0), 0);
}

static const struct row *find(const struct rows *r, uint64_t stack)
{
	for (unsigned i = 0; i < rows_count(r); i++)
		if (rows_get(r, i)->key.who.stack == stack)
			return rows_get(r, i);
	return NULL;
}

static double total_time(const struct rows *r, uint64_t stack)
{
	double t = 0;

	for (unsigned i = 0; i < rows_count(r); i++)
		if (rows_get(r, i)->key.who.stack == stack)
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
	struct aggregate *a = aggregate_of(100);
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
	struct aggregate *a = aggregate_of(100);
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
	struct aggregate *a = aggregate_of(100);
	struct bio_rec r = bio(2 * S, 27 * S, 0, 5, 4096, 1);
	struct rows *w;

	aggregate_begin(a, 0, 0);
	aggregate_cut(a, 10 * S);
	assert_int_equal(aggregate_in_flight(a, &r.bio, who(&r), 0), 0);
	w = aggregate_take(a);
	rows_exact(w, 0, OP_READ, 1, 4096);
	rows_scale(w);
	assert_int_equal(rows_count(w), 1);
	assert_true(total_time(w, 5) == 8.0 * S);
	assert_true(find(w, 5)->ops == 1 && find(w, 5)->bytes == 4096);
	assert_int_equal(find(w, 5)->key.latency, 5 * S);
	rows_free(w);

	aggregate_cut(a, 20 * S);
	assert_int_equal(aggregate_in_flight(a, &r.bio, who(&r), 0), 0);
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
	struct aggregate *a = aggregate_of(100);
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
	struct aggregate *a = aggregate_of(100);
	struct bio_rec r = bio(9 * S, 11 * S, 0, 5, 512, 1);
	struct rows *w;

	aggregate_begin(a, 0, 0);
	aggregate_cut(a, 10 * S);
	assert_int_equal(aggregate_in_flight(a, &r.bio, who(&r), 0), 0);
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

// A bio that was cut before, whose record comes while the next window ends: it has its part of that one.
static void cut_before_then_completed_around_the_cut(void **state)
{
	static const uint64_t ends[] = { 17 * S, 23 * S };

	for (unsigned i = 0; i < 2; i++) {
		struct aggregate *a = aggregate_of(100);
		struct bio_rec r = bio(2 * S, ends[i], 0, 5, 4096, 1);
		struct rows *w;

		aggregate_begin(a, 0, 0);
		aggregate_cut(a, 10 * S);
		assert_int_equal(aggregate_in_flight(a, &r.bio, who(&r), 0), 0);
		rows_free(aggregate_take(a));
		aggregate_cut(a, 20 * S);
		add(a, r);
		w = aggregate_take(a);
		rows_scale(w);
		assert_true(total_time(w, 5) == (i ? 10.0 : 7.0) * S);
		assert_true(find(w, 5)->ops == 0);
		rows_free(w);
		w = aggregate_take(a);
		rows_scale(w);
		assert_true(total_time(w, 5) == (i ? 3.0 : 0.0) * S);
		rows_free(w);
		aggregate_free(a);
	}
}

// However often the scan of a map that changes meanwhile shows it.
static void seen_twice_by_the_scan(void **state)
{
	struct aggregate *a = aggregate_of(100);
	struct bio_rec r = bio(2 * S, 27 * S, 0, 5, 4096, 1);
	struct rows *w;

	aggregate_begin(a, 0, 0);
	aggregate_cut(a, 10 * S);
	assert_int_equal(aggregate_in_flight(a, &r.bio, who(&r), 0), 0);
	assert_int_equal(aggregate_in_flight(a, &r.bio, who(&r), 0), 0);
	w = aggregate_take(a);
	rows_exact(w, 0, OP_READ, 1, 4096);
	rows_scale(w);
	assert_true(total_time(w, 5) == 8.0 * S);
	assert_true(find(w, 5)->ops == 1);
	rows_free(w);
	aggregate_free(a);
}

static void in_flight_at_the_end(void **state)
{
	struct aggregate *a = aggregate_of(100);
	struct bio_rec r = bio(1 * S, 0, 0, 5, 512, 1);
	struct rows *w;

	aggregate_begin(a, 0, 0);
	assert_int_equal(aggregate_in_flight_last(a, &r.bio, who(&r), 0, 4 * S), 0);
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
	struct aggregate *a = aggregate_of(100);
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
	struct aggregate *a = aggregate_of(100);
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
	struct aggregate *a = aggregate_of(10);
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
	struct aggregate *a = aggregate_of(10);
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

static bool is_odd(uint32_t tgid, void *context)
{
	return tgid & 1;
}

// Where there are many rows, those of processes that are gone are added up without their process id.
static void process_ids_fold(void **state)
{
	struct aggregate *a = aggregate_of(200);
	double ops = 0, alive = 0;
	struct rows *w;

	aggregate_begin(a, 0, 0);
	for (unsigned i = 1; i <= 98; i++) {
		struct bio_rec r = bio(i, i + 10, 0, 5, 512, 1);

		r.bio.tgid = i;
		add(a, r);
	}
	assert_int_equal(aggregate_fold_pids(a, is_odd, NULL), 0);
	for (unsigned i = 99; i <= 150; i++) {
		struct bio_rec r = bio(i, i + 10, 0, 5, 512, 1);

		r.bio.tgid = i;
		add(a, r);
	}
	assert_int_equal(aggregate_fold_pids(a, is_odd, NULL), 75);
	assert_int_equal(aggregate_fold_pids(a, is_odd, NULL), 0);
	assert_int_equal(aggregate_rows_full(a), 0);
	w = aggregate_take(a);
	rows_exact(w, 0, OP_READ, 150, 150 * 512);
	rows_scale(w);
	assert_int_equal(rows_count(w), 76);
	for (unsigned i = 0; i < rows_count(w); i++) {
		const struct row *row = rows_get(w, i);

		assert_int_equal(row->key.who.stack, 5);
		assert_true(!row->key.who.tgid || !is_odd(row->key.who.tgid, NULL));
		ops += row->ops;
		alive += row->key.who.tgid ? row->ops : 0;
	}
	assert_true(ops == 150 && alive == 75);
	rows_free(w);
	aggregate_free(a);
}

// Who a bio in flight is of is known until scans do not see it any more; remembering charges nothing.
static void remembered_in_flight(void **state)
{
	struct aggregate *a = aggregate_of(100);
	struct bio_rec r = bio(1 * S, 3 * S, 0, 5, 512, 1), other = bio(1 * S, 3 * S, 0, 6, 512, 1);
	struct rows *w;

	aggregate_begin(a, 0, 0);
	assert_null(aggregate_known(a, &r.bio));
	aggregate_scan(a);
	assert_int_equal(aggregate_remember(a, &r.bio, who(&r)), 0);
	assert_int_equal(aggregate_remember(a, &other.bio, who(&other)), 0);
	for (unsigned i = 0; i < 4; i++) {
		aggregate_scan(a);
		assert_int_equal(aggregate_remember(a, &r.bio, who(&other)), 0);
	}
	assert_non_null(aggregate_known(a, &r.bio));
	assert_int_equal(aggregate_known(a, &r.bio)->stack, 5);
	assert_null(aggregate_known(a, &other.bio));
	add(a, r);
	assert_null(aggregate_known(a, &r.bio));
	w = aggregate_take(a);
	rows_exact(w, 0, OP_READ, 1, 512);
	rows_scale(w);
	assert_true(find(w, 5)->ops == 1 && find(w, 5)->time_ns == 2.0 * S);
	rows_free(w);
	aggregate_free(a);
}

static void windows_add_up(void **state)
{
	struct aggregate *a = aggregate_of(100);
	struct rows *one, *two;

	aggregate_begin(a, 0, 0);
	add(a, bio(1, 101, 0, 5, 512, 1));
	add(a, bio(1, 101, 0, 6, 512, 1));
	aggregate_cut(a, 10 * S);
	add(a, bio(11 * S, 11 * S + 100, 1, 5, 512, 1));
	one = aggregate_take(a);
	rows_exact(one, 0, OP_READ, 10, 5120);
	rows_scale(one);
	two = aggregate_take(a);
	rows_exact(two, 0, OP_READ, 3, 1536);
	rows_scale(two);
	assert_int_equal(rows_merge(one, two), 0);
	assert_int_equal(rows_sort(one), 0);
	rows_free(two);
	assert_int_equal(rows_count(one), 2);
	assert_true(find(one, 5)->ops == 8 && find(one, 5)->bytes == 4096 && find(one, 5)->time_ns == 800);
	assert_true(find(one, 6)->ops == 5);
	assert_int_equal(rows_exact_ops(one, 0, OP_READ), 13);
	rows_free(one);
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
		cmocka_unit_test(cut_before_then_completed_around_the_cut),
		cmocka_unit_test(seen_twice_by_the_scan),
		cmocka_unit_test(in_flight_at_the_end),
		cmocka_unit_test(again_counts_as_nothing),
		cmocka_unit_test(unseen_end),
		cmocka_unit_test(too_many_rows_fold),
		cmocka_unit_test(cpu_samples_have_no_disk),
		cmocka_unit_test(process_ids_fold),
		cmocka_unit_test(remembered_in_flight),
		cmocka_unit_test(windows_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
