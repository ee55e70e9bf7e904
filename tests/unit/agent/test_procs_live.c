// SPDX-License-Identifier: Apache-2.0
// Real processes followed on this kernel: short-lived ones, exec, threads, files that are gone, generated code, a fork
// storm. Needs perf_event_open on every CPU; skipped without.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/procs.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/file.h"
#include "symbolize/procmaps.h"

struct world {
	struct symbolizer *symbolizer;
	struct procs *procs;
	char folder[64];
};

static int setup_with(void **state, size_t memory)
{
	struct world *w = calloc(1, sizeof(*w));
	struct error e;

	w->symbolizer = symbolizer_new(NULL);
	w->procs = procs_new(&(struct procs_options){ .symbolizer = w->symbolizer, .memory = memory }, &e);
	memcpy(w->folder, "/tmp/test_procs.XXXXXX", 23);
	*state = w;
	return w->procs && !e.text[0] && mkdtemp(w->folder) ? 0 : -1;
}

static int setup(void **state)
{
	return setup_with(state, 0);
}

static int setup_small(void **state)
{
	return setup_with(state, 2 << 20);
}

static int teardown(void **state)
{
	struct world *w = *state;

	procs_free(w->procs);
	symbolizer_free(w->symbolizer);
	rmdir(w->folder);
	free(w);
	return 0;
}

static void copy_program(const char *from, const char *to)
{
	struct buf b = { 0 };
	int fd;

	assert_int_equal(file_read(from, 64 << 20, &b), 0);
	fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, b.data, b.len), b.len);
	close(fd);
	buf_free(&b);
}

// A program that prints its own mappings and ends, or, with a descriptor to wait on, stays until that is closed.
static pid_t start(const char *program, const char *root, int out, int wait_for)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	personality(ADDR_NO_RANDOMIZE);
	if (out >= 0)
		dup2(out, 1);
	if (wait_for >= 0)
		dup2(wait_for, 0);
	if (root && (chroot(root) || chdir("/")))
		_exit(126);
	if (wait_for >= 0)
		execl(program, program, "/proc/self/maps", "-", (char *)NULL);
	else
		execl(program, program, "/proc/self/maps", (char *)NULL);
	_exit(127);
}

static void reap(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

struct text {
	char bytes[32768];
	size_t len;
};

static void read_maps(int fd, struct text *t)
{
	ssize_t n = 1;

	t->len = 0;
	// The stack is the last but two or three: by then all files were shown.
	while (n > 0 && !memmem(t->bytes, t->len, "[stack]", 7)) {
		n = read(fd, t->bytes + t->len, sizeof(t->bytes) - t->len);
		if (n > 0)
			t->len += (size_t)n;
	}
}

// Every executable mapping that the process itself printed is known; returns how many of a file have a whole module.
static unsigned check_maps(struct world *w, pid_t pid, uint64_t time, const struct text *t)
{
	struct proc *p = procs_find(w->procs, pid, time);
	unsigned whole = 0, files = 0;
	const char *line = t->bytes, *end;

	assert_non_null(p);
	for (; (end = memchr(line, '\n', t->len - (size_t)(line - t->bytes))); line = end + 1) {
		struct procmaps_entry e;
		struct proc_map m;

		assert_int_equal(procmaps_parse(line, (size_t)(end - line), &e), 0);
		if (!e.executable || !e.path_len || !strncmp(e.path, "[vsyscall]", 10))
			continue;
		assert_true(proc_find_map(w->procs, p, e.start + 8, time, &m));
		assert_int_equal(e.start - e.offset, m.start - m.offset);
		assert_memory_equal(m.path, e.path, strlen(m.path));
		if (e.path[0] != '/')
			continue;
		files++;
		assert_non_null(m.module);
		whole += !sym_module_error(m.module) && sym_module_build_id(m.module);
	}
	assert_true(files >= 2);
	return whole;
}

static void test_short_lived(void **state)
{
	struct world *w = *state;
	char program[128];

	snprintf(program, sizeof(program), "%s/short", w->folder);
	copy_program("/bin/cat", program);
	for (int i = 0; i < 30; i++) {
		struct text t;
		uint64_t now;
		int out[2];
		pid_t pid;

		assert_int_equal(pipe(out), 0);
		pid = start(program, NULL, out[1], -1);
		close(out[1]);
		read_maps(out[0], &t);
		reap(pid);
		close(out[0]);
		now = clock_monotonic();
		procs_poll(w->procs);
		assert_string_equal(proc_name(procs_find(w->procs, pid, now)), "short");
		assert_string_equal(proc_exe(procs_find(w->procs, pid, now)), program);
		assert_true(*proc_service(procs_find(w->procs, pid, now)));
		assert_true(check_maps(w, pid, now, &t) >= 2); // all of its files are still there
	}
	unlink(program);
}

static void test_file_removed_while_it_runs(void **state)
{
	struct world *w = *state;
	int out[2], stay[2];
	char program[128];
	uint64_t now;
	struct text t;
	pid_t pid;

	snprintf(program, sizeof(program), "%s/removed", w->folder);
	copy_program("/bin/cat", program);
	assert_int_equal(pipe2(out, O_CLOEXEC) | pipe2(stay, O_CLOEXEC), 0);
	pid = start(program, NULL, out[1], stay[0]);
	read_maps(out[0], &t);
	unlink(program);
	assert_int_equal(mkfifo(program, 0600), 0); // nothing may wait on what took its place
	now = clock_monotonic();
	procs_touch(w->procs, pid, now);
	close(stay[1]);
	reap(pid);
	procs_poll(w->procs);
	assert_true(check_maps(w, pid, now, &t) >= 2);
	unlink(program);
	close(out[0]);
	close(out[1]);
	close(stay[0]);
}

static void test_file_gone_with_its_process(void **state)
{
	struct world *w = *state;
	struct procs_stats before, after;
	char program[128];
	uint64_t now;
	struct text t;
	int out[2];
	pid_t pid;

	procs_stats(w->procs, &before);
	snprintf(program, sizeof(program), "%s/gone", w->folder);
	copy_program("/bin/cat", program);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = start(program, NULL, out[1], -1);
	read_maps(out[0], &t);
	reap(pid);
	unlink(program);
	assert_int_equal(mkfifo(program, 0600), 0);
	now = clock_monotonic();
	procs_poll(w->procs);
	assert_true(check_maps(w, pid, now, &t) >= 1); // libc; the program is named by its path only
	assert_true(clock_monotonic() - now < 2000000000u);
	procs_stats(w->procs, &after);
	assert_int_equal(after.missing_files, before.missing_files + 1);
	unlink(program);
	close(out[0]);
	close(out[1]);
}

static void *rename_and_wait(void *pipe_fd)
{
	char c;

	pthread_setname_np(pthread_self(), "a-thread");
	(void)!read(*(int *)pipe_fd, &c, 1);
	return NULL;
}

static void test_threads_and_names(void **state)
{
	struct world *w = *state;
	struct procs_stats before, after;
	char name[16] = "";
	pthread_t thread;
	int stay[2];

	prctl(PR_GET_NAME, name);
	procs_poll(w->procs);
	procs_stats(w->procs, &before);
	assert_int_equal(pipe(stay), 0);
	assert_int_equal(pthread_create(&thread, NULL, rename_and_wait, &stay[0]), 0);
	close(stay[1]);
	pthread_join(thread, NULL);
	close(stay[0]);
	procs_poll(w->procs);
	assert_string_equal(proc_name(procs_find(w->procs, getpid(), clock_monotonic())), name);
	prctl(PR_SET_NAME, "renamed \xff");
	procs_poll(w->procs);
	assert_string_equal(proc_name(procs_find(w->procs, getpid(), clock_monotonic())), "renamed ?");
	prctl(PR_SET_NAME, name);
	procs_stats(w->procs, &after);
	assert_true(after.known < before.known + 20); // others on this host may start meanwhile
}

static void test_exec_keeps_the_pid(void **state)
{
	struct world *w = *state;
	struct proc *before, *after;
	uint64_t first, second;
	int go[2];
	pid_t pid;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		char c;

		prctl(PR_SET_NAME, "forked");
		(void)!read(go[0], &c, 1);
		execl("/bin/sleep", "sleep", "0.2", (char *)NULL);
		_exit(127);
	}
	usleep(20000);
	first = clock_monotonic();
	(void)!write(go[1], "x", 1);
	usleep(100000);
	second = clock_monotonic();
	procs_poll(w->procs);
	before = procs_find(w->procs, pid, first);
	after = procs_find(w->procs, pid, second);
	assert_ptr_not_equal(before, after);
	assert_string_equal(proc_name(before), "forked");
	assert_string_equal(proc_name(after), "sleep");
	assert_string_equal(proc_exe(before), proc_exe(procs_find(w->procs, getpid(), second)));
	reap(pid);
	close(go[0]);
	close(go[1]);
}

// Where a library is mapped over generated code, an address means one or the other by the time.
static void test_mappings_over_time(void **state)
{
	struct world *w = *state;
	uint8_t *code = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/bin/cat", O_RDONLY | O_CLOEXEC), memory = memfd_create("jit", MFD_CLOEXEC);
	uint64_t anonymous, mapped, generated;
	struct proc_map m;
	struct proc *p;

	assert_int_equal(mprotect(code, 65536, PROT_READ | PROT_EXEC), 0);
	anonymous = clock_monotonic();
	assert_ptr_equal(mmap(code, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 4096), code);
	mapped = clock_monotonic();
	assert_int_equal(ftruncate(memory, 8192), 0);
	assert_ptr_equal(mmap(code, 8192, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, memory, 0), code);
	generated = clock_monotonic();
	procs_touch(w->procs, getpid(), generated);

	p = procs_find(w->procs, getpid(), generated);
	assert_true(proc_find_map(w->procs, p, (uintptr_t)code + 100, anonymous, &m));
	assert_string_equal(m.path, "//anon");
	assert_null(m.module);
	assert_true(proc_find_map(w->procs, p, (uintptr_t)code + 100, mapped, &m));
	assert_non_null(strstr(m.path, "bin/cat"));
	assert_int_equal(m.start, (uintptr_t)code);
	assert_int_equal(m.offset, 4096);
	// Its range is another file's by now, so that it was found by its path.
	assert_non_null(sym_module_build_id(m.module));
	assert_true(proc_find_map(w->procs, p, (uintptr_t)code + 100, generated, &m));
	assert_string_equal(m.path, "/memfd:jit");
	assert_null(m.module);
	assert_true(proc_find_map(w->procs, p, (uintptr_t)code + 8192, generated, &m));
	assert_string_equal(m.path, "//anon");
	munmap(code, 65536);
	close(fd);
	close(memory);
}

static void test_dlopen_and_vdso(void **state)
{
	struct world *w = *state;
	void *library = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);
	void *symbol = library ? dlsym(library, "openpty") : NULL;
	uint64_t now = clock_monotonic();
	struct sym_line lines[SYM_LINES_MAX];
	struct proc_map m;
	struct proc *p;
	unsigned n;

	procs_poll(w->procs);
	p = procs_find(w->procs, getpid(), now);
	if (symbol)
		assert_true(proc_find_map(w->procs, p, (uintptr_t)symbol, now, &m));
	assert_true(proc_find_map(w->procs, p, (uintptr_t)test_dlopen_and_vdso, now, &m));
	n = sym_module_lookup(m.module, (uintptr_t)test_dlopen_and_vdso - m.start + m.offset, lines);
	assert_string_equal(lines[n - 1].name, "test_dlopen_and_vdso");
	if (library)
		dlclose(library);
}

// As in a container: files under a root of its own, in a mount namespace that ends with the process that made it.
static void test_another_root(void **state)
{
	static const char *const shared[] = { "usr", "lib", "lib64", "proc" };
	struct world *w = *state;
	int out[2], who[2], stay[2];
	char program[128];
	struct text t;
	uint64_t now;
	pid_t keeper, pid;

	assert_int_equal(pipe2(out, O_CLOEXEC) | pipe2(who, O_CLOEXEC) | pipe2(stay, O_CLOEXEC), 0);
	keeper = fork();
	if (!keeper) {
		char path[128], c;
		bool ok = !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
			  !mount("none", w->folder, "tmpfs", 0, NULL);

		close(stay[1]);
		for (unsigned i = 0; ok && i < sizeof(shared) / sizeof(*shared); i++) {
			char from[16];

			snprintf(from, sizeof(from), "/%s", shared[i]);
			snprintf(path, sizeof(path), "%s/%s", w->folder, shared[i]);
			ok = !mkdir(path, 0755) && !mount(from, path, NULL, MS_BIND | MS_REC, NULL);
		}
		snprintf(program, sizeof(program), "%s/inside", w->folder);
		if (!ok)
			_exit(77);
		copy_program("/bin/cat", program);
		if (chroot(w->folder) || chdir("/"))
			_exit(78);
		pid = start("/inside", NULL, out[1], -1);
		if (waitpid(pid, NULL, 0) != pid || write(who[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(79);
		(void)!read(stay[0], &c, 1);
		_exit(0);
	}
	close(out[1]);
	close(who[1]);
	close(stay[0]);
	read_maps(out[0], &t);
	assert_int_equal(read(who[0], &pid, sizeof(pid)), sizeof(pid));
	now = clock_monotonic();
	procs_touch(w->procs, pid, now);
	// The process is gone; its parent still sees its files.
	assert_string_equal(proc_name(procs_find(w->procs, pid, now)), "inside");
	assert_true(check_maps(w, pid, now, &t) >= 2);
	close(stay[1]);
	reap(keeper);
	close(out[0]);
	close(who[0]);
}

static int end_at_once(void *unused)
{
	// Not _exit: a sanitizer's would look for its own stack.
	return (int)syscall(SYS_exit_group, 0);
}

#define STORM_AT_ONCE 64

// Processes that share this one's memory: to fork a sanitizer's would take minutes. So many at a time, each on a stack of
// its own until it is reaped.
static void storm(unsigned forks)
{
	static char stacks[STORM_AT_ONCE][16384];
	static pid_t pids[STORM_AT_ONCE];
	unsigned slot = 0;

	for (unsigned i = 0; i < forks; i++) {
		if (i < STORM_AT_ONCE) {
			slot = i;
		} else {
			pid_t reaped = waitpid(-1, NULL, 0);

			for (slot = 0; slot < STORM_AT_ONCE - 1 && pids[slot] != reaped; slot++)
				;
		}
		pids[slot] = clone(end_at_once, stacks[slot] + sizeof(stacks[slot]), CLONE_VM | SIGCHLD, NULL);
		if (pids[slot] < 0)
			_exit(1);
	}
	while (wait(NULL) > 0)
		;
	_exit(0);
}

static void test_fork_storm(void **state)
{
	struct world *w = *state;
	struct procs_stats s;
	unsigned forks = 50000;
	uint64_t now, began = clock_monotonic();
	pid_t stormy = fork(), pid;
	int status;

	if (!stormy)
		storm(forks);
	while (!waitpid(stormy, &status, WNOHANG)) {
		procs_poll(w->procs);
		procs_stats(w->procs, &s);
		assert_true(s.bytes <= 2 << 20);
		usleep(20000);
	}
	assert_int_equal(status, 0);
	procs_poll(w->procs);
	procs_stats(w->procs, &s);
	printf("storm: %u forks in %.1f s, %llu known, %llu evicted, %llu lost, %llu bytes\n", forks,
	       (double)(clock_monotonic() - began) / 1e9, (unsigned long long)s.known, (unsigned long long)s.evicted,
	       (unsigned long long)s.lost_events, (unsigned long long)s.bytes);
	assert_true(s.bytes <= 2 << 20);
	assert_true(s.evicted + s.lost_events > forks / 2);
	assert_int_equal(s.refused_mappings, 0);

	// And the next one is known as ever.
	pid = start("/bin/true", NULL, -1, -1);
	reap(pid);
	now = clock_monotonic();
	procs_touch(w->procs, pid, now);
	assert_non_null(procs_find(w->procs, pid, now));
	assert_string_equal(proc_name(procs_find(w->procs, pid, now)), "true");
}

static void test_events_lost(void **state)
{
	struct world *w = *state;
	struct procs_stats s;
	int out[2], stay[2];
	struct text t;
	uint64_t now;
	pid_t pid = fork();

	if (!pid)
		storm(40000); // more than the rings hold
	reap(pid);
	assert_int_equal(pipe2(out, O_CLOEXEC) | pipe2(stay, O_CLOEXEC), 0);
	pid = start("/bin/cat", NULL, out[1], stay[0]);
	read_maps(out[0], &t);
	now = clock_monotonic();
	procs_touch(w->procs, pid, now);
	assert_string_equal(proc_name(procs_find(w->procs, pid, now)), "cat");
	assert_true(check_maps(w, pid, now, &t) >= 2);
	close(stay[1]);
	reap(pid);
	procs_poll(w->procs);
	procs_stats(w->procs, &s);
	assert_true(s.lost_events > 0);
	close(out[0]);
	close(out[1]);
	close(stay[0]);
}

// Without the right to follow processes there is /proc, on demand, and the reason.
static void test_without_events(void **state)
{
	pid_t pid = fork();

	if (!pid) {
		struct symbolizer *symbolizer = symbolizer_new(NULL);
		struct proc_map m;
		struct procs *p;
		struct error e;
		uint64_t now;
		bool ok;

		if (setresuid(65534, 65534, 65534))
			_exit(1);
		prctl(PR_SET_DUMPABLE, 1);
		p = procs_new(&(struct procs_options){ .symbolizer = symbolizer }, &e);
		now = clock_monotonic();
		ok = p && strstr(e.text, "perf_event_open");
		procs_touch(p, getpid(), now);
		ok = ok && procs_find(p, getpid(), now) && !procs_poll(p);
		ok = ok && proc_find_map(p, procs_find(p, getpid(), now), (uintptr_t)test_without_events, now, &m) && m.module;
		procs_free(p);
		symbolizer_free(symbolizer);
		_exit(!ok);
	}
	reap(pid);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_short_lived),
		TEST(test_file_removed_while_it_runs),
		TEST(test_file_gone_with_its_process),
		TEST(test_threads_and_names),
		TEST(test_exec_keeps_the_pid),
		TEST(test_mappings_over_time),
		TEST(test_dlopen_and_vdso),
		TEST(test_another_root),
		TEST(test_events_lost),
		TEST(test_without_events),
		cmocka_unit_test_setup_teardown(test_fork_storm, setup_small, teardown),
	};
	struct procs *p;
	struct error e;

	if (geteuid()) {
		printf("skipped: needs root\n");
		return 77;
	}
	p = procs_new(&(struct procs_options){ .memory = 16 << 20 }, &e);
	procs_free(p);
	if (e.text[0]) {
		printf("skipped: %s\n", e.text);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
