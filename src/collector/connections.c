// SPDX-License-Identifier: Apache-2.0
#include "collector/connections.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/clock.h"

#define FILES_MAX (1 << 20)
#define OTHER_FILES 128 // the store's, the server's, libzmq's own

struct connection {
	uint64_t since;	  // monotonic ns; 0 = not there
	uint64_t heard;	  // the last message, 0 = none yet
	uint64_t bytes;	  // received until then
	bool cut;	  // ended by us, the event is on its way
};

struct connections {
	pthread_mutex_t lock;
	struct collector_counters *counters;
	struct connection *of; // by descriptor
	int n_of;
	unsigned n, max;
};

struct connections *connections_new(unsigned max, struct collector_counters *counters)
{
	struct connections *c = calloc(1, sizeof(*c));
	struct rlimit files = { 1024, 1024 };

	if (!c)
		return NULL;
	getrlimit(RLIMIT_NOFILE, &files);
	c->n_of = files.rlim_cur > FILES_MAX ? FILES_MAX : (int)files.rlim_cur;
	c->of = calloc((size_t)c->n_of, sizeof(*c->of));
	if (!c->of) {
		free(c);
		return NULL;
	}
	c->max = c->n_of > 2 * OTHER_FILES ? (unsigned)(c->n_of - OTHER_FILES) : (unsigned)c->n_of / 2;
	if (max && max < c->max)
		c->max = max;
	c->counters = counters;
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void connections_free(struct connections *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->lock);
	free(c->of);
	free(c);
}

static struct connection *find(struct connections *c, int fd)
{
	return fd >= 0 && fd < c->n_of && c->of[fd].since ? &c->of[fd] : NULL;
}

// The descriptor may be another connection's by now: then that one has to connect again, no more.
static void end(struct connection *at, int fd, uint64_t *counter)
{
	if (at->cut)
		return;
	at->cut = true;
	metric_add(counter, 1);
	shutdown(fd, SHUT_RDWR);
}

static bool goes_before(const struct connection *a, const struct connection *b)
{
	if (!a->heard != !b->heard)
		return !a->heard;
	return a->heard ? a->heard < b->heard : a->since < b->since;
}

static void end_one(struct connections *c)
{
	int worst = -1;

	for (int fd = 0; fd < c->n_of; fd++)
		if (c->of[fd].since && !c->of[fd].cut && (worst < 0 || goes_before(&c->of[fd], &c->of[worst])))
			worst = fd;
	if (worst >= 0)
		end(&c->of[worst], worst, &c->counters->cut_idle);
}

void connections_opened(struct connections *c, int fd)
{
	if (fd < 0 || fd >= c->n_of)
		return;
	pthread_mutex_lock(&c->lock);
	if (!c->of[fd].since)
		c->n++;
	c->of[fd] = (struct connection){ .since = clock_monotonic() };
	metric_set(&c->counters->connections, c->n);
	if (c->n > c->max)
		end_one(c);
	pthread_mutex_unlock(&c->lock);
}

void connections_closed(struct connections *c, int fd)
{
	struct connection *at;

	pthread_mutex_lock(&c->lock);
	at = find(c, fd);
	if (at) {
		memset(at, 0, sizeof(*at));
		c->n--;
		metric_set(&c->counters->connections, c->n);
	}
	pthread_mutex_unlock(&c->lock);
}

static uint64_t bytes_received(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) ? 0 : info.tcpi_bytes_received;
}

void connections_heard(struct connections *c, int fd)
{
	struct connection *at;

	pthread_mutex_lock(&c->lock);
	at = find(c, fd);
	if (at) {
		at->heard = clock_monotonic();
		at->bytes = bytes_received(fd);
	}
	pthread_mutex_unlock(&c->lock);
}

void connections_cut(struct connections *c, int fd)
{
	struct connection *at;

	pthread_mutex_lock(&c->lock);
	at = find(c, fd);
	if (at)
		end(at, fd, &c->counters->cut_malformed);
	pthread_mutex_unlock(&c->lock);
}

void connections_check(struct connections *c, uint64_t max_bytes)
{
	pthread_mutex_lock(&c->lock);
	for (int fd = 0; fd < c->n_of; fd++)
		if (c->of[fd].since && !c->of[fd].cut && bytes_received(fd) > c->of[fd].bytes + max_bytes)
			end(&c->of[fd], fd, &c->counters->cut_stuffed);
	pthread_mutex_unlock(&c->lock);
}
