// SPDX-License-Identifier: Apache-2.0
// The kernel side's walk, run in user space over the stacks of this very program, by tables compiled from its own files:
// what it finds is what the C library's unwinder finds.
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/procs_maps.h"
#include "agent/unwind_ranges.h"
#include "agent/unwind_tables.h"
#include "bpf/unwind_user.h"

#define MAPS_MAX 128

struct fixture {
	struct unwind_store *store;
	struct unwind_ids *ids;
	struct unwind_tables *tables;
	struct unwind_rule *rules;
	struct unwind_walk walk;
	struct unwind_mapping maps[MAPS_MAX];
	unsigned n;
};

static struct fixture *fixture;

static u32 *words(u32 place)
{
	return unwind_store_at(fixture->store, place & ~(UNWIND_ARENA_WORDS - 1));
}

// As the kernel's copy does, it fails where nothing is.
static long read_own(void *out, u32 size, u64 address)
{
	static int memory = -1;

	if (memory < 0)
		memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	return pread(memory, out, size, (off_t)address) == (ssize_t)size ? 0 : -1;
}

static int open_mapped(const struct procmaps_entry *e)
{
	char path[4096];
	size_t size;
	int fd;

	if (e->path_len == 6 && !memcmp(e->path, "[vdso]", 6)) {
		size = e->limit - e->start;
		fd = memfd_create("vdso", MFD_CLOEXEC);
		assert_int_equal(write(fd, (void *)getauxval(AT_SYSINFO_EHDR), size), (ssize_t)size);
		return fd;
	}
	snprintf(path, sizeof(path), "%.*s", (int)e->path_len, e->path);
	return path[0] == '/' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

static bool add_mapping(const struct procmaps_entry *e, void *context)
{
	struct fixture *f = context;
	struct unwind_table *table = NULL;
	struct unwind_loaded *loaded = NULL;
	struct error error;
	char identity[64];
	int fd;

	if (!e->executable || f->n == MAPS_MAX)
		return true;
	f->maps[f->n].start = e->start;
	f->maps[f->n].pages = (u32)((e->limit - e->start) >> 12);
	fd = open_mapped(e);
	if (fd >= 0 && !unwind_compile(fd, NULL, &table, &error)) {
		snprintf(identity, sizeof(identity), "%llu", (unsigned long long)e->start);
		assert_int_equal(unwind_tables_add(f->tables, identity, table, &loaded), 0);
		// The base is the page of the first executable segment, which is what is mapped here: `first` stays 0.
		f->maps[f->n].index = loaded->index;
		f->maps[f->n].n_index = loaded->n_index;
		unwind_table_free(table);
	}
	if (fd >= 0)
		close(fd);
	f->n++;
	return true;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	u32 place;

	(void)state;
	fixture = f;
	f->rules = calloc(UNWIND_RULES, sizeof(*f->rules));
	f->store = unwind_store_new(-1, 64 << 20);
	f->ids = unwind_ids_new(f->rules);
	f->tables = unwind_tables_new(f->store, f->ids);
	if (procs_maps_read(getpid(), add_mapping, f) || unwind_store_take(f->store, f->n * 6, &place))
		return -1;
	memcpy(unwind_store_at(f->store, place), f->maps, f->n * sizeof(f->maps[0]));
	f->walk.list = place;
	f->walk.n_list = f->n;
	unwind_user.words = words;
	unwind_user.rules = f->rules;
	unwind_user.read = read_own;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unwind_tables_free(fixture->tables);
	unwind_ids_free(fixture->ids);
	unwind_store_free(fixture->store);
	free(fixture->rules);
	free(fixture);
	return 0;
}

static struct unwind_user_stack found;
static enum unwind_break broken;
static void *expected[RECORD_FRAMES];
static int n_expected;

// Both walks from here. The first frame differs in where in this function it is.
static __attribute__((noinline)) void walk_here(void)
{
	struct unwind_walk w = fixture->walk;
	ucontext_t here;

	getcontext(&here);
	w.ip = (u64)here.uc_mcontext.gregs[REG_RIP];
	w.sp = (u64)here.uc_mcontext.gregs[REG_RSP];
	w.bp = (u64)here.uc_mcontext.gregs[REG_RBP];
	w.exact = 1;
	unwind_user_walk(&w, &found);
	broken = w.broken;
	n_expected = backtrace(expected, RECORD_FRAMES);
}

// Frames of a signal are executed addresses in one and addresses that are returned to in the other.
static void check_same(const char *what)
{
	unsigned skip = 0;

	// A sanitizer's own backtrace() stands above ours.
	while (found.n > 1 && skip < 2 && (int)skip + 1 < n_expected && (u64)expected[skip + 1] != found.frames[1])
		skip++;
	memmove(expected, expected + skip, ((unsigned)n_expected - skip) * sizeof(expected[0]));
	n_expected -= (int)skip;
	if ((unsigned)n_expected != found.n)
		for (unsigned i = 0; i < found.n || i < (unsigned)n_expected; i++)
			fprintf(stderr, "%s %u: %llx, expected %p\n", what, i, i < found.n ? (unsigned long long)found.frames[i] : 0,
				i < (unsigned)n_expected ? expected[i] : NULL);
	assert_int_equal(broken, UNWIND_WHOLE);
	assert_int_equal(found.n, n_expected);
	for (unsigned i = 1; i < found.n; i++)
		assert_in_range(found.frames[i] - (u64)expected[i], 0, 1);
}

static __attribute__((noinline)) int dive(int depth)
{
	volatile char room[64];

	room[0] = (char)depth;
	if (depth > 0)
		return dive(depth - 1) + room[0];
	walk_here();
	return room[0];
}

static void plain(void **state)
{
	(void)state;
	walk_here();
	check_same("plain");
	dive(60);
	check_same("deep");
	assert_true(found.n > 60);
}

static int compare(const void *a, const void *b)
{
	walk_here();
	return *(const int *)a - *(const int *)b;
}

static void through_the_library(void **state)
{
	int two[] = { 2, 1 };

	(void)state;
	qsort(two, 2, sizeof(two[0]), compare);
	check_same("qsort");
}

static __attribute__((noinline)) int with_alloca(size_t n)
{
	char *room = __builtin_alloca(n);

	memset(room, 1, n);
	walk_here();
	return room[n - 1];
}

static __attribute__((noinline)) int aligned(int n)
{
	volatile char room[256] __attribute__((aligned(128)));
	volatile char *more = __builtin_alloca((size_t)n);

	room[0] = more[0] = (char)n;
	walk_here();
	return room[0] + more[0];
}

static void odd_frames(void **state)
{
	(void)state;
	with_alloca(1000);
	check_same("alloca");
	aligned(100);
	check_same("aligned");
}

static void handler(int number)
{
	(void)number;
	walk_here();
}

static void signals(void **state)
{
	char *stack = malloc(SIGSTKSZ);
	stack_t alternate = { .ss_sp = stack, .ss_size = (size_t)SIGSTKSZ }, before;
	struct sigaction action = { .sa_handler = handler };

	(void)state;
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	check_same("signal");
	sigaltstack(&alternate, &before);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	check_same("signal on a stack of its own");
	sigaltstack(&before, NULL);
	free(stack);
}

static void *thread(void *argument)
{
	dive(3);
	return argument;
}

static void threads(void **state)
{
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, thread, NULL), 0);
	pthread_join(t, NULL);
	check_same("thread");
}

static void too_deep(void **state)
{
	(void)state;
	dive(200);
	assert_true(found.truncated);
	assert_int_equal(found.n, RECORD_FRAMES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),   cmocka_unit_test(through_the_library), cmocka_unit_test(odd_frames),
		cmocka_unit_test(signals), cmocka_unit_test(threads),		  cmocka_unit_test(too_deep),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
