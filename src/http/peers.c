// SPDX-License-Identifier: Apache-2.0
// The server's own time limit (libmicrohttpd's is of silence only) lets who sends or reads a byte now and then keep a
// connection, and the memory of an answer, for ever. Here each step has an end.
#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/metrics.h"
#include "http/internal.h"

#define LOOK_NS 500000000ull
#define SLACK_NS 2000000000ull // who is merely silent is let go by libmicrohttpd, and not counted
#define SECOND_NS 1000000000ull

struct http_peer {
	int fd;
	uint64_t until; // monotonic ns; 0 = it is we who take our time
	struct http_peer *prev, *next;
};

struct http_peers {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	bool running, stop;
	struct http_peer *list;
	uint64_t timeout; // ns
	uint64_t *cut;	  // counter
};

static void cut_late(struct http_peers *p)
{
	uint64_t now = clock_monotonic();

	for (struct http_peer *one = p->list; one; one = one->next) {
		if (!one->until || now < one->until)
			continue;
		one->until = 0;
		metric_add(p->cut, 1);
		shutdown(one->fd, SHUT_RDWR); // the server's thread sees it and closes it
	}
}

static void *run(void *peers)
{
	struct http_peers *p = peers;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		uint64_t at = clock_monotonic() + LOOK_NS;
		struct timespec t = { (time_t)(at / SECOND_NS), (long)(at % SECOND_NS) };

		cut_late(p);
		pthread_cond_clockwait(&p->wake, &p->lock, CLOCK_MONOTONIC, &t);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

struct http_peers *http_peers_new(unsigned timeout_s, uint64_t *cut)
{
	struct http_peers *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	p->timeout = timeout_s * SECOND_NS + SLACK_NS;
	p->cut = cut;
	p->running = !pthread_create(&p->thread, NULL, run, p);
	if (p->running)
		return p;
	http_peers_free(p);
	return NULL;
}

void http_peers_free(struct http_peers *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	if (p->running)
		pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

struct http_peer *http_peers_add(struct http_peers *p, int fd)
{
	struct http_peer *one = calloc(1, sizeof(*one));

	if (!one)
		return NULL;
	one->fd = fd;
	one->until = clock_monotonic() + p->timeout;
	pthread_mutex_lock(&p->lock);
	DL_APPEND(p->list, one);
	pthread_mutex_unlock(&p->lock);
	return one;
}

void http_peers_remove(struct http_peers *p, struct http_peer *one)
{
	if (!one)
		return;
	pthread_mutex_lock(&p->lock);
	DL_DELETE(p->list, one);
	pthread_mutex_unlock(&p->lock);
	free(one);
}

static void set(struct http_peers *p, struct http_peer *one, uint64_t until)
{
	if (!one)
		return;
	pthread_mutex_lock(&p->lock);
	one->until = until;
	pthread_mutex_unlock(&p->lock);
}

void http_peer_asks(struct http_peers *p, struct http_peer *one)
{
	set(p, one, clock_monotonic() + p->timeout);
}

void http_peer_waits(struct http_peers *p, struct http_peer *one)
{
	set(p, one, 0);
}

void http_peer_reads(struct http_peers *p, struct http_peer *one, uint64_t bytes)
{
	set(p, one, clock_monotonic() + p->timeout + bytes * SECOND_NS / HTTP_READS_LEAST);
}
