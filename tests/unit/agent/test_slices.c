// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <utlist.h>

#include "agent/slices.h"
#include "windows.h"

static struct slices *with(struct recorder *r)
{
	struct slices *s = slices_new();

	recorder_make(r);
	assert_non_null(s);
	return s;
}

static void without(struct slices *s, struct recorder *r)
{
	slices_free(s);
	recorder_unmake(r);
}

// A reader alone gets the windows themselves.
static void one_reader(void **state)
{
	struct recorder r;
	struct slices *s = with(&r);
	uint64_t from = slices_next(s);
	struct window *w = NULL, *cut = window_of(&r, 0, S, 0, 7);

	assert_int_equal(slices_take(s, from, NULL, 0, &w), -ENODATA);
	assert_int_equal(slices_add(s, cut, &from, 1), 0);
	assert_int_equal(slices_take(s, from, NULL, 0, &w), 0);
	assert_ptr_equal(w, cut);
	window_free(w);
	assert_int_equal(slices_rows(s), 0);
	// What nobody reads is not kept.
	assert_int_equal(slices_add(s, window_of(&r, S, 2 * S, 0, 7), NULL, 0), 0);
	assert_int_equal(slices_rows(s), 0);
	without(s, &r);
}

#define READERS 6
#define CUTS 400

struct reader {
	bool reads;
	uint64_t from, began;
};

struct world {
	struct recorder r;
	struct slices *s;
	struct reader reader[READERS];
	uint64_t before[CUTS + 1][2]; // operations of each disk in the cuts before
};

static unsigned starts_of(const struct world *w, uint64_t *starts)
{
	unsigned n = 0;

	for (unsigned i = 0; i < READERS; i++)
		if (w->reader[i].reads)
			starts[n++] = w->reader[i].from;
	return n;
}

static void end(struct world *w, struct reader *x, uint64_t now)
{
	uint64_t starts[READERS];
	struct window *got = NULL;
	const struct window_info *info;

	x->reads = false;
	assert_int_equal(slices_take(w->s, x->from, starts, starts_of(w, starts), &got), 0);
	info = window_get_info(got);
	assert_int_equal(info->start_mono, x->began * S);
	assert_int_equal(info->end_mono, now * S);
	for (uint16_t d = 0; d < 2; d++)
		assert_int_equal(rows_exact_ops(got->rows, d, OP_READ), w->before[now][d] - w->before[x->began][d]);
	assert_int_equal(info->ops[OP_READ], w->before[now][0] + w->before[now][1] - w->before[x->began][0] - w->before[x->began][1]);
	window_free(got);
}

// Readers come and go at any cut, and each gets the sum of what was between.
static void many_readers(void **state)
{
	struct world w = { 0 };
	uint64_t starts[READERS];

	w.s = with(&w.r);
	srand(1);
	for (uint64_t now = 0; now < CUTS; now++) {
		uint64_t ops = 1 + (uint64_t)rand() % 1000;
		uint16_t disk = (uint16_t)(rand() % 2);

		for (unsigned i = 0; i < READERS; i++)
			if (!w.reader[i].reads && rand() % 4 == 0)
				w.reader[i] = (struct reader){ .reads = true, .from = slices_next(w.s), .began = now };
		memcpy(w.before[now + 1], w.before[now], sizeof(w.before[now]));
		w.before[now + 1][disk] += ops;
		assert_int_equal(slices_add(w.s, window_of(&w.r, now * S, (now + 1) * S, disk, ops), starts, starts_of(&w, starts)), 0);
		assert_true(slices_rows(w.s) <= 2 * READERS);
		for (unsigned i = 0; i < READERS; i++)
			if (w.reader[i].reads && rand() % 5 == 0)
				end(&w, &w.reader[i], now + 1);
	}
	without(w.s, &w.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(one_reader), cmocka_unit_test(many_readers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
