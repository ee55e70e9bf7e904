// SPDX-License-Identifier: Apache-2.0
#include "agent/jvm_quality.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "common/thread.h"

#define PIDS 256
#define SECOND 1000000000ull
#define AGAIN_NS (1 * SECOND)
#define GONE_NS (60 * SECOND)
#define AGAIN_MOST_NS (60 * SECOND)
#define END_MS 4000 // it may wait for ever for memory of a process that a hostile server has to give

struct process {
	pid_t pid;
	enum jvm_stacks stacks;
	uint64_t due, wait;
	bool gone; // dropped when due: what it did is told of for a while
};

struct jvm_quality {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	struct process processes[PIDS];
	unsigned n;
	uint64_t left_out;
};

enum jvm_stacks jvm_stacks_of(const struct jvm *jvm)
{
	if (jvm->options.frame_pointers == JVM_ON)
		return JVM_STACKS_WHOLE;
	return jvm->options.frame_pointers == JVM_UNSAID && jvm->options.unread ? JVM_STACKS_UNKNOWN : JVM_STACKS_CUT;
}

const char *jvm_stacks_name(enum jvm_stacks stacks)
{
	static const char *const names[] = {
		[JVM_STACKS_NONE] = "",
		[JVM_STACKS_UNKNOWN] = "unknown",
		[JVM_STACKS_CUT] = "no_frame_pointers",
		[JVM_STACKS_WHOLE] = "frame_pointers",
	};

	return stacks <= JVM_STACKS_WHOLE ? names[stacks] : "";
}

// Under the lock, as is what follows.
static struct process *find(struct jvm_quality *q, pid_t pid)
{
	for (unsigned i = 0; i < q->n; i++)
		if (q->processes[i].pid == pid)
			return &q->processes[i];
	return NULL;
}

// NULL when all places are of processes that are there.
static struct process *place_for_another(struct jvm_quality *q)
{
	if (q->n < PIDS)
		return &q->processes[q->n++];
	for (unsigned i = 0; i < q->n; i++)
		if (q->processes[i].gone)
			return &q->processes[i];
	return NULL;
}

static struct process *next_due(struct jvm_quality *q, uint64_t now)
{
	for (unsigned i = 0; i < q->n; i++)
		if (q->processes[i].due <= now)
			return &q->processes[i];
	return NULL;
}

static enum jvm_stacks look(pid_t pid)
{
	struct jvm jvm;

	return jvm_find(pid, &jvm) ? JVM_STACKS_NONE : jvm_stacks_of(&jvm);
}

static void look_at(struct jvm_quality *q, struct process *p, uint64_t now)
{
	enum jvm_stacks stacks;
	pid_t pid = p->pid;

	p->due = now + p->wait;
	p->wait = 2 * p->wait < AGAIN_MOST_NS ? 2 * p->wait : AGAIN_MOST_NS;
	pthread_mutex_unlock(&q->lock);
	stacks = look(pid);
	pthread_mutex_lock(&q->lock);
	p = find(q, pid);
	if (p && !p->gone)
		p->stacks = stacks;
}

static void *run(void *context)
{
	struct jvm_quality *q = context;
	struct timespec until;
	struct process *p;
	uint64_t now;

	pthread_mutex_lock(&q->lock);
	while (!q->stop) {
		now = clock_monotonic();
		p = next_due(q, now);
		if (p && p->gone)
			*p = q->processes[--q->n];
		else if (p)
			look_at(q, p, now);
		if (p)
			continue;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec++;
		if (q->n)
			pthread_cond_clockwait(&q->wake, &q->lock, CLOCK_MONOTONIC, &until);
		else
			pthread_cond_wait(&q->wake, &q->lock);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

struct jvm_quality *jvm_quality_new(void)
{
	struct jvm_quality *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->wake, NULL);
	if (!thread_start(&q->thread, run, q))
		return q;
	pthread_cond_destroy(&q->wake);
	pthread_mutex_destroy(&q->lock);
	free(q);
	return NULL;
}

void jvm_quality_free(struct jvm_quality *q)
{
	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	q->stop = true;
	pthread_cond_signal(&q->wake);
	pthread_mutex_unlock(&q->lock);
	if (!thread_end(q->thread, END_MS))
		return;
	pthread_cond_destroy(&q->wake);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

void jvm_quality_ask(struct jvm_quality *q, pid_t pid)
{
	struct process *p;
	bool known;

	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	p = find(q, pid);
	known = p && !p->gone;
	if (!p)
		p = place_for_another(q);
	q->left_out += !p;
	if (p && !known) {
		*p = (struct process){ .pid = pid, .wait = AGAIN_NS };
		pthread_cond_signal(&q->wake);
	}
	pthread_mutex_unlock(&q->lock);
}

void jvm_quality_forget(struct jvm_quality *q, pid_t pid)
{
	struct process *p;

	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	p = find(q, pid);
	if (p) {
		p->gone = true;
		p->due = clock_monotonic() + GONE_NS;
	}
	pthread_mutex_unlock(&q->lock);
}

uint64_t jvm_quality_left_out(struct jvm_quality *q)
{
	uint64_t n;

	if (!q)
		return 0;
	pthread_mutex_lock(&q->lock);
	n = q->left_out;
	pthread_mutex_unlock(&q->lock);
	return n;
}

enum jvm_stacks jvm_quality_of(struct jvm_quality *q, pid_t pid)
{
	enum jvm_stacks stacks = JVM_STACKS_NONE;
	const struct process *p;

	if (!q)
		return stacks;
	pthread_mutex_lock(&q->lock);
	p = find(q, pid);
	if (p)
		stacks = p->stacks;
	pthread_mutex_unlock(&q->lock);
	return stacks;
}
