// SPDX-License-Identifier: Apache-2.0
#include "agent/live.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "agent/slices.h"
#include "common/clock.h"

#define SECOND_NS 1000000000ull
#define APART_NS 200000000ull // between two cuts for pulls: a flood of them must not cost more than five a second
#define LOOK_NS 250000000ull  // how often a pull looks whether somebody waits for it
#define LATE_NS (30 * SECOND_NS)

enum pull_state {
	PULL_NEW,     // begins with the next cut
	PULL_RUNNING, // until `due`
	PULL_ENDED,   // its window is complete
	PULL_DONE,    // gz or err
};

// Of the list's lock, but for the window, which is the loop's: who gives up when there is one leaves the pull to the loop.
struct pull {
	const struct live_pull *q; // NULL = given up
	enum pull_state state;
	bool busy; // the loop is making its profile, and uses q
	uint64_t start, due;
	struct window *window;
	struct buf gz;
	struct window_info info;
	int err;
	struct error error;
	struct pull *prev, *next;
};

struct live {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct pull *pulls;
	unsigned n;
	bool stopping;
	enum label_set labels;
	struct live_counters counters;
	size_t rows;
	// The loop's.
	struct slices *slices;
	uint64_t ship_from, last_cut;
};

static int init_sync(struct live *l)
{
	pthread_condattr_t attr;
	int err = pthread_condattr_init(&attr);

	if (err)
		return err;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	err = pthread_cond_init(&l->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (!err)
		pthread_mutex_init(&l->lock, NULL);
	return err;
}

struct live *live_new(size_t rows)
{
	struct live *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->rows = rows;
	l->slices = slices_new();
	if (l->slices && !init_sync(l))
		return l;
	slices_free(l->slices);
	free(l);
	return NULL;
}

static void remove_pull(struct live *l, struct pull *p)
{
	DL_DELETE(l->pulls, p);
	l->n--;
	window_free(p->window);
	buf_free(&p->gz);
	free(p);
}

void live_free(struct live *l)
{
	if (!l)
		return;
	while (l->pulls)
		remove_pull(l, l->pulls);
	slices_free(l->slices);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

// ---- threads that pull

static int enter(struct live *l, const struct live_pull *q, struct pull **ret, struct error *e)
{
	struct pull *p;
	int err;

	if (l->stopping)
		return error_set(e, -ECANCELED, "the agent is stopping");
	err = view_check(&q->view, l->labels, e);
	if (err)
		return err;
	if (l->n == LIVE_PULLS)
		return error_set(e, -EBUSY, "%d profiles are being pulled already; try again when one of them has ended", LIVE_PULLS);
	p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(e, -ENOMEM, "no memory for a profile; try again");
	p->q = q;
	DL_APPEND(l->pulls, p);
	l->n++;
	*ret = p;
	return 0;
}

// Why a pull need not be waited for any more; 0 = it must.
static int given_up(const struct live *l, const struct pull *p, uint64_t until, struct error *e)
{
	const char *why;

	if (l->stopping)
		return error_set(e, -ECANCELED, "the agent is stopping");
	why = p->q->why_end ? p->q->why_end(p->q->context) : NULL;
	if (why)
		return error_set(e, -ECANCELED, "%s", why);
	if (clock_monotonic() > until)
		return error_set(e, -ETIMEDOUT, "the agent is too busy to end the recording in time; try again");
	return 0;
}

static void wait_a_while(struct live *l)
{
	uint64_t at = clock_monotonic() + LOOK_NS;
	struct timespec t = { .tv_sec = (time_t)(at / SECOND_NS), .tv_nsec = (long)(at % SECOND_NS) };

	pthread_cond_timedwait(&l->changed, &l->lock, &t);
}

// Ends the pull for its thread.
static int leave(struct live *l, struct pull *p, struct buf *ret_gz, struct window_info *ret_info, struct error *e)
{
	int err = p->err;

	if (err) {
		error_set(e, err, "%s", p->error.text);
	} else {
		*ret_gz = p->gz;
		*ret_info = p->info;
		p->gz = (struct buf){ 0 };
	}
	remove_pull(l, p);
	return err;
}

static int wait_for(struct live *l, struct pull *p, uint64_t until, struct buf *ret_gz, struct window_info *ret_info,
		    struct error *e)
{
	while (p->state != PULL_DONE) {
		int err = p->busy ? 0 : given_up(l, p, until, e);

		if (!err) {
			wait_a_while(l);
			continue;
		}
		if (p->state == PULL_ENDED)
			p->q = NULL;
		else
			remove_pull(l, p);
		return err;
	}
	return leave(l, p, ret_gz, ret_info, e);
}

int live_pull(struct live *l, const struct live_pull *q, struct buf *ret_gz, struct window_info *ret_info, struct error *e)
{
	uint64_t until = clock_monotonic() + q->seconds * SECOND_NS + LATE_NS;
	struct pull *p = NULL;
	int err;

	pthread_mutex_lock(&l->lock);
	err = enter(l, q, &p, e);
	if (err) {
		l->counters.refused++;
	} else {
		err = wait_for(l, p, until, ret_gz, ret_info, e);
		l->counters.pulls += !err;
		l->counters.failed += err != 0;
	}
	pthread_mutex_unlock(&l->lock);
	return err;
}

void live_stop(struct live *l)
{
	pthread_mutex_lock(&l->lock);
	l->stopping = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

enum label_set live_labels(struct live *l)
{
	enum label_set labels;

	pthread_mutex_lock(&l->lock);
	labels = l->labels;
	pthread_mutex_unlock(&l->lock);
	return labels;
}

void live_get_counters(struct live *l, struct live_counters *ret)
{
	pthread_mutex_lock(&l->lock);
	*ret = l->counters;
	for (const struct pull *p = l->pulls; p; p = p->next)
		ret->running += p->state == PULL_RUNNING;
	pthread_mutex_unlock(&l->lock);
}

// ---- the loop

void live_recorded(struct live *l, enum label_set labels)
{
	pthread_mutex_lock(&l->lock);
	l->labels = labels;
	pthread_mutex_unlock(&l->lock);
}

uint64_t live_due(struct live *l)
{
	uint64_t due = 0, soonest = l->last_cut + APART_NS;

	pthread_mutex_lock(&l->lock);
	for (struct pull *p = l->pulls; p; p = p->next) {
		uint64_t wanted = p->state == PULL_NEW ? soonest : p->due > soonest ? p->due : soonest;

		if (p->state <= PULL_RUNNING && (!due || wanted < due))
			due = wanted;
	}
	pthread_mutex_unlock(&l->lock);
	return due;
}

// Of the pulls that go on, and of what is shipped.
static unsigned starts_of(const struct live *l, uint64_t starts[LIVE_PULLS + 1], bool ship)
{
	unsigned n = 0;

	for (const struct pull *p = l->pulls; p; p = p->next)
		if (p->state == PULL_RUNNING)
			starts[n++] = p->start;
	if (ship)
		starts[n++] = l->ship_from;
	return n;
}

static void fail(struct pull *p, int err, const char *text)
{
	p->state = PULL_DONE;
	p->err = error_set(&p->error, err, "%s", text);
}

static void fail_running(struct live *l, int err, const char *text)
{
	for (struct pull *p = l->pulls; p; p = p->next)
		if (p->state == PULL_RUNNING)
			fail(p, err, text);
	pthread_cond_broadcast(&l->changed);
}

static void begin_pulls(struct live *l)
{
	for (struct pull *p = l->pulls; p; p = p->next) {
		if (p->state != PULL_NEW)
			continue;
		p->state = PULL_RUNNING;
		p->start = slices_next(l->slices);
		p->due = l->last_cut + p->q->seconds * SECOND_NS;
	}
}

static void end_pull(struct live *l, struct pull *p)
{
	uint64_t starts[LIVE_PULLS + 1];
	int err;

	p->state = PULL_ENDED;
	err = slices_take(l->slices, p->start, starts, starts_of(l, starts, true), &p->window);
	if (!err)
		return;
	fail(p, err, "no memory for the profile; try again, or ask for fewer seconds");
	pthread_cond_broadcast(&l->changed);
}

static void end_pulls(struct live *l)
{
	for (struct pull *p = l->pulls; p; p = p->next)
		if (p->state == PULL_RUNNING && p->due <= l->last_cut)
			end_pull(l, p);
}

// What only pulls hold is bounded.
static int check_rows(struct live *l)
{
	uint64_t ship = l->ship_from;

	if (slices_rows(l->slices) <= l->rows)
		return 0;
	fail_running(l, -E2BIG, "there were too many different stacks for a live profile; ask for fewer seconds");
	return slices_trim(l->slices, &ship, 1);
}

static void lost(struct live *l)
{
	fail_running(l, -ENOMEM, "no memory for the profile; try again, or ask for fewer seconds");
	slices_clear(l->slices);
	l->ship_from = slices_next(l->slices);
}

int live_add(struct live *l, struct window *w)
{
	uint64_t starts[LIVE_PULLS + 1];
	int err;

	pthread_mutex_lock(&l->lock);
	l->last_cut = window_get_info(w)->end_mono;
	err = slices_add(l->slices, w, starts, starts_of(l, starts, true));
	if (!err)
		end_pulls(l);
	if (!err)
		err = check_rows(l);
	if (err)
		lost(l);
	begin_pulls(l);
	pthread_mutex_unlock(&l->lock);
	return err;
}

int live_ship(struct live *l, struct window **ret)
{
	uint64_t starts[LIVE_PULLS + 1], from = l->ship_from;
	int err;

	pthread_mutex_lock(&l->lock);
	l->ship_from = slices_next(l->slices);
	err = slices_take(l->slices, from, starts, starts_of(l, starts, false), ret);
	if (err == -ENOMEM)
		lost(l);
	pthread_mutex_unlock(&l->lock);
	return err;
}

static struct pull *next_ended(struct live *l)
{
	struct pull *p, *next;

	DL_FOREACH_SAFE(l->pulls, p, next) {
		if (p->state != PULL_ENDED)
			continue;
		if (p->q)
			return p;
		remove_pull(l, p);
	}
	return NULL;
}

bool live_work(struct live *l)
{
	struct pull *p;

	pthread_mutex_lock(&l->lock);
	p = next_ended(l);
	if (p)
		p->busy = true;
	pthread_mutex_unlock(&l->lock);
	if (!p)
		return false;
	p->info = *window_get_info(p->window);
	p->err = window_profile_view(p->window, &p->q->view, &p->gz, &p->error);
	window_free(p->window);
	pthread_mutex_lock(&l->lock);
	p->window = NULL;
	p->busy = false;
	p->state = PULL_DONE;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	return true;
}

void live_end(struct live *l, int err, const char *text)
{
	while (live_work(l))
		;
	pthread_mutex_lock(&l->lock);
	fail_running(l, err, text);
	slices_clear(l->slices);
	l->ship_from = slices_next(l->slices);
	pthread_mutex_unlock(&l->lock);
}
