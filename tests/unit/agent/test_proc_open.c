// SPDX-License-Identifier: Apache-2.0
// Files and threads of processes, and how many of them are looked after.
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/jvm_quality.h"
#include "agent/proc_open.h"
#include "agent/proc_threads.h"
#include "agent/request_names.h"

static void folders(void **state)
{
	int root = proc_open_folder(getpid(), "root");
	struct stat ours, found;

	assert_true(root >= 0);
	assert_int_equal(stat("/", &ours), 0);
	assert_int_equal(fstat(root, &found), 0);
	assert_true(ours.st_dev == found.st_dev && ours.st_ino == found.st_ino);
	close(root);
	assert_int_equal(proc_open_folder(4194303, "root"), -ENOENT);
}

static void what_a_server_answers_for(void **state)
{
	static const char *const plain[] = { "/", "/proc/self", "/proc/.x/..y/z./", "/proc/..." };
	static const char *const other[] = { "", "proc", "//proc", "/proc//self", "/proc/./self", "/proc/../tmp", "/proc/..", "/proc/." };

	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		assert_false(proc_path_is_remote(getpid(), plain[i]));
	// Of these nobody can tell.
	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++)
		assert_true(proc_path_is_remote(getpid(), other[i]));
	assert_true(proc_path_is_remote(4194303, "/proc/self"));
}

static void links_lead_nowhere(void **state)
{
	char path[] = "/tmp/test_proc_open.XXXXXX", link[64], magic[64];
	int folder;

	assert_non_null(mkdtemp(path));
	snprintf(link, sizeof(link), "%s/out", path);
	snprintf(magic, sizeof(magic), "%s/magic", path);
	assert_int_equal(symlink("/etc/passwd", link), 0);
	assert_int_equal(symlink("/proc/self/exe", magic), 0);
	folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(proc_open_below(folder, "out", O_PATH, 0, RESOLVE_BENEATH), -EXDEV);
	assert_int_equal(proc_open_below(folder, "out", O_PATH, 0, RESOLVE_IN_ROOT), -ENOENT);
	assert_int_equal(proc_open_below(folder, "magic", O_PATH, 0, 0), -ELOOP);
	close(folder);
	unlink(link);
	unlink(magic);
	rmdir(path);
}

static int read_again(const char *path)
{
	int found = open(path, O_PATH | O_CLOEXEC), fd;

	assert_true(found >= 0);
	fd = proc_open_to_read(getpid(), found);
	close(found);
	return fd;
}

static void only_local_files_are_read(void **state)
{
	char path[] = "/tmp/test_proc_open.XXXXXX", pipe[64];
	int fd = mkstemp(path), again;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_true(proc_is_local(getpid(), fd));
	again = read_again(path);
	assert_true(again >= 0);
	assert_int_equal(read(again, pipe, 1), 1);
	close(again);
	close(fd);
	snprintf(pipe, sizeof(pipe), "%s.pipe", path);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(read_again(pipe), -EACCES);
	assert_int_equal(read_again("/tmp"), -EACCES);
	unlink(pipe);
	unlink(path);
}

static void *wait_named(void *context)
{
	pthread_barrier_t *both = context;

	prctl(PR_SET_NAME, "Attach Listener");
	pthread_barrier_wait(both);
	pthread_barrier_wait(both);
	return NULL;
}

static void threads_by_name(void **state)
{
	static const char *const names[] = { "Signal Dispatch", "Attach Listener", "Attach" };
	pthread_barrier_t both;
	pthread_t thread;

	assert_int_equal(proc_threads_named(getpid(), names, 3), 0);
	pthread_barrier_init(&both, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, wait_named, &both), 0);
	pthread_barrier_wait(&both);
	assert_int_equal(proc_threads_named(getpid(), names, 3), 2);
	pthread_barrier_wait(&both);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&both);
	assert_int_equal(proc_threads_named(4194303, names, 3), 0);
}

#define ROOM 256

// Numbers that no process has.
static void too_many_are_counted(void **state)
{
	struct request_names *n = request_names_new(NULL);
	struct jvm_quality *q = jvm_quality_new();

	assert_true(n && q);
	for (pid_t pid = 5000000; pid < 5000000 + ROOM; pid++) {
		request_names_ask(n, pid);
		jvm_quality_ask(q, pid);
	}
	jvm_quality_ask(q, 5000000);
	assert_int_equal(request_names_left_out(n) + jvm_quality_left_out(q), 0);
	request_names_ask(n, 5000000 + ROOM);
	jvm_quality_ask(q, 5000000 + ROOM);
	assert_int_equal(request_names_left_out(n), 1);
	assert_int_equal(jvm_quality_left_out(q), 1);
	// One that has gone makes room.
	jvm_quality_forget(q, 5000007);
	jvm_quality_ask(q, 5000000 + ROOM + 1);
	assert_int_equal(jvm_quality_left_out(q), 1);
	request_names_free(n);
	jvm_quality_free(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folders),
		cmocka_unit_test(what_a_server_answers_for),
		cmocka_unit_test(links_lead_nowhere),
		cmocka_unit_test(only_local_files_are_read),
		cmocka_unit_test(threads_by_name),
		cmocka_unit_test(too_many_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
