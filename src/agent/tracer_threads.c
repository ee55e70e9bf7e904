// SPDX-License-Identifier: Apache-2.0
// The threads that are there when a recording begins: what each of them does, as /proc says it, unless an event that came
// meanwhile tells better what it did at the start.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/procstat.h"
#include "agent/tracer_internal.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/text.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes(key, len, 0))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define THREADS_MAX 100000
// So long the first events of threads that could run are waited for: one that has none has a CPU to itself.
#define UNCLEAR_POLLS 10
#define UNCLEAR_MS 10

// What the first event of a thread says of the time before.
struct first {
	uint32_t tid;
	bool running, runnable, sleeping, absent;
	uint32_t cpu;
	UT_hash_handle hh;
};

struct scan {
	struct tracer *tracer;
	struct first *firsts;
	struct event *found;
	size_t n, cap;
	bool taken[EVENT_CPUS]; // by a thread that ran at the start
};

static void first_of(struct scan *s, uint32_t tid, struct first what)
{
	struct first *f;

	HASH_FIND(hh, s->firsts, &tid, sizeof(tid), f);
	if (f || !tid)
		return;
	f = malloc(sizeof(*f));
	if (!f)
		return;
	*f = what;
	f->tid = tid;
	HASH_ADD(hh, s->firsts, tid, sizeof(f->tid), f);
	if (!f->hh.tbl)
		free(f);
}

// Whether one that could run has not been seen yet to leave its CPU or to come to one.
static bool is_unclear(struct scan *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct first *f;

		HASH_FIND(hh, s->firsts, &s->found[i].tid, sizeof(s->found[i].tid), f);
		if (!f && (s->found[i].flags & EVENT_PREEMPTED))
			return true;
	}
	return false;
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

static void look_at_early(struct scan *s, size_t from)
{
	struct tracer *t = s->tracer;

	if (t->n_early > from)
		qsort(t->early + from, t->n_early - from, sizeof(*t->early), by_time);
	for (size_t i = from; i < t->n_early; i++) {
		const struct event *e = &t->early[i];

		if (e->type == EVENT_SWITCH) {
			first_of(s, e->tid, (struct first){ .running = true, .cpu = e->cpu });
			first_of(s, e->other_tid, (struct first){ .runnable = true, .cpu = e->cpu });
		} else if (e->type == EVENT_WAKING) {
			// Of a running thread it says nothing, but then its leaving follows soon.
			first_of(s, e->tid, (struct first){ .sleeping = true, .cpu = e->cpu });
		} else if (e->type == EVENT_NEW) {
			first_of(s, e->tid, (struct first){ .absent = true });
		} else if (e->type == EVENT_EXEC) {
			first_of(s, e->other_tid, (struct first){ .running = true, .cpu = e->cpu });
		}
	}
}

static void set_state(struct event *e, char state)
{
	switch (state) {
	case 'R':
		e->flags |= EVENT_PREEMPTED; // on a CPU only when an event says so
		break;
	case 'D':
		e->state = 2;
		break;
	case 'T':
	case 't':
		e->state = 4;
		break;
	case 'Z':
	case 'X':
		e->state = 0x20;
		break;
	default:
		e->state = 1;
	}
}

static void correct(struct scan *s, struct event *e)
{
	struct first *f;

	HASH_FIND(hh, s->firsts, &e->tid, sizeof(e->tid), f);
	if (!f)
		return;
	if (f->running) {
		e->flags = EVENT_RUNNING;
		e->cpu = f->cpu;
		s->taken[e->cpu % EVENT_CPUS] = true;
	} else if (f->runnable) {
		e->flags = EVENT_PREEMPTED;
	} else if (f->sleeping && (e->flags & EVENT_PREEMPTED)) {
		e->flags &= ~(uint32_t)EVENT_PREEMPTED;
		e->state = 1;
	}
	if (f->absent)
		e->type = 0;
}

// One that could run and was not seen to leave or to come has its CPU to itself, as far as its CPU has room for it.
static void guess(struct scan *s, struct event *e)
{
	struct first *f;

	HASH_FIND(hh, s->firsts, &e->tid, sizeof(e->tid), f);
	if (f || !(e->flags & EVENT_PREEMPTED) || s->taken[e->cpu])
		return;
	e->flags = EVENT_RUNNING;
	s->taken[e->cpu] = true;
}

// "202 0x7f… …": the number of the system call that it sleeps in; "running", or "-1 …" outside of one.
static void read_syscall(const char *folder, struct event *e)
{
	char path[96], line[64], *space;
	uint64_t nr;

	snprintf(path, sizeof(path), "%s/syscall", folder);
	if (file_read_line(path, line, sizeof(line)))
		return;
	space = strchr(line, ' ');
	if (!space)
		return;
	*space = 0;
	if (text_number(line, 0, UINT32_MAX, "system call", &nr, NULL))
		return;
	e->syscall = (uint32_t)nr;
	e->flags |= EVENT_SYSCALL;
}

static void keep(struct scan *s, const struct event *e)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 64;
		struct event *found = cap <= 2 * THREADS_MAX ? realloc(s->found, cap * sizeof(*found)) : NULL;

		if (!found)
			return;
		s->found = found;
		s->cap = cap;
	}
	s->found[s->n++] = *e;
}

static void look_at_thread(struct scan *s, uint32_t tgid, uint32_t tid)
{
	struct event e = { .type = EVENT_THREAD, .time = s->tracer->start, .tid = tid, .tgid = tgid };
	struct procstat stat;
	char folder[64];

	snprintf(folder, sizeof(folder), "/proc/%u/task/%u", tgid, tid);
	if (procstat_read(folder, &stat))
		return;
	e.cpu = stat.cpu < EVENT_CPUS ? stat.cpu : 0;
	text_sanitize(e.comm, sizeof(e.comm), stat.comm, strlen(stat.comm));
	set_state(&e, stat.state);
	e.flags |= stat.kernel ? EVENT_KERNEL : 0;
	if (!(e.flags & EVENT_PREEMPTED) && !stat.kernel)
		read_syscall(folder, &e);
	keep(s, &e);
}

static void look_at_process(struct scan *s, uint32_t tgid)
{
	char path[64];
	DIR *folder;
	struct dirent *d;
	uint64_t tid;

	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	folder = opendir(path);
	if (!folder)
		return;
	tracer_say_process(s->tracer, tgid);
	while ((d = readdir(folder)) && s->n < THREADS_MAX)
		if (!text_number(d->d_name, 1, EVENT_TID_MAX, "thread", &tid, NULL))
			look_at_thread(s, tgid, (uint32_t)tid);
	closedir(folder);
}

static void look_at_all(struct scan *s)
{
	DIR *folder = opendir("/proc");
	struct dirent *d;
	uint64_t pid;

	while (folder && (d = readdir(folder)) && s->n < THREADS_MAX)
		if (!text_number(d->d_name, 1, EVENT_TID_MAX, "process", &pid, NULL))
			look_at_process(s, (uint32_t)pid);
	if (folder)
		closedir(folder);
}

// Those that run last: the others are shown to leave their CPU before.
static void say(struct scan *s, bool running)
{
	struct tracer *t = s->tracer;

	for (size_t i = 0; i < s->n && !t->error; i++) {
		struct event *e = &s->found[i];

		if (e->type && !(e->flags & EVENT_RUNNING) == !running)
			t->error = t->options.event(t->options.context, e);
	}
}

int tracer_threads(struct tracer *t)
{
	const struct filter *f = &t->options.filter;
	struct scan s = { .tracer = t };
	struct first *first, *next;
	int err;

	for (unsigned i = 0; i < f->n_pid; i++)
		look_at_process(&s, (uint32_t)f->pid[i]);
	// Which threads are in a cgroup their events will tell.
	if (!f->n_pid && !f->n_cgroup)
		look_at_all(&s);
	err = recorder_poll(t->recorder, 0);
	look_at_early(&s, 0);
	for (unsigned i = 0; i < UNCLEAR_POLLS && (err >= 0 || err == -EINTR) && is_unclear(&s); i++) {
		size_t had = t->n_early;

		err = recorder_poll(t->recorder, UNCLEAR_MS);
		look_at_early(&s, had);
	}
	for (size_t i = 0; i < s.n; i++)
		correct(&s, &s.found[i]);
	for (size_t i = 0; i < s.n; i++)
		guess(&s, &s.found[i]);
	say(&s, false);
	say(&s, true);
	HASH_ITER(hh, s.firsts, first, next) {
		HASH_DEL(s.firsts, first);
		free(first);
	}
	free(s.found);
	return err < 0 && err != -EINTR ? err : 0;
}
