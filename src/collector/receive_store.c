// SPDX-License-Identifier: Apache-2.0
#include "collector/receive_store.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct storer {
	struct store *store;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t given;
	struct group *group; // at hand
	bool done, stop, started;
	bool busy; // of the thread that gives
	int fd;
};

static int put(struct storer *s, struct group *g, unsigned first, unsigned n)
{
	const struct batch *batches[GROUP_MAX];
	int results[GROUP_MAX] = { 0 };
	struct error *whys[GROUP_MAX];
	uint64_t before = clock_monotonic();
	int err;

	for (unsigned i = 0; i < n; i++) {
		batches[i] = g->item[first + i].batch;
		whys[i] = &g->item[first + i].why;
	}
	err = store_put_why(s->store, batches, n, results, whys, &g->why);
	for (unsigned i = 0; i < n; i++) {
		g->item[first + i].result = results[i];
		g->item[first + i].failed = err;
	}
	g->ns += clock_monotonic() - before;
	g->commits += !err;
	g->failures += err != 0;
	return err;
}

static bool stopping(struct storer *s)
{
	bool stop;

	pthread_mutex_lock(&s->lock);
	stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	return stop;
}

static bool disk_failed(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EIO || err == -EROFS;
}

// What fails for one batch must not hold up the others: they get a transaction each.
static void put_group(struct storer *s, struct group *g)
{
	int err = put(s, g, 0, g->n);

	if (!err || g->n == 1 || disk_failed(err))
		return;
	for (unsigned i = 0; i < g->n; i++)
		g->item[i].failed = -EINTR; // of those that are not tried any more
	for (unsigned i = 0; i < g->n && !stopping(s); i++)
		put(s, g, i, 1);
}

static void *run(void *context)
{
	struct storer *s = context;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		if (!s->group || s->done) {
			if (s->stop)
				break;
			pthread_cond_wait(&s->given, &s->lock);
			continue;
		}
		pthread_mutex_unlock(&s->lock);
		put_group(s, s->group);
		pthread_mutex_lock(&s->lock);
		s->done = true;
		eventfd_write(s->fd, 1);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

struct storer *storer_new(struct store *store)
{
	struct storer *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->store = store;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->given, NULL);
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->started = s->fd >= 0 && !pthread_create(&s->thread, NULL, run, s);
	if (s->started) {
		pthread_setname_np(s->thread, "blkprof-store");
		return s;
	}
	storer_free(s);
	return NULL;
}

void storer_stop(struct storer *s)
{
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->given);
	pthread_mutex_unlock(&s->lock);
}

void storer_free(struct storer *s)
{
	if (!s)
		return;
	storer_stop(s);
	if (s->started)
		pthread_join(s->thread, NULL);
	if (s->fd >= 0)
		close(s->fd);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->given);
	free(s);
}

int storer_fd(const struct storer *s)
{
	return s->fd;
}

bool storer_busy(const struct storer *s)
{
	return s->busy;
}

void storer_give(struct storer *s, struct group *g)
{
	g->ns = 0;
	g->commits = g->failures = 0;
	pthread_mutex_lock(&s->lock);
	s->group = g;
	s->done = false;
	s->busy = true;
	pthread_cond_signal(&s->given);
	pthread_mutex_unlock(&s->lock);
}

struct group *storer_done(struct storer *s)
{
	struct group *g = NULL;
	eventfd_t unused;

	pthread_mutex_lock(&s->lock);
	if (s->done) {
		eventfd_read(s->fd, &unused);
		g = s->group;
		s->group = NULL;
		s->done = s->busy = false;
	}
	pthread_mutex_unlock(&s->lock);
	return g;
}
