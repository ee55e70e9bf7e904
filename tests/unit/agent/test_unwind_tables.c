// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/unwind_ranges.h"
#include "agent/unwind_tables.h"
#include "bpf/unwind_user.h"

static struct unwind_store *store;

static u32 *words(u32 place)
{
	return unwind_store_at(store, place & ~(UNWIND_ARENA_WORDS - 1));
}

static void store_extents(void **state)
{
	struct unwind_store *s = unwind_store_new(-1, 2 << 20);
	uint32_t a, b, c, d;

	(void)state;
	assert_int_equal(unwind_store_take(s, 0, &a), -E2BIG);
	assert_int_equal(unwind_store_take(s, UNWIND_ARENA_WORDS, &a), -E2BIG);
	assert_int_equal(unwind_store_take(s, 3, &a), 0);
	assert_int_not_equal(a, 0);
	assert_int_equal(a % 2, 0);
	assert_int_equal(unwind_store_take(s, UNWIND_ARENA_WORDS - 10, &b), 0);
	assert_int_equal(unwind_store_take(s, UNWIND_ARENA_WORDS - 10, &c), 0); // in another arena
	assert_int_not_equal(b >> UNWIND_ARENA_BITS, c >> UNWIND_ARENA_BITS);
	assert_int_equal(unwind_store_take(s, 100, &d), -ENOSPC);
	memset(unwind_store_at(s, b), 1, 4 * (UNWIND_ARENA_WORDS - 10));
	assert_int_equal(unwind_store_give(s, b, UNWIND_ARENA_WORDS - 10), 0);
	assert_int_equal(unwind_store_take(s, 100, &d), -ENOSPC); // not before a grace period
	assert_int_equal(unwind_store_given(s), 1);
	unwind_store_reclaim(s);
	assert_int_equal(unwind_store_take(s, 100, &d), 0);
	assert_int_equal(unwind_store_at(s, d)[99], 0);
	assert_int_equal(unwind_store_take(s, UNWIND_ARENA_WORDS - 200, &b), 0);
	assert_int_equal(unwind_store_bytes(s), 2 << 20);
	unwind_store_free(s);
}

// Holes grow together again in whatever order extents come back.
static void store_merges(void **state)
{
	struct unwind_store *s = unwind_store_new(-1, 1 << 20);
	uint32_t place[64], all;

	(void)state;
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned i = 0; i < 64; i++)
			assert_int_equal(unwind_store_take(s, 4000, &place[i]), 0);
		for (unsigned i = 0; i < 64; i++)
			unwind_store_give(s, place[(i * 37 + round) % 64], 4000);
		unwind_store_reclaim(s);
		assert_int_equal(unwind_store_used(s), 0);
		assert_int_equal(unwind_store_take(s, UNWIND_ARENA_WORDS - 2, &all), 0);
		unwind_store_give(s, all, UNWIND_ARENA_WORDS - 2);
		unwind_store_reclaim(s);
	}
	unwind_store_free(s);
}

static void equal_rules_are_one(void **state)
{
	struct unwind_rule *rules = calloc(UNWIND_RULES, sizeof(*rules));
	struct unwind_ids *ids = unwind_ids_new(rules);
	struct unwind_rule r = { .cfa = UNWIND_CFA_RSP, .cfa_offset = 8 }, none = { 0 };
	uint16_t a, b;

	(void)state;
	assert_int_equal(unwind_ids_take(ids, &none), 0);
	a = unwind_ids_take(ids, &r);
	assert_int_not_equal(a, 0);
	assert_int_equal(unwind_ids_take(ids, &r), a);
	assert_memory_equal(&rules[a], &r, sizeof(r));
	// As many as there is room for; then none.
	for (int i = 0; i < UNWIND_RULES; i++) {
		r.cfa_offset = 16 + i;
		b = unwind_ids_take(ids, &r);
		assert_int_equal(!b, i >= UNWIND_RULES - 2);
	}
	unwind_ids_give(ids, a);
	unwind_ids_reclaim(ids);
	r.cfa_offset = 8;
	assert_int_equal(unwind_ids_take(ids, &r), a); // somebody had it still
	unwind_ids_give(ids, a);
	unwind_ids_give(ids, a);
	unwind_ids_reclaim(ids);
	r.cfa_offset = -8;
	assert_int_equal(unwind_ids_take(ids, &r), a); // the number is given again
	unwind_ids_free(ids);
	free(rules);
}

// Tables of random rows: the kernel side finds what unwind_find finds, at every kind of address.
static void same_rules(void **state)
{
	static const unsigned sizes[] = { 1, 2, 100, 5000, 200000 };
	struct unwind_rule *rules = calloc(UNWIND_RULES, sizeof(*rules));
	struct unwind_ids *ids = unwind_ids_new(rules);
	struct unwind_tables *tables;
	unsigned seed = 7;

	(void)state;
	store = unwind_store_new(-1, 16 << 20);
	tables = unwind_tables_new(store, ids);
	unwind_user.words = words;
	unwind_user.rules = rules;
	for (unsigned k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
		struct unwind_table t = { .base = 0x400000, .n_rows = sizes[k], .n_rules = 200 };
		struct unwind_walk w = { .map = { .start = 0x500000, .pages = 1u << 20 } };
		struct unwind_loaded *l;
		char identity[16];

		t.rows = calloc(t.n_rows, sizeof(*t.rows));
		t.rules = calloc(t.n_rules, sizeof(*t.rules));
		for (unsigned i = 0; i < t.n_rules; i++)
			t.rules[i] = (struct unwind_rule){ .cfa = UNWIND_CFA_RSP, .cfa_offset = (s32)(8 * (i + k)) };
		t.rules[0].cfa = UNWIND_CFA_NONE;
		for (unsigned i = 0; i < t.n_rows; i++) {
			// now and then a gap of several pages
			t.rows[i].pc = (i ? t.rows[i - 1].pc : 0) + 1 + (uint32_t)rand_r(&seed) % 40;
			if (rand_r(&seed) % 500 == 0)
				t.rows[i].pc += 200000;
			t.rows[i].rule = (uint16_t)((unsigned)rand_r(&seed) % t.n_rules);
		}
		identity[0] = (char)('a' + k);
		identity[1] = 0;
		assert_int_equal(unwind_tables_add(tables, identity, &t, &l), 0);
		assert_ptr_equal(unwind_tables_find(tables, identity), l);
		w.map.index = l->index;
		w.map.n_index = l->n_index;
		for (unsigned i = 0; i < 20000; i++) {
			unsigned row = (unsigned)rand_r(&seed) % t.n_rows;
			uint64_t pc = t.rows[row].pc + (unsigned)rand_r(&seed) % 3 - (i % 7 == 0 && t.rows[row].pc);
			const struct unwind_rule *want = unwind_find(&t, t.base + pc), *got;

			got = unwind_find_rule(&w, w.map.start + pc);
			if (want->cfa == UNWIND_CFA_NONE)
				assert_true(!got || got->cfa == UNWIND_CFA_NONE);
			else
				assert_memory_equal(got, want, sizeof(*want));
		}
		unwind_tables_drop(tables, l);
		assert_null(unwind_tables_find(tables, identity));
		unwind_store_reclaim(store);
		unwind_ids_reclaim(ids);
		assert_int_equal(unwind_store_used(store), 0);
		assert_int_equal(unwind_ids_count(ids), 0);
		free(t.rows);
		free(t.rules);
	}
	unwind_tables_free(tables);
	unwind_ids_free(ids);
	unwind_store_free(store);
	free(rules);
}

static void no_room(void **state)
{
	struct unwind_rule *rules = calloc(UNWIND_RULES, sizeof(*rules)), rule = { .cfa = UNWIND_CFA_RSP, .cfa_offset = 8 };
	struct unwind_ids *ids = unwind_ids_new(rules);
	struct unwind_store *s = unwind_store_new(-1, 1 << 20);
	struct unwind_tables *tables = unwind_tables_new(s, ids);
	struct unwind_table t = { .n_rows = 200000, .n_rules = 1, .rules = &rule };
	struct unwind_loaded *first, *second;

	(void)state;
	t.rows = calloc(t.n_rows, sizeof(*t.rows));
	for (unsigned i = 0; i < t.n_rows; i++)
		t.rows[i].pc = 2 * i;
	assert_int_equal(unwind_tables_add(tables, "first", &t, &first), 0);
	first->used_ns = 10;
	assert_int_equal(unwind_tables_add(tables, "second", &t, &second), -ENOSPC);
	unwind_store_reclaim(s); // what the failed one had
	assert_null(unwind_tables_oldest(tables, 10, true));
	assert_ptr_equal(unwind_tables_oldest(tables, 11, true), first);
	unwind_tables_drop(tables, first);
	unwind_store_reclaim(s);
	assert_int_equal(unwind_tables_add(tables, "second", &t, &second), 0);
	assert_int_equal(unwind_tables_add(tables, "none", NULL, &first), 0); // a file without one is remembered
	assert_int_equal(first->index, 0);
	unwind_tables_free(tables);
	unwind_store_free(s);
	unwind_ids_free(ids);
	free(t.rows);
	free(rules);
}

static void ranges(void **state)
{
	struct unwind_ranges r = { .max = 6 };
	static const struct unwind_range want[] = {
		{ 0x1000, 0x2000, 2 }, { 0x2000, 0x3000, 1 }, { 0x3000, 0x5000, 2 }, { 0x5000, 0x6000, 0 }, { 0x6000, 0x9000, 2 },
	};

	(void)state;
	assert_int_equal(unwind_ranges_add(&r, 0x5000, 0x6000, 0), 0);
	assert_int_equal(unwind_ranges_add(&r, 0x2000, 0x3000, 1), 0);
	assert_int_equal(unwind_ranges_add(&r, 0x1000, 0x9000, 2), 0); // what they leave of it
	assert_int_equal(unwind_ranges_add(&r, 0x2000, 0x8000, 3), 0); // nothing
	assert_int_equal(r.n, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(r.items[i].start, want[i].start);
		assert_int_equal(r.items[i].limit, want[i].limit);
		assert_int_equal(r.items[i].source, want[i].source);
	}
	assert_int_equal(unwind_ranges_add(&r, 0xa000, 0xb000, 4), 0);
	assert_int_equal(unwind_ranges_add(&r, 0xc000, 0xd000, 4), -ENOSPC);
	free(r.items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(store_extents), cmocka_unit_test(store_merges), cmocka_unit_test(equal_rules_are_one),
		cmocka_unit_test(same_rules),	 cmocka_unit_test(no_room),	 cmocka_unit_test(ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
