// SPDX-License-Identifier: Apache-2.0
#include "timeline/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/text.h"
#include "timeline/timeline_internal.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes(key, len, 0))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define WINDOW_NS 200000000u
#define HELD_MAX 200000	   // events that wait for earlier ones
#define THREADS_MAX 200000 // also ended ones
#define FLIGHT_MAX 200000
#define STACK_BYTES_MAX (64u << 20)
#define PROCESSES_MAX 100000
// Of max_size, kept for ending what is open and for saying what was left out.
#define RESERVE_SHARE 16
#define RESERVE_MIN (256u << 10) // more than the longest stack takes
#define RESERVE_OPEN 160 // bytes for the end of each that is open

struct process {
	uint32_t tgid;
	bool shown;
	UT_hash_handle hh;
	char name[64];
};

struct stack_text {
	uint64_t number;
	UT_hash_handle hh;
	char text[];
};

struct timeline *timeline_new(const struct timeline_options *options)
{
	struct timeline *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->options = *options;
	t->order = order_new(options->window_ns ? options->window_ns : WINDOW_NS, HELD_MAX);
	t->threads = thread_table_new(THREADS_MAX);
	t->disks = disks_new(FLIGHT_MAX);
	t->on_cpu = calloc(EVENT_CPUS, sizeof(*t->on_cpu));
	t->on_cpu_comm = calloc(EVENT_CPUS, sizeof(*t->on_cpu_comm));
	t->running = calloc(EVENT_CPUS, sizeof(*t->running));
	if (options->sink)
		t->trace = trace_new(options->sink, options->context);
	if (t->order && t->threads && t->disks && t->on_cpu && t->on_cpu_comm && t->running && (t->trace || !options->sink))
		return t;
	timeline_free(t);
	return NULL;
}

void timeline_free(struct timeline *t)
{
	struct process *p, *next_p;
	struct stack_text *s, *next_s;

	if (!t)
		return;
	HASH_ITER(hh, t->processes, p, next_p) {
		HASH_DEL(t->processes, p);
		free(p);
	}
	HASH_ITER(hh, t->stacks, s, next_s) {
		HASH_DEL(t->stacks, s);
		free(s);
	}
	requests_forget(t);
	order_free(t->order);
	trace_free(t->trace);
	thread_table_free(t->threads);
	disks_free(t->disks);
	free(t->on_cpu);
	free(t->on_cpu_comm);
	free(t->running);
	free(t);
}

uint64_t timeline_track(struct timeline *t)
{
	return ++t->tracks;
}

// ---- what events name

static struct process *process_of(struct timeline *t, uint32_t tgid)
{
	struct process *p;

	HASH_FIND(hh, t->processes, &tgid, sizeof(tgid), p);
	if (p)
		return p;
	p = HASH_COUNT(t->processes) < PROCESSES_MAX ? calloc(1, sizeof(*p)) : NULL;
	if (!p)
		return NULL;
	p->tgid = tgid;
	HASH_ADD(hh, t->processes, tgid, sizeof(p->tgid), p);
	if (p->hh.tbl)
		return p;
	free(p);
	return NULL;
}

static void show_process(struct timeline *t, struct process *p, uint64_t time)
{
	char name[32];

	snprintf(name, sizeof(name), "%" PRIu32, p->tgid);
	if (t->trace && t->started)
		trace_process(t->trace, time, timeline_track(t), p->tgid, *p->name ? p->name : name);
	p->shown = true;
}

void timeline_process(struct timeline *t, uint32_t tgid, uint64_t time)
{
	struct process *p = process_of(t, tgid);

	if (p && !p->shown)
		show_process(t, p, time);
}

const char *timeline_process_name(const struct timeline *t, uint32_t tgid)
{
	const struct process *p;

	HASH_FIND(hh, t->processes, &tgid, sizeof(tgid), p);
	return p ? p->name : "";
}

static int name_process(struct timeline *t, const struct event *e)
{
	struct process *p = process_of(t, e->tgid);

	if (!p)
		return 0;
	text_sanitize(p->name, sizeof(p->name), e->text, e->text_len);
	return 0;
}

const char *timeline_stack(const struct timeline *t, uint64_t stack)
{
	struct stack_text *s;

	if (!stack)
		return NULL;
	HASH_FIND(hh, t->stacks, &stack, sizeof(stack), s);
	return s ? s->text : NULL;
}

static int keep_stack(struct timeline *t, const struct event *e)
{
	struct stack_text *s;

	if (!e->stack || timeline_stack(t, e->stack))
		return 0;
	s = t->stack_bytes < STACK_BYTES_MAX ? malloc(sizeof(*s) + e->text_len + 1) : NULL;
	if (!s) {
		t->stats.lost[LOST_STACK]++;
		t->stacks_missing++;
		return 0;
	}
	s->number = e->stack;
	memcpy(s->text, e->text, e->text_len);
	s->text[e->text_len] = 0;
	HASH_ADD(hh, t->stacks, number, sizeof(s->number), s);
	if (!s->hh.tbl) {
		free(s);
		return -ENOMEM;
	}
	t->stack_bytes += sizeof(*s) + e->text_len + 64;
	return 0;
}

// ---- what is said about the trace itself

void timeline_note(struct timeline *t, uint64_t time, const char *text)
{
	struct trace_event note = { .time = time, .type = TRACE_INSTANT, .category = "blkprof", .name = text };

	if (!t->trace)
		return;
	if (!t->notes) {
		t->notes = timeline_track(t);
		trace_track(t->trace, time, t->notes, 0, TRACE_LANE, "blkprof: what is missing");
	}
	note.track = t->notes;
	trace_event(t->trace, &note);
}

static void lose(struct timeline *t, const struct event *e)
{
	char text[96], n[32];

	if (!e->id || e->op >= LOST_KINDS)
		return;
	t->stats.lost[e->op] += e->id;
	snprintf(text, sizeof(text), "%s %s lost%s", text_count(n, sizeof(n), e->id), lost_name(e->op),
		 e->op <= LOST_THREAD ? ": no room between the kernel and blkprof" : " between the kernel and blkprof");
	timeline_note(t, e->time, text);
}

// ---- the trace's end

static void note_count(struct timeline *t, uint64_t time, uint64_t count, const char *what)
{
	char text[128], n[32];

	if (!count)
		return;
	snprintf(text, sizeof(text), "%s %s", text_count(n, sizeof(n), count), what);
	timeline_note(t, time, text);
}

// What was lost here, and not before.
static void note_missing(struct timeline *t, uint64_t time)
{
	struct timeline_stats s;

	timeline_get_stats(t, &s);
	note_count(t, time, s.late, "events came too late: they are shown later than they were");
	note_count(t, time, s.refused, "threads and I/O are beyond what is kept");
	note_count(t, time, t->stacks_missing, "stacks are beyond what is kept");
	note_count(t, time, t->requests_missing, "requests are not shown: their thread is not known, or there are too many at once");
}

static void close_trace(struct timeline *t, uint64_t time)
{
	sched_close(t, time);
	io_close(t, time);
	note_missing(t, time);
}

static int finish(struct timeline *t, int err)
{
	if (!t->trace)
		return err;
	trace_flush(t->trace);
	t->final_size = trace_size(t->trace);
	if (!err)
		err = trace_error(t->trace);
	return err;
}

static bool is_full(const struct timeline *t)
{
	uint64_t max = t->options.max_size, reserve = max / RESERVE_SHARE;

	if (!max || !t->trace)
		return false;
	if (reserve < RESERVE_MIN)
		reserve = RESERVE_MIN;
	return trace_size(t->trace) + reserve + t->open * RESERVE_OPEN > max;
}

// What is behind is left out of the trace, and only summed up.
static int fill_up(struct timeline *t, uint64_t time)
{
	int err;

	close_trace(t, time);
	timeline_note(t, time, "the trace is full (--max-size): it ends here, the recording went on");
	err = finish(t, 0);
	trace_free(t->trace);
	t->trace = NULL;
	return err;
}

static int check_trace(struct timeline *t)
{
	if (is_full(t))
		return fill_up(t, t->now);
	return t->trace ? trace_error(t->trace) : 0;
}

// ---- events

static void handle(struct timeline *t, const struct event *e)
{
	switch (e->type) {
	case EVENT_THREAD:
		sched_thread(t, e);
		break;
	case EVENT_SWITCH:
		sched_switch(t, e);
		break;
	case EVENT_WAKING:
		sched_waking(t, e);
		break;
	case EVENT_NEW:
		sched_new(t, e);
		break;
	case EVENT_RENAME:
		sched_rename(t, e);
		break;
	case EVENT_EXEC:
		sched_exec(t, e);
		break;
	case EVENT_SUBMIT:
		io_submit(t, e);
		break;
	case EVENT_END:
		io_end(t, e);
		break;
	case EVENT_LOST:
		lose(t, e);
		break;
	}
}

static int drain(struct timeline *t, bool all)
{
	bool had_trace = t->options.sink != NULL;
	struct event e;
	int err = 0;

	while (!err && order_take(t->order, all, &e)) {
		t->now = e.time;
		if (had_trace && !t->trace)
			t->stats.left_out++;
		handle(t, &e);
		requests_due(t, false);
		err = check_trace(t);
	}
	return err;
}

static int begin(struct timeline *t, const struct event *e)
{
	struct event start = *e;
	char release[128];

	text_sanitize(release, sizeof(release), e->text ? e->text : "", e->text_len);
	start.text = release;
	t->started = true;
	t->start = t->now = e->time;
	if (t->trace)
		trace_begin(t->trace, &start, e->cpu);
	return 0;
}

static int refuse(int err, struct error *error)
{
	if (err == -ENOMEM)
		return error_set(error, err, "no memory for the trace; free some, or record for a shorter time");
	return err ? error_set(error, err, "cannot write the trace: %s", strerror(-err)) : 0;
}

static int take(struct timeline *t, const struct event *e)
{
	struct event moved = *e;
	int err;

	switch (e->type) {
	case EVENT_PROCESS:
		return name_process(t, e);
	case EVENT_DEVICE:
		return disks_name(t->disks, e->device, e->text);
	case EVENT_STACK:
		return keep_stack(t, e);
	case EVENT_REQUEST:
		return request_event(t, e);
	case EVENT_STOP:
		t->stopped = true;
		t->stop = e->time;
		return 0;
	}
	t->stats.events++;
	moved.text = NULL;
	if (moved.type == EVENT_SUBMIT)
		moved.submit = moved.time;
	if (moved.time < t->start)
		moved.time = t->start;
	err = order_add(t->order, &moved);
	return err ? err : drain(t, false);
}

int timeline_add(struct timeline *t, const struct event *e, struct error *error)
{
	if (!e->type || e->type >= EVENT_TYPES)
		return 0;
	if ((e->type == EVENT_START) == t->started)
		return error_set(error, -EINVAL, t->started ? "a second start of the recording" : "an event before the start of the recording");
	if (t->ended)
		return error_set(error, -EINVAL, "an event behind the end");
	if (e->type != EVENT_START && e->cpu >= EVENT_CPUS)
		return error_set(error, -EINVAL, "CPU %u of an event is beyond %u", e->cpu, EVENT_CPUS - 1);
	return refuse(e->type == EVENT_START ? begin(t, e) : take(t, e), error);
}

static void end_threads(struct timeline *t, uint64_t time)
{
	for (size_t i = 0; i < thread_table_count(t->threads); i++) {
		struct thread *th = thread_table_get(t->threads, i);

		if (th->state != THREAD_DEAD)
			thread_enter(th, th->state, time);
	}
}

int timeline_end(struct timeline *t, struct error *error)
{
	int err = drain(t, true);
	uint64_t time;

	if (!t->started)
		return error_set(error, -EINVAL, "there is no start of a recording");
	requests_due(t, true);
	if (!err)
		err = check_trace(t);
	if (!t->stopped || t->stop < t->now)
		t->stop = t->now;
	time = t->stop;
	t->ended = true;
	if (t->trace)
		close_trace(t, time);
	end_threads(t, time);
	io_forget(t, time);
	return refuse(finish(t, err), error);
}

void timeline_get_stats(const struct timeline *t, struct timeline_stats *ret)
{
	*ret = t->stats;
	ret->duration = (t->ended ? t->stop : t->now) - t->start;
	ret->size = t->trace && !t->ended ? trace_size(t->trace) : t->final_size;
	ret->late = order_late(t->order);
	ret->threads = thread_table_count(t->threads);
	ret->refused = thread_table_refused(t->threads) + disks_refused(t->disks);
	ret->surprises = 0;
	for (size_t i = 0; i < ret->threads; i++)
		ret->surprises += thread_table_get(t->threads, i)->surprises;
}
