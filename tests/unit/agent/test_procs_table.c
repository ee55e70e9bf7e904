// SPDX-License-Identifier: Apache-2.0
// The pure table of lives: fork, exec, exit, reuse of a pid, mappings over time, the budget.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/proctable.h"

static void do_fork(struct proctable *t, uint64_t time, pid_t ppid, pid_t pid)
{
	struct proc_event ev = { .type = PROC_FORK, .time_ns = time, .pid = pid, .tid = pid, .ppid = ppid };

	proctable_apply(t, &ev);
}

static void named(struct proctable *t, enum proc_event_type type, uint64_t time, pid_t pid, pid_t tid, const char *comm)
{
	struct proc_event ev = { .type = type, .time_ns = time, .pid = pid, .tid = tid, .text = comm,
				 .text_len = strlen(comm) };

	proctable_apply(t, &ev);
}

static void do_exec(struct proctable *t, uint64_t time, pid_t pid, const char *comm)
{
	named(t, PROC_EXEC, time, pid, pid, comm);
}

static int do_map(struct proctable *t, uint64_t time, pid_t pid, uint64_t start, uint64_t len, uint64_t offset,
		  const char *path, uint64_t inode)
{
	struct proc_event ev = {
		.type = PROC_MMAP, .time_ns = time, .pid = pid, .tid = pid, .start = start, .limit = start + len,
		.offset = offset, .dev = inode ? 5 : 0, .inode = inode, .text = path, .text_len = strlen(path),
	};

	return proctable_apply(t, &ev);
}

static void do_exit(struct proctable *t, uint64_t time, pid_t pid, pid_t tid)
{
	struct proc_event ev = { .type = PROC_EXIT, .time_ns = time, .pid = pid, .tid = tid };

	proctable_apply(t, &ev);
}

static const char *path_at(struct proctable *t, pid_t pid, uint64_t address, uint64_t time)
{
	struct proc *p = proctable_find(t, pid, time);
	struct proc_mapping *m = p ? proctable_lookup(p, address, time) : NULL;

	return m ? proc_text_string(m->file) : "none";
}

static unsigned mappings(struct proctable *t, pid_t pid)
{
	struct proc *p = proctable_newest(t, pid);

	return p && p->mappings ? p->mappings->count : 0;
}

static int setup(void **state)
{
	struct proctable *t = proctable_new(1 << 20);

	do_fork(t, 10, 1, 100);
	do_exec(t, 20, 100, "sh");
	do_map(t, 21, 100, 0x1000, 0x1000, 0, "/bin/sh", 7);
	*state = t;
	return t ? 0 : -1;
}

static int teardown(void **state)
{
	proctable_free(*state);
	return 0;
}

static void test_fork_shares_then_parts(void **state)
{
	struct proctable *t = *state;

	do_fork(t, 30, 100, 101);
	assert_string_equal(path_at(t, 101, 0x1800, 31), "/bin/sh");
	assert_string_equal(proctable_find(t, 101, 31)->name, "sh");
	assert_string_equal(proc_text_string(proctable_find(t, 101, 31)->exe), "/bin/sh");
	assert_ptr_equal(proctable_newest(t, 100)->mappings, proctable_newest(t, 101)->mappings);

	do_map(t, 40, 101, 0x9000, 0x1000, 0, "/lib/child.so", 8);
	do_map(t, 41, 100, 0x9000, 0x1000, 0, "/lib/parent.so", 9);
	assert_string_equal(path_at(t, 101, 0x9000, 50), "/lib/child.so");
	assert_string_equal(path_at(t, 100, 0x9000, 50), "/lib/parent.so");
	assert_string_equal(path_at(t, 100, 0xa000, 50), "none");
}

static void test_exec_is_another_life(void **state)
{
	struct proctable *t = *state;

	do_fork(t, 30, 100, 101);
	do_exec(t, 40, 101, "dd");
	do_map(t, 41, 101, 0x1000, 0x1000, 0, "/bin/dd", 8);
	assert_string_equal(proctable_find(t, 101, 35)->name, "sh");
	assert_string_equal(path_at(t, 101, 0x1000, 39), "/bin/sh");
	assert_string_equal(proctable_find(t, 101, 40)->name, "dd");
	assert_string_equal(path_at(t, 101, 0x1000, 45), "/bin/dd");
	assert_int_equal(proctable_find(t, 101, 45)->ppid, 100);
	assert_null(proctable_find(t, 101, 29));
}

static void test_threads_are_no_processes(void **state)
{
	struct proctable *t = *state;
	struct proc_event thread = { .type = PROC_FORK, .time_ns = 30, .pid = 100, .tid = 105, .ppid = 100 };

	proctable_apply(t, &thread);
	assert_null(proctable_find(t, 105, 31));
	named(t, PROC_COMM, 32, 100, 105, "worker");
	assert_string_equal(proctable_find(t, 100, 33)->name, "sh");
	named(t, PROC_COMM, 34, 100, 100, "renamed");
	assert_string_equal(proctable_find(t, 100, 35)->name, "renamed");
	do_exit(t, 36, 100, 105);
	assert_true(proctable_find(t, 100, 40)->end_ns == UINT64_MAX);
}

static void test_process_ends_with_its_last_thread(void **state)
{
	struct proctable *t = *state;
	struct proc *p = proctable_find(t, 100, 30);

	do_exit(t, 40, 100, 100);
	assert_int_equal(p->end_ns, 40);
	do_exit(t, 60, 100, 105);
	assert_int_equal(p->end_ns, 60);
	assert_ptr_equal(proctable_find(t, 100, 55), p);
}

static void test_pid_reuse(void **state)
{
	struct proctable *t = *state;

	do_exit(t, 40, 100, 100);
	do_fork(t, 50, 1, 100);
	do_exec(t, 51, 100, "other");
	assert_string_equal(proctable_find(t, 100, 39)->name, "sh");
	assert_string_equal(proctable_find(t, 100, 45)->name, "sh");
	assert_string_equal(proctable_find(t, 100, 60)->name, "other");
	assert_string_equal(path_at(t, 100, 0x1000, 60), "none");
	// A late end of the first life is not the second's.
	do_exit(t, 45, 100, 100);
	assert_true(proctable_find(t, 100, 60)->end_ns == UINT64_MAX);
}

static void test_lost_beginning(void **state)
{
	struct proctable *t = *state;

	do_map(t, 30, 200, 0x1000, 0x1000, 0, "/bin/x", 3);
	assert_true(proctable_find(t, 200, 30)->incomplete);
	do_fork(t, 31, 999, 201);
	assert_true(proctable_find(t, 201, 31)->incomplete);
	assert_null(proctable_find(t, 201, 31)->mappings);
	do_fork(t, 32, 100, -1);
	do_fork(t, 33, 100, 0);
	assert_null(proctable_find(t, 0, 40));
}

static void test_address_as_of_time(void **state)
{
	struct proctable *t = *state;

	do_map(t, 100, 100, 0x10000, 0x4000, 0, "/lib/a.so", 11);
	do_map(t, 200, 100, 0x11000, 0x1000, 0x3000, "/lib/b.so", 12);
	assert_string_equal(path_at(t, 100, 0x11000, 150), "/lib/a.so");
	assert_string_equal(path_at(t, 100, 0x11000, 200), "/lib/b.so");
	assert_string_equal(path_at(t, 100, 0x11fff, 250), "/lib/b.so");
	assert_string_equal(path_at(t, 100, 0x12000, 250), "/lib/a.so");
	assert_string_equal(path_at(t, 100, 0x13fff, 250), "/lib/a.so");
	assert_string_equal(path_at(t, 100, 0x14000, 250), "none");
	// Seen on a stack before its mapping was told of: better late than nothing.
	assert_string_equal(path_at(t, 100, 0x11000, 50), "/lib/a.so");

	proctable_forget(t, 150);
	assert_int_equal(mappings(t, 100), 3);
	do_map(t, 300, 100, 0x10000, 0x4000, 0, "/lib/c.so", 13);
	proctable_forget(t, 250);
	assert_int_equal(mappings(t, 100), 4);
	do_map(t, 310, 100, 0x20000, 0x1000, 0, "/lib/d.so", 14);
	proctable_forget(t, 301);
	assert_int_equal(mappings(t, 100), 3);
	assert_string_equal(path_at(t, 100, 0x11000, 400), "/lib/c.so");
}

static void test_what_is_known_adds_nothing(void **state)
{
	struct proctable *t = *state;

	do_map(t, 30, 100, 0x1000, 0x1000, 0, "/bin/sh", 7);
	assert_int_equal(mappings(t, 100), 1);
	do_map(t, 30, 100, 0x1800, 0x800, 0x800, "/bin/sh", 7);
	assert_int_equal(mappings(t, 100), 1);
	do_map(t, 30, 100, 0x1800, 0x800, 0, "/bin/sh", 7); // another part of it
	assert_int_equal(mappings(t, 100), 2);
	do_map(t, 31, 100, 0x1000, 0x1000, 0, "/bin/sh (deleted)", 7);
	assert_int_equal(mappings(t, 100), 3);
	assert_string_equal(path_at(t, 100, 0x1000, 32), "/bin/sh");
}

static void test_generated_code_grows_one_mapping(void **state)
{
	struct proctable *t = *state;

	for (uint64_t i = 0; i < 10000; i++)
		do_map(t, 30 + i, 100, 0x100000 + i * 0x1000, 0x1000, 0, "//anon", 0);
	for (uint64_t i = 0; i < 10000; i += 7)
		do_map(t, 20000 + i, 100, 0x100000 + i * 0x1000, 0x3000, 0, "//anon", 0);
	assert_int_equal(mappings(t, 100), 2);
	assert_string_equal(path_at(t, 100, 0x100000 + 9999 * 0x1000, 90000), "//anon");
	assert_int_equal(proctable_newest(t, 100)->mappings->unresolved, 1);
	// A child's growth is not its parent's.
	do_fork(t, 90000, 100, 101);
	do_map(t, 90001, 101, 0x100000 - 0x1000, 0x1000, 0, "//anon", 0);
	assert_string_equal(path_at(t, 101, 0x100000 - 1, 90002), "//anon");
	assert_string_equal(path_at(t, 100, 0x100000 - 1, 90002), "none");
}

static void test_modules_are_counted(void **state)
{
	struct proctable *t = *state;
	struct proc_module module = { 0 };
	struct proc *p = proctable_newest(t, 100);

	proc_mapping_set_module(&p->mappings->entries[0], &module);
	proc_text_set_module(p->mappings->entries[0].file, &module);
	assert_int_equal(module.users, 2);
	do_fork(t, 30, 100, 101);
	assert_int_equal(module.users, 2);
	do_map(t, 31, 101, 0x5000, 0x1000, 0, "/lib/x", 3); // its own copy now
	assert_int_equal(module.users, 3);
	do_exit(t, 40, 100, 100);
	do_exit(t, 41, 101, 101);
	proctable_forget(t, 100);
	assert_int_equal(module.users, 0);
}

static void test_budget_evicts_oldest_end_first(void **state)
{
	struct proctable *t = *state;
	struct proctable_stats s;
	pid_t pid;

	for (pid = 1000; pid < 1000 + 50000; pid++) {
		uint64_t time = 100 + (uint64_t)pid * 10;

		do_fork(t, time, 100, pid);
		do_exec(t, time + 1, pid, "short");
		do_map(t, time + 2, pid, 0x1000, 0x1000, 0, "/bin/short", 3);
		do_exit(t, time + 3, pid, pid);
	}
	proctable_stats(t, &s);
	assert_true(s.bytes <= 1 << 20);
	assert_true(s.evicted > 0);
	assert_int_equal(s.lives + s.evicted, 100000 + 2); // and the two of the setup
	assert_int_equal(s.refused_mappings, 0);
	assert_non_null(proctable_newest(t, 100)); // still runs
	assert_null(proctable_newest(t, 1000));
	assert_non_null(proctable_newest(t, pid - 1));
	proctable_forget(t, UINT64_MAX);
	proctable_stats(t, &s);
	assert_int_equal(s.lives, 1);
}

static void test_budget_refuses_when_all_run(void **state)
{
	struct proctable *t = *state;
	struct proctable_stats s;
	char path[64];

	for (int i = 0; i < 50000; i++) {
		snprintf(path, sizeof(path), "/lib/%d.so", i);
		do_map(t, 30, 100, 0x100000 + (uint64_t)i * 0x1000, 0x1000, 0, path, 100 + (uint64_t)i);
	}
	proctable_stats(t, &s);
	assert_true(s.bytes <= 1 << 20);
	assert_true(s.refused_mappings > 0);
	assert_int_equal(mappings(t, 100) + s.refused_mappings, 50001);
	for (pid_t pid = 1000; pid < 20000; pid++)
		do_fork(t, 40, 100, pid);
	proctable_stats(t, &s);
	assert_true(s.bytes <= 1 << 20);
	assert_true(s.evicted > 0);
	assert_string_equal(path_at(t, 100, 0x1000, 50), "/bin/sh");
}

static void test_names_are_valid_text(void **state)
{
	struct proctable *t = *state;

	named(t, PROC_COMM, 30, 100, 100, "\xff\x01z\xc3\xa9");
	assert_string_equal(proctable_newest(t, 100)->name, "??z\xc3\xa9");
	named(t, PROC_COMM, 31, 100, 100, "a name that is much too long for a comm");
	assert_int_equal(strlen(proctable_newest(t, 100)->name), 15);
}

static void test_gone_are_ended(void **state)
{
	struct proctable *t = *state;

	do_fork(t, 100, 100, 101);
	proctable_newest(t, 100)->scanned_ns = 60;
	proctable_end_unscanned(t, 50, 110);
	assert_true(proctable_newest(t, 100)->end_ns == UINT64_MAX);
	assert_true(proctable_newest(t, 101)->end_ns == UINT64_MAX); // began later
	proctable_end_unscanned(t, 105, 110);
	assert_int_equal(proctable_newest(t, 100)->end_ns, 110);
	assert_int_equal(proctable_newest(t, 101)->end_ns, 110);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_fork_shares_then_parts),
		TEST(test_exec_is_another_life),
		TEST(test_threads_are_no_processes),
		TEST(test_process_ends_with_its_last_thread),
		TEST(test_pid_reuse),
		TEST(test_lost_beginning),
		TEST(test_address_as_of_time),
		TEST(test_what_is_known_adds_nothing),
		TEST(test_generated_code_grows_one_mapping),
		TEST(test_modules_are_counted),
		TEST(test_budget_evicts_oldest_end_first),
		TEST(test_budget_refuses_when_all_run),
		TEST(test_names_are_valid_text),
		TEST(test_gone_are_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
