// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/unwind_jobs.h"

static int some_file(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static struct unwind_job *job_of(pid_t pid, struct unwind_file *file)
{
	struct unwind_job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	job->pid = pid;
	if (!file)
		return job;
	job->files = calloc(1, sizeof(*job->files));
	assert_non_null(job->files);
	job->files[job->n_files++].file = file;
	return job;
}

static void shares_files(void **state)
{
	struct unwind_jobs *q = unwind_jobs_new();
	int fd = some_file(), other = some_file();
	struct unwind_file *f;
	struct unwind_job *job;

	(void)state;
	assert_null(unwind_jobs_find_file(q, "a"));
	f = unwind_jobs_add_file(q, "a", fd);
	assert_non_null(f);
	assert_string_equal(unwind_file_identity(f), "a");
	unwind_jobs_put(q, job_of(1, f));
	assert_ptr_equal(unwind_jobs_find_file(q, "a"), f);
	unwind_jobs_put(q, job_of(2, f));
	assert_ptr_equal(unwind_jobs_add_file(q, "a", other), f);
	assert_false(is_open(other));
	unwind_jobs_put(q, job_of(3, f));
	for (pid_t pid = 1; pid <= 3; pid++) {
		job = unwind_jobs_take(q);
		assert_int_equal(job->pid, pid);
		assert_int_equal(unwind_file_fd(q, job->files[0].file), fd);
		assert_true(is_open(fd));
		unwind_job_free(q, job);
	}
	assert_false(is_open(fd));
	assert_null(unwind_jobs_find_file(q, "a"));
	unwind_jobs_free(q);
}

static void opens_few_files(void **state)
{
	struct unwind_jobs *q = unwind_jobs_new();
	char name[16];

	(void)state;
	for (int i = 0; i < UNWIND_FILES_OPEN; i++) {
		assert_false(unwind_jobs_files_full(q));
		snprintf(name, sizeof(name), "%d", i);
		unwind_jobs_put(q, job_of(i + 1, unwind_jobs_add_file(q, name, some_file())));
	}
	assert_true(unwind_jobs_files_full(q));
	unwind_job_free(q, unwind_jobs_take(q));
	assert_false(unwind_jobs_files_full(q));
	assert_int_equal(unwind_jobs_count(q), UNWIND_FILES_OPEN - 1);
	unwind_jobs_free(q);
}

// Whoever waits for the file's table finds it by then.
static void closes_what_is_compiled(void **state)
{
	struct unwind_jobs *q = unwind_jobs_new();
	int fd = some_file();
	struct unwind_file *f = unwind_jobs_add_file(q, "a", fd);

	(void)state;
	unwind_jobs_put(q, job_of(1, f));
	unwind_jobs_compiled(q, "a", true);
	assert_false(is_open(fd));
	unwind_job_free(q, unwind_jobs_take(q));
	assert_ptr_equal(unwind_jobs_find_file(q, "a"), f);
	unwind_jobs_put(q, job_of(2, f));
	unwind_jobs_compiled(q, "a", false);
	assert_null(unwind_jobs_find_file(q, "a"));
	fd = some_file();
	assert_ptr_equal(unwind_jobs_add_file(q, "a", fd), f);
	assert_int_equal(unwind_file_fd(q, f), fd);
	unwind_jobs_put(q, job_of(3, f));
	unwind_jobs_free(q);
	assert_false(is_open(fd));
}

// The last one about a process counts, in the place of the first.
static void replaces_in_place(void **state)
{
	struct unwind_jobs *q = unwind_jobs_new();
	int fd = some_file();
	struct unwind_job *job;

	(void)state;
	unwind_jobs_put(q, job_of(1, unwind_jobs_add_file(q, "a", fd)));
	unwind_jobs_put(q, job_of(2, NULL));
	job = job_of(1, NULL);
	job->gone = true;
	unwind_jobs_put(q, job);
	assert_false(is_open(fd));
	assert_int_equal(unwind_jobs_count(q), 2);
	assert_true(unwind_jobs_waiting(q, 1));
	job = unwind_jobs_take(q);
	assert_int_equal(job->pid, 1);
	assert_true(job->gone);
	assert_false(unwind_jobs_waiting(q, 1));
	unwind_job_free(q, job);
	unwind_jobs_free(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_files),		    cmocka_unit_test(opens_few_files),
		cmocka_unit_test(closes_what_is_compiled), cmocka_unit_test(replaces_in_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
