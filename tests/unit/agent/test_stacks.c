// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/stacks.h"
#include "bpf/record_rec.h"

struct unsent {
	unsigned n;
	uint64_t last;
};

static void unsend(uint64_t hash, void *context)
{
	struct unsent *u = context;

	u->n++;
	u->last = hash;
}

static int add(struct stacks *s, uint64_t hash)
{
	struct stack_rec rec = { .type = RECORD_STACK, .n_user = 3, .hash = hash, .frames = { hash, 2, 3 } };

	return stacks_add(s, &rec, offsetof(struct stack_rec, frames) + 24);
}

// Beyond the memory the one that was not used for the longest goes, and must be sent again.
static void memory_is_bounded(void **state)
{
	struct unsent u = { 0 };
	struct stacks *s = stacks_new(10000, unsend, &u);
	struct stack_frames f;

	for (uint64_t i = 1; i <= 1000; i++) {
		assert_int_equal(add(s, i), 0);
		assert_true(stacks_find(s, 1, &f));
		assert_true(stacks_memory(s) <= 10000);
	}
	assert_true(u.n > 900 && u.n == stacks_evicted(s));
	assert_false(stacks_find(s, 2, &f));
	assert_true(stacks_find(s, 1000, &f));
	assert_int_equal(f.user[0], 1000);
	stacks_free(s);
	assert_true(u.n < 1000);
}

// What is not used is unsent some turns before it is freed: a record that was under way still finds it.
static void unused_ones_go_in_two_steps(void **state)
{
	struct unsent u = { 0 };
	struct stacks *s = stacks_new(1 << 20, unsend, &u);
	struct stack_frames f;
	unsigned turns = 0;

	add(s, 7);
	for (; !u.n && turns < 100; turns++)
		stacks_turn(s);
	assert_int_equal(u.last, 7);
	assert_true(stacks_find(s, 7, &f));
	assert_int_equal(add(s, 7), 0); // sent again
	for (turns = 0; u.n < 2 && turns < 100; turns++)
		stacks_turn(s);
	assert_int_equal(u.n, 2);
	for (turns = 0; stacks_memory(s) && turns < 100; turns++)
		stacks_turn(s);
	assert_int_equal(u.n, 2);
	assert_false(stacks_find(s, 7, &f));
	stacks_free(s);
}

static void malformed_records(void **state)
{
	struct unsent u = { 0 };
	struct stacks *s = stacks_new(1 << 20, unsend, &u);
	struct stack_rec rec = { .type = RECORD_STACK, .n_user = RECORD_FRAMES + 1, .hash = 1 };

	assert_true(stacks_add(s, &rec, sizeof(rec)) < 0);
	rec.n_user = 5;
	assert_true(stacks_add(s, &rec, offsetof(struct stack_rec, frames) + 39) < 0);
	assert_true(stacks_add(s, &rec, 8) < 0);
	assert_int_equal(stacks_memory(s), 0);
	stacks_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(unused_ones_go_in_two_steps),
		cmocka_unit_test(malformed_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
