// SPDX-License-Identifier: Apache-2.0
#include "collector/store_maintenance.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"

// Not durable before the next batch is: after a crash it is done again.
static int lightly(struct store *s, const char *mode, struct error *e)
{
	return db_exec(s->db, mode, "write to", e);
}

// One that fails does not keep the others from running: where there is no room for roll-ups, retention makes some.
static int steps(struct store *s, uint64_t now, struct error *e)
{
	static int (*const all[])(struct store *s, uint64_t now, struct error *e) = { rollup_step, retention_step, collect_step,
										      vacuum_step };
	int more = 0, err = 0;
	struct error other;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		int r = all[i](s, now, err ? &other : e);

		if (r > 0)
			more = 1;
		else if (!err)
			err = r;
	}
	return err ? err : more;
}

int store_maintain(struct store *s, uint64_t now, struct error *e)
{
	int r, err;

	if (!s->maintenance)
		return 0;
	pthread_mutex_lock(&s->lock);
	r = lightly(s, "PRAGMA synchronous = NORMAL", e);
	if (!r) {
		r = steps(s, now, e);
		err = lightly(s, "PRAGMA synchronous = FULL", e);
		r = err ? err : r;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

static void rest(struct maintenance *m, struct store *s, long ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	pthread_mutex_lock(&s->lock);
	if (!m->stop)
		pthread_cond_clockwait(&m->wake, &s->lock, CLOCK_MONOTONIC, &t);
	pthread_mutex_unlock(&s->lock);
}

static void set_trouble(struct store *s, int err, const struct error *e)
{
	pthread_mutex_lock(&s->trouble_lock);
	s->trouble = err;
	if (err)
		s->trouble_text = *e;
	pthread_mutex_unlock(&s->trouble_lock);
}

static void *run(void *store)
{
	struct store *s = store;
	struct maintenance *m = s->maintenance;
	struct error e;
	bool stop = false;

	while (!stop) {
		int r = store_maintain(s, clock_realtime(), &e);

		pthread_mutex_lock(&s->lock);
		stop = m->stop;
		pthread_mutex_unlock(&s->lock);
		set_trouble(s, r < 0 ? r : 0, &e);
		// Between steps there is room for ingestion, and for a disk that is full to be emptied.
		if (!stop)
			rest(m, s, r > 0 ? 5 : r < 0 ? 10000 : 1000);
	}
	return NULL;
}

int store_trouble(struct store *s, struct error *e)
{
	int err;

	pthread_mutex_lock(&s->trouble_lock);
	err = s->trouble;
	if (err && e)
		*e = s->trouble_text;
	pthread_mutex_unlock(&s->trouble_lock);
	return err;
}

int maintenance_new(struct store *s, struct error *e)
{
	struct maintenance *m = s->maintenance = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return error_set(e, -ENOMEM, "out of memory");
	pthread_cond_init(&m->wake, NULL);
	err = rollup_new(s, &m->rollup, e);
	if (!err)
		err = retention_new(s, &m->retention, e);
	if (err || s->options.no_background)
		return err;
	err = pthread_create(&m->thread, NULL, run, s);
	m->running = !err;
	return err ? error_set(e, -err, "cannot start a thread") : 0;
}

void maintenance_free(struct store *s)
{
	struct maintenance *m = s->maintenance;

	if (!m)
		return;
	if (m->running) {
		pthread_mutex_lock(&s->lock);
		m->stop = true;
		pthread_cond_signal(&m->wake);
		pthread_mutex_unlock(&s->lock);
		pthread_join(m->thread, NULL);
	}
	rollup_free(m->rollup);
	retention_free(m->retention);
	pthread_cond_destroy(&m->wake);
	free(m);
	s->maintenance = NULL;
}
