// SPDX-License-Identifier: Apache-2.0
// Switches and wake-ups: each thread's state, and what the trace shows of it. The trace must be consistent by itself: who
// leaves a CPU was on it, nobody is on two. Where events were lost, what is missing is made up in the trace.
#include <string.h>

#include "timeline/timeline_internal.h"

static const struct trace_task idle = { .tid = 0, .comm = "swapper" };

static void task_of(const struct thread *th, struct trace_task *ret)
{
	ret->tid = th->tid;
	ret->comm = th->comm;
}

static unsigned trace_state_of(const struct thread *th)
{
	switch (th->state) {
	case THREAD_PREEMPTED:
		return TRACE_PREEMPTED;
	case THREAD_SLEEPING:
		return TRACE_SLEEPING;
	case THREAD_DISK:
	case THREAD_BLOCKED:
		return TRACE_UNINTERRUPTIBLE;
	case THREAD_STOPPED:
		return TRACE_STOPPED;
	case THREAD_DEAD:
		return TRACE_DEAD;
	default:
		return TRACE_RUNNABLE;
	}
}

// ---- what the trace shows on a CPU

static void put(struct timeline *t, uint64_t time, uint32_t cpu, unsigned prev_state, const struct trace_task *next)
{
	struct trace_task *at = &t->on_cpu[cpu];

	if (at->tid == next->tid)
		return;
	if (!at->comm)
		*at = idle;
	trace_switch(t->trace, time, cpu, at, prev_state, next);
	t->open += (next->tid != 0) - (at->tid != 0);
	memcpy(t->on_cpu_comm[cpu], next->comm, strlen(next->comm) + 1);
	at->tid = next->tid;
	at->comm = t->on_cpu_comm[cpu];
}

static void take_off(struct timeline *t, uint64_t time, const struct thread *th, uint32_t but, enum trace_state state)
{
	if (th->cpu != but && th->cpu < EVENT_CPUS && t->on_cpu[th->cpu].tid == th->tid)
		put(t, time, th->cpu, state, &idle);
}

// For a reader of the trace it waits for a CPU already, and is not woken again.
static bool waits_in_trace(const struct thread *th)
{
	return th->displaced || th->state == THREAD_RUNNABLE || th->state == THREAD_PREEMPTED;
}

// ---- slices of waits

static const char *wait_name(const struct thread *th, const struct event *e)
{
	const char *name = e->flags & EVENT_SYSCALL ? syscall_name(e->syscall) : NULL;

	if (name)
		return name;
	if (e->flags & EVENT_KERNEL)
		return th->state == THREAD_SLEEPING ? "sleep" : thread_state_name(th->state);
	if (th->state == THREAD_STOPPED)
		return "stopped";
	if (e->flags & EVENT_SYSCALL)
		return "system call";
	if (th->state == THREAD_SLEEPING)
		return "sleep";
	return syscall_name(0) ? "page fault" : thread_state_name(th->state); // where system calls are not told apart
}

static void end_wait(struct timeline *t, struct thread *th, uint64_t time)
{
	struct trace_event end = { .time = time, .track = th->track, .type = TRACE_END };

	if (!th->waiting)
		return;
	th->waiting = false;
	t->open--;
	if (t->trace)
		trace_event(t->trace, &end);
}

static void begin_wait(struct timeline *t, struct thread *th, const struct event *e)
{
	struct trace_arg args[] = { { "state", thread_state_name(th->state), 0 } };
	struct trace_event begin = { .time = e->time, .track = th->track, .type = TRACE_BEGIN, .category = "wait",
				     .name = wait_name(th, e), .stack = e->stack, .stack_text = timeline_stack(t, e->stack),
				     .args = args, .n_args = 1 };

	if (!t->trace || !thread_sleeps(th))
		return;
	trace_event(t->trace, &begin);
	th->waiting = true;
	t->open++;
}

// ---- threads

static void show(struct timeline *t, struct thread *th, uint64_t time)
{
	if (!th->track)
		th->track = timeline_track(t);
	timeline_process(t, th->tgid, time);
	if (t->trace)
		trace_thread(t->trace, time, th->track, th->tgid, th->tid, th->comm);
}

struct thread *sched_thread_of(struct timeline *t, uint32_t tid, uint32_t tgid, const char *comm, uint64_t time)
{
	static const char unnamed[EVENT_COMM] = "";
	struct thread *th = thread_table_find(t->threads, tid);

	if (!tid)
		return NULL;
	if (th && th->state == THREAD_DEAD) {
		end_wait(t, th, time);
		th = NULL;
	}
	if (th)
		return th;
	th = thread_table_add(t->threads, tid, tgid, comm ? comm : unnamed, time);
	if (th)
		show(t, th, time);
	return th;
}

static void name(struct timeline *t, struct thread *th, const char *comm, uint64_t time)
{
	if (!*comm || !strncmp(th->comm, comm, sizeof(th->comm)))
		return;
	memcpy(th->comm, comm, sizeof(th->comm));
	if (t->trace)
		trace_thread(t->trace, time, th->track, th->tgid, th->tid, th->comm);
}

// A thread that was there at the start. For a reader a thread has no state before its first switch, so one that did not run
// is shown to leave a CPU in its first moment.
void sched_thread(struct timeline *t, const struct event *e)
{
	struct thread *th = sched_thread_of(t, e->tid, e->tgid, e->comm, e->time);
	struct trace_task task;

	if (!th || th->state != THREAD_UNKNOWN)
		return;
	name(t, th, e->comm, e->time);
	th->cpu = e->cpu;
	th->guessed = true;
	thread_enter(th, e->flags & EVENT_RUNNING ? THREAD_RUNNING : thread_state_of(e->flags, e->state), e->time);
	if (th->state == THREAD_RUNNING)
		t->running[e->cpu] = th;
	if (!t->trace)
		return;
	task_of(th, &task);
	put(t, e->time, e->cpu, TRACE_PREEMPTED, &task);
	if (th->state != THREAD_RUNNING)
		put(t, e->time, e->cpu, trace_state_of(th), &idle);
	begin_wait(t, th, e);
}

static void show_switch(struct timeline *t, const struct event *e, const struct thread *leaves, unsigned state,
			const struct thread *comes)
{
	struct trace_task task = idle;

	if (leaves) {
		task_of(leaves, &task);
		take_off(t, e->time, leaves, e->cpu, TRACE_RUNNABLE);
	}
	// Who leaves was there, also when its arrival was lost.
	put(t, e->time, e->cpu, TRACE_RUNNABLE, &task);
	task = idle;
	if (comes)
		task_of(comes, &task);
	put(t, e->time, e->cpu, state, &task);
}

// Who ran on this CPU by what is known, and is not who leaves it now, left unseen: a kernel may keep some threads' doings to
// itself, and records may be lost.
static void check_running(struct timeline *t, const struct event *e, const struct thread *leaves)
{
	struct thread *th = t->running[e->cpu];

	if (th && th != leaves && th->state == THREAD_RUNNING && th->cpu == e->cpu) {
		if (th->guessed)
			th->state = THREAD_PREEMPTED;
		else
			thread_displaced(th, e->time);
	}
	t->running[e->cpu] = NULL;
}

void sched_switch(struct timeline *t, const struct event *e)
{
	struct thread *leaves = NULL, *comes = NULL;
	bool woken = false;
	unsigned state = TRACE_RUNNABLE;
	struct trace_task task;

	t->stats.switches++;
	if (e->flags & EVENT_LEAVES)
		leaves = sched_thread_of(t, e->tid, e->tgid, NULL, e->time);
	if (e->flags & EVENT_COMES)
		comes = sched_thread_of(t, e->other_tid, e->other_tgid, e->comm, e->time);
	if (comes == leaves)
		comes = NULL;
	check_running(t, e, leaves);
	if (leaves) {
		end_wait(t, leaves, e->time);
		woken = thread_leaves(leaves, thread_state_of(e->flags, e->state), e->time);
		state = woken ? TRACE_SLEEPING : trace_state_of(leaves);
	}
	if (comes) {
		end_wait(t, comes, e->time);
		name(t, comes, e->comm, e->time);
		if (t->trace) // of the CPU where it was seen last, if its leaving was lost
			take_off(t, e->time, comes, e->cpu, TRACE_RUNNABLE);
		thread_arrives(comes, e->time, e->cpu);
		t->running[e->cpu] = comes;
	}
	if (t->trace)
		show_switch(t, e, leaves, state, comes);
	if (leaves && leaves->state == THREAD_RUNNING)
		return;
	if (leaves && woken && t->trace) {
		task_of(leaves, &task);
		trace_waking(t->trace, e->time, e->cpu, 0, &task);
	}
	if (leaves)
		begin_wait(t, leaves, e);
}

void sched_waking(struct timeline *t, const struct event *e)
{
	struct thread *th = sched_thread_of(t, e->tid, e->tgid, NULL, e->time);
	enum thread_state was = th ? th->state : THREAD_UNKNOWN;
	bool waits = th && waits_in_trace(th);
	struct trace_task task;

	if (!th || !thread_wakes(th, e))
		return;
	end_wait(t, th, e->time);
	if (!t->trace || waits)
		return;
	task_of(th, &task);
	if (was == THREAD_DISK || was == THREAD_BLOCKED)
		trace_blocked(t->trace, e->time, e->cpu, e->other_tid, e->tid, was == THREAD_DISK);
	trace_waking(t->trace, e->time, e->cpu, e->other_tid, &task);
}

void sched_new(struct timeline *t, const struct event *e)
{
	struct thread *old = thread_table_find(t->threads, e->tid), *th;
	struct trace_task task;
	bool waits = false;

	if (old && old->state != THREAD_DEAD && old->first != e->time) {
		old->surprises++; // its end was lost, and its number is another's
		waits = waits_in_trace(old);
		end_wait(t, old, e->time);
		if (t->trace)
			take_off(t, e->time, old, EVENT_CPUS, TRACE_DEAD);
		thread_enter(old, THREAD_DEAD, e->time);
	}
	th = sched_thread_of(t, e->tid, e->tgid, e->comm, e->time);
	if (!th)
		return;
	thread_enter(th, THREAD_RUNNABLE, e->time);
	th->cpu = e->cpu;
	if (!t->trace || waits)
		return;
	task_of(th, &task);
	trace_waking(t->trace, e->time, e->cpu, e->other_tid, &task);
}

void sched_rename(struct timeline *t, const struct event *e)
{
	struct thread *th = thread_table_find(t->threads, e->tid);

	if (th)
		name(t, th, e->comm, e->time);
}

// A thread that is not its process's first takes that one's number; the others have ended by then.
void sched_exec(struct timeline *t, const struct event *e)
{
	struct thread *th = thread_table_find(t->threads, e->other_tid), *first;
	struct trace_task task;

	if (th && e->other_tid != e->tid) {
		first = thread_table_find(t->threads, e->tid);
		if (first && first != th && first->state != THREAD_DEAD) {
			end_wait(t, first, e->time);
			thread_enter(first, THREAD_DEAD, e->time);
		}
		end_wait(t, th, e->time);
		if (t->trace)
			take_off(t, e->time, th, EVENT_CPUS, TRACE_DEAD);
		thread_table_rekey(t->threads, th, e->tid);
		th->track = 0;
		memcpy(th->comm, e->comm, sizeof(th->comm));
		show(t, th, e->time);
		task_of(th, &task);
		if (t->trace && th->state == THREAD_RUNNING)
			put(t, e->time, th->cpu, TRACE_RUNNABLE, &task);
	}
	sched_rename(t, e);
}

void sched_close(struct timeline *t, uint64_t time)
{
	for (size_t i = 0; i < thread_table_count(t->threads); i++)
		end_wait(t, thread_table_get(t->threads, i), time);
	for (uint32_t cpu = 0; t->trace && cpu < EVENT_CPUS; cpu++)
		put(t, time, cpu, TRACE_RUNNABLE, &idle);
}
