// SPDX-License-Identifier: Apache-2.0
#include "agent/unwind_jobs.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct unwind_jobs {
	pthread_mutex_t mutex;
	pthread_cond_t more, idle;
	bool working;
	struct unwind_job *first;
	bool ended;
};

void unwind_job_free(struct unwind_job *job)
{
	if (!job)
		return;
	for (unsigned i = 0; i < job->n_files; i++)
		if (job->files[i].fd >= 0)
			close(job->files[i].fd);
	free(job->files);
	free(job->ranges);
	free(job);
}

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

void unwind_jobs_free(struct unwind_jobs *q)
{
	struct unwind_job *job;

	if (!q)
		return;
	while ((job = q->first)) {
		q->first = job->next;
		unwind_job_free(job);
	}
	pthread_mutex_destroy(&q->mutex);
	pthread_cond_destroy(&q->more);
	pthread_cond_destroy(&q->idle);
	free(q);
}

void unwind_jobs_put(struct unwind_jobs *q, struct unwind_job *job)
{
	struct unwind_job **at, *old = NULL;

	pthread_mutex_lock(&q->mutex);
	for (at = &q->first; *at && (*at)->pid != job->pid; at = &(*at)->next)
		;
	old = *at;
	job->next = old ? old->next : NULL;
	*at = job;
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->mutex);
	unwind_job_free(old);
}

struct unwind_job *unwind_jobs_take(struct unwind_jobs *q)
{
	struct unwind_job *job;

	pthread_mutex_lock(&q->mutex);
	q->working = false;
	if (!q->first)
		pthread_cond_broadcast(&q->idle);
	while (!q->first && !q->ended)
		pthread_cond_wait(&q->more, &q->mutex);
	q->working = !q->ended;
	job = q->ended ? NULL : q->first;
	if (job)
		q->first = job->next;
	pthread_mutex_unlock(&q->mutex);
	return job;
}

bool unwind_jobs_waiting(struct unwind_jobs *q, pid_t pid)
{
	struct unwind_job *job;

	pthread_mutex_lock(&q->mutex);
	for (job = q->first; job && job->pid != pid; job = job->next)
		;
	pthread_mutex_unlock(&q->mutex);
	return job;
}

void unwind_jobs_settle(struct unwind_jobs *q, unsigned timeout_ms)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&q->mutex);
	while ((q->first || q->working) && !err)
		err = pthread_cond_timedwait(&q->idle, &q->mutex, &until);
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
