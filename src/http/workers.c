// SPDX-License-Identifier: Apache-2.0
// A few threads that run requests in the order in which they came.
#include <pthread.h>
#include <stdlib.h>

#include "http/internal.h"

struct http_workers {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct http_job *first, **last;
	unsigned waiting, most, n;
	bool stop;
	void (*run)(void *context, struct http_job *job);
	void *context;
	pthread_t threads[];
};

static void *worker(void *argument)
{
	struct http_workers *w = argument;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct http_job *job = w->first;

		if (!job) {
			if (w->stop)
				break;
			pthread_cond_wait(&w->work, &w->lock);
			continue;
		}
		w->first = job->next;
		if (!w->first)
			w->last = &w->first;
		w->waiting--;
		pthread_mutex_unlock(&w->lock);
		w->run(w->context, job);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

struct http_workers *http_workers_new(unsigned threads, unsigned waiting, void (*run)(void *context, struct http_job *), void *context)
{
	struct http_workers *w = calloc(1, sizeof(*w) + threads * sizeof(*w->threads));

	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->work, NULL);
	w->last = &w->first;
	w->most = waiting;
	w->run = run;
	w->context = context;
	while (w->n < threads && !pthread_create(&w->threads[w->n], NULL, worker, w))
		w->n++;
	if (w->n == threads)
		return w;
	http_workers_free(w);
	return NULL;
}

bool http_workers_add(struct http_workers *w, struct http_job *job)
{
	bool room;

	pthread_mutex_lock(&w->lock);
	room = w->waiting < w->most && !w->stop;
	if (room) {
		job->next = NULL;
		*w->last = job;
		w->last = &job->next;
		w->waiting++;
		pthread_cond_signal(&w->work);
	}
	pthread_mutex_unlock(&w->lock);
	return room;
}

void http_workers_stop(struct http_workers *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->work);
	pthread_mutex_unlock(&w->lock);
	while (w->n)
		pthread_join(w->threads[--w->n], NULL);
}

void http_workers_free(struct http_workers *w)
{
	if (!w)
		return;
	http_workers_stop(w);
	pthread_cond_destroy(&w->work);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
