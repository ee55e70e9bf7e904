// SPDX-License-Identifier: Apache-2.0
#include "agent/link_closer.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/thread.h"

#define THREADS 16

struct link_closer {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t threads[THREADS];
	unsigned n_threads; // started when they are needed
	unsigned idle;
	struct bpf_link **links;
	unsigned n, room;
	bool stop;
};

static void *run(void *context)
{
	struct link_closer *c = context;
	struct bpf_link *link;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		c->idle++;
		while (!c->n && !c->stop)
			pthread_cond_wait(&c->wake, &c->lock);
		c->idle--;
		if (!c->n)
			break;
		link = c->links[--c->n];
		pthread_mutex_unlock(&c->lock);
		bpf_link__destroy(link);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

struct link_closer *link_closer_new(void)
{
	struct link_closer *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	return c;
}

void link_closer_free(struct link_closer *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < c->n_threads; i++)
		pthread_join(c->threads[i], NULL);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c->links);
	free(c);
}

// Under the lock. Whether there is a thread that will come to it.
static bool have_thread(struct link_closer *c)
{
	if (c->n_threads == THREADS || c->idle > c->n)
		return true;
	if (!thread_start(&c->threads[c->n_threads], run, c))
		c->n_threads++;
	return c->n_threads != 0;
}

static bool have_room(struct link_closer *c)
{
	unsigned room = c->room ? 2 * c->room : 64;
	struct bpf_link **links;

	if (c->n < c->room)
		return true;
	links = realloc(c->links, room * sizeof(struct bpf_link *));
	if (!links)
		return false;
	c->links = links;
	c->room = room;
	return true;
}

void link_closer_add(struct link_closer *c, struct bpf_link *link)
{
	bool later;

	pthread_mutex_lock(&c->lock);
	later = have_thread(c) && have_room(c);
	if (later) {
		c->links[c->n++] = link;
		pthread_cond_signal(&c->wake);
	}
	pthread_mutex_unlock(&c->lock);
	if (!later)
		bpf_link__destroy(link);
}
