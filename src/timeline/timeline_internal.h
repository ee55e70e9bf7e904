// SPDX-License-Identifier: Apache-2.0
// The inside of a timeline, shared by the files that take in switches (sched.c), I/O (io.c), drive them (timeline.c) and
// sum up (summary.c).
#ifndef BLKPROF_TIMELINE_TIMELINE_INTERNAL_H
#define BLKPROF_TIMELINE_TIMELINE_INTERNAL_H

#include "timeline/disks.h"
#include "timeline/order.h"
#include "timeline/threads.h"
#include "timeline/timeline.h"

struct process;
struct stack_text;
struct request_wait;

struct timeline {
	struct timeline_options options;
	struct order *order;
	struct trace *trace; // NULL: none is wanted, or it is full
	struct thread_table *threads;
	struct disks *disks;
	struct process *processes;
	struct stack_text *stacks;
	struct request_wait *requests;
	size_t n_requests;
	size_t stack_bytes;
	uint64_t stacks_missing, requests_missing; // of those that are lost: not said in the trace yet
	struct trace_task *on_cpu; // EVENT_CPUS: who the trace shows there
	char (*on_cpu_comm)[EVENT_COMM];
	struct thread **running; // EVENT_CPUS: who came there last, or NULL
	uint64_t tracks; // numbers given
	uint64_t open;	 // slices, and threads on CPUs, that the trace has still to end
	uint64_t notes;	 // track of what is said about the trace itself
	uint64_t start, stop, now;
	bool started, stopped, ended;
	uint64_t final_size;
	struct timeline_stats stats;
};

// sched.c
void sched_thread(struct timeline *t, const struct event *e);
void sched_switch(struct timeline *t, const struct event *e);
void sched_waking(struct timeline *t, const struct event *e);
void sched_new(struct timeline *t, const struct event *e);
void sched_rename(struct timeline *t, const struct event *e);
void sched_exec(struct timeline *t, const struct event *e);
void sched_close(struct timeline *t, uint64_t time); // ends what is open in the trace
// The thread, made known when it is not; NULL beyond the limit.
struct thread *sched_thread_of(struct timeline *t, uint32_t tid, uint32_t tgid, const char *comm, uint64_t time);

// io.c
void io_submit(struct timeline *t, const struct event *e);
void io_end(struct timeline *t, const struct event *e);
void io_close(struct timeline *t, uint64_t time); // ends what is open in the trace
void io_forget(struct timeline *t, uint64_t time); // at the end of the recording
const char *io_op_name(unsigned op);

// requests.c
int request_event(struct timeline *t, const struct event *e);
void requests_due(struct timeline *t, bool all); // shows those that are over, as far as events have been taken in
void requests_forget(struct timeline *t);

// timeline.c
uint64_t timeline_track(struct timeline *t);
void timeline_process(struct timeline *t, uint32_t tgid, uint64_t time); // shows it, when it is not yet
const char *timeline_stack(const struct timeline *t, uint64_t stack);
const char *timeline_process_name(const struct timeline *t, uint32_t tgid);
void timeline_note(struct timeline *t, uint64_t time, const char *text);

// syscalls.c
const char *syscall_name(uint32_t nr); // "futex", or NULL

#endif
