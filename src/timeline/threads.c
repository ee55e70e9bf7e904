// SPDX-License-Identifier: Apache-2.0
#include "timeline/threads.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes(key, len, 0))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

// Of the kernel's task states, the same from 5.10 to 7.2.
#define TASK_UNINTERRUPTIBLE 2
#define TASK_STOPPED 4
#define TASK_TRACED 8
#define TASK_DEAD (0x10 | 0x20 | 0x80)
#define TASK_PARKED 0x40
#define TASK_NOLOAD 0x400 // with uninterruptible: an idle kernel thread
#define TASK_RTLOCK_WAIT 0x1000
#define TASK_FROZEN 0x8000

struct entry {
	struct thread thread;
	uint32_t key;
	UT_hash_handle hh;
};

struct thread_table {
	struct entry *by_tid;
	struct entry **all;
	size_t n, cap, max;
	uint64_t refused;
};

struct thread_table *thread_table_new(size_t max)
{
	struct thread_table *ts = calloc(1, sizeof(*ts));

	if (ts)
		ts->max = max;
	return ts;
}

void thread_table_free(struct thread_table *ts)
{
	if (!ts)
		return;
	HASH_CLEAR(hh, ts->by_tid);
	for (size_t i = 0; i < ts->n; i++)
		free(ts->all[i]);
	free(ts->all);
	free(ts);
}

static struct entry *find(struct thread_table *ts, uint32_t tid)
{
	struct entry *e;

	HASH_FIND(hh, ts->by_tid, &tid, sizeof(tid), e);
	return e;
}

struct thread *thread_table_find(struct thread_table *ts, uint32_t tid)
{
	struct entry *e = find(ts, tid);

	return e ? &e->thread : NULL;
}

static bool has_room(struct thread_table *ts)
{
	size_t cap = ts->cap ? 2 * ts->cap : 64;
	struct entry **all;

	if (ts->n == ts->max)
		return false;
	if (ts->n < ts->cap)
		return true;
	all = realloc(ts->all, cap * sizeof(*all));
	if (!all)
		return false;
	ts->all = all;
	ts->cap = cap;
	return true;
}

static bool insert(struct thread_table *ts, struct entry *e, uint32_t tid)
{
	struct entry *old = find(ts, tid);

	if (old)
		HASH_DEL(ts->by_tid, old);
	e->key = tid;
	HASH_ADD(hh, ts->by_tid, key, sizeof(e->key), e);
	return e->hh.tbl;
}

struct thread *thread_table_add(struct thread_table *ts, uint32_t tid, uint32_t tgid, const char *comm, uint64_t time)
{
	struct entry *e = has_room(ts) ? calloc(1, sizeof(*e)) : NULL;

	if (!e || !insert(ts, e, tid)) {
		free(e);
		ts->refused++;
		return NULL;
	}
	ts->all[ts->n++] = e;
	e->thread.tid = tid;
	e->thread.tgid = tgid;
	memcpy(e->thread.comm, comm, EVENT_COMM);
	e->thread.comm[EVENT_COMM - 1] = 0;
	e->thread.since = e->thread.first = e->thread.last = time;
	return &e->thread;
}

void thread_table_rekey(struct thread_table *ts, struct thread *t, uint32_t tid)
{
	struct entry *e = find(ts, t->tid);

	if (e && &e->thread == t)
		HASH_DEL(ts->by_tid, e);
	else
		return;
	t->tid = tid;
	insert(ts, e, tid);
}

uint64_t thread_table_refused(const struct thread_table *ts)
{
	return ts->refused;
}

size_t thread_table_count(const struct thread_table *ts)
{
	return ts->n;
}

struct thread *thread_table_get(struct thread_table *ts, size_t i)
{
	return &ts->all[i]->thread;
}

void thread_enter(struct thread *t, enum thread_state state, uint64_t time)
{
	if (time < t->since)
		time = t->since;
	t->time[t->state] += time - t->since;
	t->state = state;
	t->since = t->last = time;
	t->displaced = false;
}

bool thread_sleeps(const struct thread *t)
{
	return t->state >= THREAD_SLEEPING && t->state <= THREAD_STOPPED;
}

enum thread_state thread_state_of(uint32_t flags, uint32_t kernel_state)
{
	if (flags & EVENT_PREEMPTED)
		return THREAD_PREEMPTED;
	if (kernel_state & TASK_DEAD)
		return THREAD_DEAD;
	if (kernel_state & (TASK_STOPPED | TASK_TRACED | TASK_PARKED))
		return THREAD_STOPPED;
	if (flags & EVENT_IO_WAIT)
		return THREAD_DISK;
	if ((kernel_state & (TASK_UNINTERRUPTIBLE | TASK_RTLOCK_WAIT | TASK_FROZEN)) && !(kernel_state & TASK_NOLOAD))
		return THREAD_BLOCKED;
	return kernel_state ? THREAD_SLEEPING : THREAD_PREEMPTED;
}

void thread_arrives(struct thread *t, uint64_t time, uint32_t cpu)
{
	if (t->guessed) {
		t->state = t->state == THREAD_RUNNING || thread_sleeps(t) ? THREAD_RUNNABLE : t->state;
	} else if (t->state == THREAD_RUNNING || t->state == THREAD_DEAD) {
		t->surprises++;
		t->state = THREAD_UNKNOWN;
	} else if (thread_sleeps(t) && t->early == MAYBE_WAKING) {
		// Its waking came before its switch, by a hair: it waited for a CPU ever since.
		t->state = THREAD_RUNNABLE;
		t->woken++;
	} else if (thread_sleeps(t)) {
		t->surprises++;
	}
	t->early = NO_WAKING;
	t->guessed = false;
	thread_enter(t, THREAD_RUNNING, time);
	t->cpu = cpu;
}

bool thread_leaves(struct thread *t, enum thread_state state, uint64_t time)
{
	bool woken;

	if (t->guessed) {
		t->state = THREAD_RUNNING;
		t->guessed = false;
	}
	if (t->state != THREAD_RUNNING && t->state != THREAD_UNKNOWN) {
		t->surprises++;
		t->state = THREAD_UNKNOWN;
	}
	// As the kernel counts them. It says of itself that it preempts only when it does so in the kernel.
	if (state == THREAD_PREEMPTED)
		t->involuntary++;
	else
		t->voluntary++;
	thread_enter(t, state, time);
	woken = thread_sleeps(t) && t->early == SURE_WAKING;
	if (woken) {
		t->woken++;
		thread_enter(t, THREAD_RUNNABLE, time);
	}
	if (woken || !thread_sleeps(t))
		t->early = NO_WAKING;
	return woken;
}

void thread_displaced(struct thread *t, uint64_t time)
{
	t->surprises++;
	t->state = THREAD_UNKNOWN;
	thread_enter(t, THREAD_UNKNOWN, time);
	t->displaced = true;
}

// The most frequent, about: a newcomer takes the place of the rarest and its count.
static void count_waker(struct thread *t, const struct event *e)
{
	struct waker *least = &t->wakers[0];

	for (unsigned i = 0; i < THREAD_WAKERS; i++) {
		struct waker *w = &t->wakers[i];

		if (w->count && w->tid == e->other_tid) {
			w->count++;
			memcpy(w->comm, e->comm, sizeof(w->comm));
			return;
		}
		if (w->count < least->count)
			least = w;
	}
	least->tid = e->other_tid;
	memcpy(least->comm, e->comm, sizeof(least->comm));
	least->count++;
}

bool thread_wakes(struct thread *t, const struct event *e)
{
	if (t->state == THREAD_UNKNOWN) {
		thread_enter(t, THREAD_SLEEPING, e->time); // how is not known
		t->surprises++;
	}
	if (thread_sleeps(t)) {
		t->guessed = false;
		count_waker(t, e);
		t->woken++;
		t->early = NO_WAKING;
		thread_enter(t, THREAD_RUNNABLE, e->time);
		return true;
	}
	if (t->state == THREAD_RUNNING) {
		t->early = e->flags & EVENT_OFF_QUEUE ? SURE_WAKING : MAYBE_WAKING;
		if (t->early == SURE_WAKING)
			count_waker(t, e);
	}
	return false;
}

const char *thread_state_name(enum thread_state state)
{
	static const char *const names[THREAD_STATES] = { "unknown", "on CPU", "runnable", "preempted", "sleeping", "disk",
							  "blocked", "stopped", "ended" };

	return state < THREAD_STATES ? names[state] : "?";
}
