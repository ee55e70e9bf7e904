// SPDX-License-Identifier: Apache-2.0
// Blobs travel to the threads many at a time: a turn of a lock for each would cost more than it brings.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_adder.h"

#define LOAD ((size_t)192 << 10) // bytes of a load; a larger blob is one of its own
#define LOADS (2 * ADDERS + 1)

struct head {
	struct adder_part part;
	size_t len;
};

struct load {
	struct buf bytes; // heads, each with its blob behind it
};

struct worker {
	struct adders *all;
	pthread_t thread;
	struct adder adder;
	struct unpacker *unpacker;
};

struct adders {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct worker worker[ADDERS];
	unsigned started;
	struct load load[LOADS];
	unsigned filling;		// by the caller
	unsigned queued[LOADS], n_queued; // full, in their order
	unsigned idle[LOADS], n_idle;
	unsigned busy; // being added
	bool stop;
	size_t memory;
	int err; // of a thread, the first one
	struct error why;
};

static int add_load(struct adder *a, struct unpacker *u, struct load *l, struct error *e)
{
	const uint8_t *p = l->bytes.data, *end = p + l->bytes.len;
	struct head h;
	int err = 0;

	while (p < end && !err) {
		memcpy(&h, p, sizeof(h));
		p += sizeof(h);
		err = adder_blob(a, u, &h.part, p, h.len, e);
		p += h.len;
	}
	l->bytes.len = 0;
	return err;
}

static void done(struct adders *a, struct worker *w, unsigned load, size_t before, int err, const struct error *e)
{
	a->memory += adder_memory(&w->adder) - before;
	a->busy--;
	a->idle[a->n_idle++] = load;
	if (err && !a->err) {
		a->err = err;
		a->why = *e;
	}
	pthread_cond_broadcast(&a->changed);
}

static void *run(void *worker)
{
	struct worker *w = worker;
	struct adders *a = w->all;
	struct error e;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		size_t before = adder_memory(&w->adder);
		unsigned load;
		int err;

		if (!a->n_queued) {
			pthread_cond_wait(&a->changed, &a->lock);
			continue;
		}
		load = a->queued[0];
		memmove(a->queued, a->queued + 1, --a->n_queued * sizeof(*a->queued));
		a->busy++;
		pthread_mutex_unlock(&a->lock);
		err = add_load(&w->adder, w->unpacker, &a->load[load], &e);
		pthread_mutex_lock(&a->lock);
		done(a, w, load, before, err, &e);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

struct adders *adders_new(void)
{
	struct adders *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	for (unsigned i = 1; i < LOADS; i++)
		a->idle[a->n_idle++] = i;
	return a;
}

void adders_free(struct adders *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	for (unsigned i = 0; i < a->started; i++)
		pthread_join(a->worker[i].thread, NULL);
	for (unsigned i = 0; i < ADDERS; i++) {
		adder_free(&a->worker[i].adder);
		unpacker_free(a->worker[i].unpacker);
	}
	for (unsigned i = 0; i < LOADS; i++)
		buf_free(&a->load[i].bytes);
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->changed);
	free(a);
}

static int start(struct adders *a, struct error *e)
{
	while (a->started < ADDERS) {
		struct worker *w = &a->worker[a->started];

		w->all = a;
		if (!w->unpacker)
			w->unpacker = unpacker_new();
		if (!w->unpacker)
			return error_set(e, -ENOMEM, "out of memory");
		if (pthread_create(&w->thread, NULL, run, w))
			return a->started ? 0 : error_set(e, -EAGAIN, "cannot start a thread");
		a->started++;
	}
	return 0;
}

static int failed(const struct adders *a, struct error *e)
{
	if (a->err && e)
		*e = a->why;
	return a->err;
}

static int hand_over(struct adders *a, struct error *e)
{
	int err = start(a, e);

	if (err)
		return err;
	pthread_mutex_lock(&a->lock);
	a->queued[a->n_queued++] = a->filling;
	pthread_cond_broadcast(&a->changed);
	while (!a->n_idle)
		pthread_cond_wait(&a->changed, &a->lock);
	a->filling = a->idle[--a->n_idle];
	err = failed(a, e);
	pthread_mutex_unlock(&a->lock);
	return err;
}

int adders_put(struct adders *a, const struct adder_part *p, const void *data, size_t len, struct error *e)
{
	struct head h;
	struct buf *to = &a->load[a->filling].bytes;
	int err = to->len && to->len + sizeof(h) + len > LOAD ? hand_over(a, e) : 0;

	if (err)
		return err;
	memset(&h, 0, sizeof(h));
	h.part = *p;
	h.len = len;
	to = &a->load[a->filling].bytes;
	buf_append(to, &h, sizeof(h));
	buf_append(to, data, len);
	return to->error ? error_set(e, to->error, "out of memory") : 0;
}

int adders_wait(struct adders *a, struct adder *own, struct unpacker *u, struct error *e)
{
	int err = add_load(own, u, &a->load[a->filling], e);

	pthread_mutex_lock(&a->lock);
	while (a->busy || a->n_queued)
		pthread_cond_wait(&a->changed, &a->lock);
	if (!err)
		err = failed(a, e);
	pthread_mutex_unlock(&a->lock);
	return err;
}

struct adder *adders_get(struct adders *a, unsigned i)
{
	return &a->worker[i].adder;
}

size_t adders_memory(struct adders *a)
{
	size_t memory;

	pthread_mutex_lock(&a->lock);
	memory = a->memory;
	pthread_mutex_unlock(&a->lock);
	return memory;
}
