// SPDX-License-Identifier: Apache-2.0
// A Perfetto trace (proto/perfetto.proto) written packet by packet. Times are CLOCK_MONOTONIC and must not go back. What is
// not written for want of room is the caller's to count.
#ifndef BLKPROF_TIMELINE_TRACE_H
#define BLKPROF_TIMELINE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "timeline/event.h"

struct trace;

typedef int (*trace_sink)(void *context, const void *data, size_t len); // 0 or negative errno

struct trace *trace_new(trace_sink sink, void *context);
void trace_free(struct trace *t);
uint64_t trace_size(const struct trace *t); // bytes written so far
int trace_error(const struct trace *t);	    // the first that occurred, negative errno

void trace_begin(struct trace *t, const struct event *start, unsigned cpus);
void trace_flush(struct trace *t); // all that was written so far goes to the sink

// Threads on CPUs. A thread of pid 0 is the CPU's idle one.
struct trace_task {
	uint32_t tid;
	const char *comm;
};

// prev_state as sched_switch reports it: enum trace_state.
enum trace_state {
	TRACE_RUNNABLE = 0,
	TRACE_SLEEPING = 1,
	TRACE_UNINTERRUPTIBLE = 2,
	TRACE_STOPPED = 4,
	TRACE_TRACED = 8,
	TRACE_DEAD = 0x10,
	TRACE_ZOMBIE = 0x20,
	TRACE_PARKED = 0x40,
	TRACE_IDLE = 0x80,
	TRACE_PREEMPTED = 0x100,
};

void trace_switch(struct trace *t, uint64_t time, uint32_t cpu, const struct trace_task *prev, unsigned prev_state,
		  const struct trace_task *next);
// Also of a new thread: for a reader it can run from here on.
void trace_waking(struct trace *t, uint64_t time, uint32_t cpu, uint32_t waker, const struct trace_task *task);
// Says of the sleep that the waking behind it ends whether it was for I/O.
void trace_blocked(struct trace *t, uint64_t time, uint32_t cpu, uint32_t waker, uint32_t tid, bool io_wait);

// Tracks. Numbers are the caller's, from 1; again with another name renames.
void trace_process(struct trace *t, uint64_t time, uint64_t track, uint32_t pid, const char *name);
void trace_thread(struct trace *t, uint64_t time, uint64_t track, uint32_t pid, uint32_t tid, const char *name);
enum trace_kind {
	TRACE_GROUP,	// holds others
	TRACE_LANE,	// slices that do not overlap; lanes of one name are shown as one
	TRACE_COUNTER,
};
void trace_track(struct trace *t, uint64_t time, uint64_t track, uint64_t parent, enum trace_kind kind, const char *name);

struct trace_arg {
	const char *name;
	const char *text; // NULL: number
	uint64_t number;
};

enum trace_type {
	TRACE_BEGIN = 1,
	TRACE_END = 2,
	TRACE_INSTANT = 3,
	TRACE_VALUE = 4,
};

struct trace_event {
	uint64_t time, track;
	enum trace_type type;
	const char *category, *name; // not of ends and values
	uint64_t flow;		     // begins here, 0 = none
	uint64_t flow_end;	     // ends here, 0 = none
	uint64_t stack;		     // number of stack_text, 0 = none
	const char *stack_text;	     // frames, outermost first, one a line
	uint64_t value;
	const struct trace_arg *args;
	unsigned n_args;
};

void trace_event(struct trace *t, const struct trace_event *e);

#endif
