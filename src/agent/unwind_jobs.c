// SPDX-License-Identifier: Apache-2.0
#include "agent/unwind_jobs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct unwind_file {
	UT_hash_handle hh;
	unsigned users;
	int fd;
	bool compiled;
	char identity[];
};

struct unwind_jobs {
	pthread_mutex_t mutex;
	pthread_cond_t more, idle;
	struct unwind_job *jobs; // by process, in the order in which they came
	struct unwind_file *files; // those with users or a table
	unsigned n_open;
	bool working, ended;
};

struct unwind_jobs *unwind_jobs_new(void)
{
	struct unwind_jobs *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	pthread_mutex_init(&q->mutex, NULL);
	pthread_cond_init(&q->more, NULL);
	pthread_cond_init(&q->idle, NULL);
	return q;
}

static void close_file(struct unwind_jobs *q, struct unwind_file *f)
{
	if (f->fd < 0)
		return;
	close(f->fd);
	f->fd = -1;
	q->n_open--;
}

static void drop_unused(struct unwind_jobs *q, struct unwind_file *f)
{
	if (f->users)
		return;
	close_file(q, f);
	if (f->compiled)
		return;
	HASH_DEL(q->files, f);
	free(f);
}

static void free_locked(struct unwind_jobs *q, struct unwind_job *job)
{
	for (unsigned i = 0; i < job->n_files; i++) {
		job->files[i].file->users--;
		drop_unused(q, job->files[i].file);
	}
	free(job->files);
	free(job->ranges);
	free(job);
}

void unwind_job_free(struct unwind_jobs *q, struct unwind_job *job)
{
	if (!job)
		return;
	pthread_mutex_lock(&q->mutex);
	free_locked(q, job);
	pthread_mutex_unlock(&q->mutex);
}

void unwind_jobs_free(struct unwind_jobs *q)
{
	struct unwind_file *f;
	struct unwind_job *job;

	if (!q)
		return;
	while ((job = q->jobs)) {
		HASH_DEL(q->jobs, job);
		free_locked(q, job);
	}
	while ((f = q->files)) {
		HASH_DEL(q->files, f);
		close_file(q, f);
		free(f);
	}
	pthread_mutex_destroy(&q->mutex);
	pthread_cond_destroy(&q->more);
	pthread_cond_destroy(&q->idle);
	free(q);
}

static struct unwind_job *job_find(struct unwind_jobs *q, pid_t pid)
{
	struct unwind_job *job;

	HASH_FIND(hh, q->jobs, &pid, sizeof(pid), job);
	return job;
}

// What it says, not where it stands.
static void swap(struct unwind_job *a, struct unwind_job *b)
{
	struct unwind_job before = *a;
	UT_hash_handle hh = b->hh;

	*a = *b;
	a->hh = before.hh;
	*b = before;
	b->hh = hh;
}

void unwind_jobs_put(struct unwind_jobs *q, struct unwind_job *job)
{
	struct unwind_job *old;

	pthread_mutex_lock(&q->mutex);
	old = job_find(q, job->pid);
	if (old) {
		swap(old, job);
		free_locked(q, job);
	} else {
		HASH_ADD(hh, q->jobs, pid, sizeof(job->pid), job);
		if (!job->hh.tbl)
			free_locked(q, job);
	}
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->mutex);
}

struct unwind_job *unwind_jobs_take(struct unwind_jobs *q)
{
	struct unwind_job *job;

	pthread_mutex_lock(&q->mutex);
	q->working = false;
	if (!q->jobs)
		pthread_cond_broadcast(&q->idle);
	while (!q->jobs && !q->ended)
		pthread_cond_wait(&q->more, &q->mutex);
	q->working = !q->ended;
	job = q->ended ? NULL : q->jobs;
	if (job)
		HASH_DEL(q->jobs, job);
	pthread_mutex_unlock(&q->mutex);
	return job;
}

unsigned unwind_jobs_count(struct unwind_jobs *q)
{
	unsigned n;

	pthread_mutex_lock(&q->mutex);
	n = HASH_COUNT(q->jobs);
	pthread_mutex_unlock(&q->mutex);
	return n;
}

bool unwind_jobs_waiting(struct unwind_jobs *q, pid_t pid)
{
	bool waiting;

	pthread_mutex_lock(&q->mutex);
	waiting = job_find(q, pid) != NULL;
	pthread_mutex_unlock(&q->mutex);
	return waiting;
}

void unwind_jobs_settle(struct unwind_jobs *q, unsigned timeout_ms)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&q->mutex);
	while ((q->jobs || q->working) && !err)
		err = pthread_cond_clockwait(&q->idle, &q->mutex, CLOCK_MONOTONIC, &until);
	pthread_mutex_unlock(&q->mutex);
}

bool unwind_jobs_ended(struct unwind_jobs *q)
{
	bool ended;

	pthread_mutex_lock(&q->mutex);
	ended = q->ended;
	pthread_mutex_unlock(&q->mutex);
	return ended;
}

void unwind_jobs_end(struct unwind_jobs *q)
{
	pthread_mutex_lock(&q->mutex);
	q->ended = true;
	pthread_cond_broadcast(&q->more);
	pthread_mutex_unlock(&q->mutex);
}

static struct unwind_file *file_find(struct unwind_jobs *q, const char *identity)
{
	struct unwind_file *f;

	HASH_FIND(hh, q->files, identity, strlen(identity), f);
	return f;
}

static struct unwind_file *file_new(struct unwind_jobs *q, const char *identity)
{
	size_t len = strlen(identity);
	struct unwind_file *f = calloc(1, sizeof(*f) + len + 1);

	if (!f)
		return NULL;
	memcpy(f->identity, identity, len);
	f->fd = -1;
	HASH_ADD_KEYPTR(hh, q->files, f->identity, len, f);
	if (f->hh.tbl)
		return f;
	free(f);
	return NULL;
}

struct unwind_file *unwind_jobs_find_file(struct unwind_jobs *q, const char *identity)
{
	struct unwind_file *f;

	pthread_mutex_lock(&q->mutex);
	f = file_find(q, identity);
	if (f && f->fd < 0 && !f->compiled)
		f = NULL;
	if (f)
		f->users++;
	pthread_mutex_unlock(&q->mutex);
	return f;
}

bool unwind_jobs_files_full(struct unwind_jobs *q)
{
	bool full;

	pthread_mutex_lock(&q->mutex);
	full = q->n_open >= UNWIND_FILES_OPEN;
	pthread_mutex_unlock(&q->mutex);
	return full;
}

struct unwind_file *unwind_jobs_add_file(struct unwind_jobs *q, const char *identity, int fd)
{
	struct unwind_file *f;

	pthread_mutex_lock(&q->mutex);
	f = file_find(q, identity);
	if (!f)
		f = file_new(q, identity);
	if (f)
		f->users++;
	if (f && f->fd < 0 && !f->compiled) {
		f->fd = fd;
		q->n_open++;
		fd = -1;
	}
	pthread_mutex_unlock(&q->mutex);
	if (fd >= 0)
		close(fd);
	return f;
}

const char *unwind_file_identity(const struct unwind_file *f)
{
	return f->identity;
}

int unwind_file_fd(struct unwind_jobs *q, struct unwind_file *f)
{
	int fd;

	pthread_mutex_lock(&q->mutex);
	fd = f->fd;
	pthread_mutex_unlock(&q->mutex);
	return fd;
}

void unwind_jobs_compiled(struct unwind_jobs *q, const char *identity, bool compiled)
{
	struct unwind_file *f;

	pthread_mutex_lock(&q->mutex);
	f = file_find(q, identity);
	if (f) {
		f->compiled = compiled;
		if (compiled)
			close_file(q, f);
		drop_unused(q, f);
	}
	pthread_mutex_unlock(&q->mutex);
}
