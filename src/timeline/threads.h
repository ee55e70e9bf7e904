// SPDX-License-Identifier: Apache-2.0
// What each thread does and for how long: at every moment one state, from the recording's start (or the thread's) to its
// end, without gaps.
#ifndef BLKPROF_TIMELINE_THREADS_H
#define BLKPROF_TIMELINE_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "timeline/event.h"

enum thread_state {
	THREAD_UNKNOWN,	  // events were lost
	THREAD_RUNNING,	  // on a CPU
	THREAD_RUNNABLE,  // woken, waits for a CPU
	THREAD_PREEMPTED, // could have gone on, waits for a CPU
	THREAD_SLEEPING,
	THREAD_DISK,	// waits for I/O
	THREAD_BLOCKED, // uninterruptible, not for I/O
	THREAD_STOPPED, // by a signal, a debugger; parked
	THREAD_DEAD,
	THREAD_STATES,
};

#define THREAD_WAKERS 8
#define THREAD_LANES 8

struct waker {
	uint32_t tid;
	char comm[EVENT_COMM];
	uint64_t count;
};

struct thread {
	uint32_t tid, tgid;
	char comm[EVENT_COMM];
	enum thread_state state;
	uint64_t since;
	uint64_t first, last; // first and last time it was known
	uint64_t time[THREAD_STATES];
	uint64_t voluntary, involuntary; // switches away from it
	uint64_t woken, ops;
	uint64_t surprises; // events that did not fit its state: others before them were lost
	struct waker wakers[THREAD_WAKERS]; // the most frequent, about
	// A waking that came before the switch that it belongs to.
	enum { NO_WAKING, MAYBE_WAKING, SURE_WAKING } early;
	bool guessed; // the state is from /proc: its first event knows better
	bool displaced; // unknown since somebody else had its CPU; the trace shows it to wait for one
	uint32_t cpu;
	uint64_t requests, request_time; // that it served
	// Of whoever shows it.
	uint64_t track;
	struct thread_lane {
		uint64_t track, until;
	} lanes[THREAD_LANES]; // of requests, which may overlap
	bool waiting; // a slice that says for what is open
};

struct thread_table;

struct thread_table *thread_table_new(size_t max);
void thread_table_free(struct thread_table *ts);
struct thread *thread_table_find(struct thread_table *ts, uint32_t tid);
// A thread that is there since `time`; NULL without memory or beyond max, which is counted. An old one of that number, which
// must have ended, is put aside.
struct thread *thread_table_add(struct thread_table *ts, uint32_t tid, uint32_t tgid, const char *comm, uint64_t time);
void thread_table_rekey(struct thread_table *ts, struct thread *t, uint32_t tid); // exec gave it another number
uint64_t thread_table_refused(const struct thread_table *ts);
// All, also those that ended; the order is that of their coming.
size_t thread_table_count(const struct thread_table *ts);
struct thread *thread_table_get(struct thread_table *ts, size_t i);

// Changes of state. The time since the last one goes to the state that it was in.
void thread_enter(struct thread *t, enum thread_state state, uint64_t time);
// The state that a thread leaves its CPU in.
enum thread_state thread_state_of(uint32_t flags, uint32_t kernel_state);
void thread_arrives(struct thread *t, uint64_t time, uint32_t cpu);
// Returns whether it was woken already, before it left.
bool thread_leaves(struct thread *t, enum thread_state state, uint64_t time);
// It ran when it was last heard of, and somebody else has its CPU now: since when, and what it does, is not known.
void thread_displaced(struct thread *t, uint64_t time);
// Returns whether it ends a sleep.
bool thread_wakes(struct thread *t, const struct event *e);
bool thread_sleeps(const struct thread *t);
const char *thread_state_name(enum thread_state state);

#endif
