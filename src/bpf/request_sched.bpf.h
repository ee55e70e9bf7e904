/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* On the CPU, waiting for it, or blocked, and why. Included by request.bpf.c. */
#ifndef BLKPROF_BPF_REQUEST_SCHED_H
#define BLKPROF_BPF_REQUEST_SCHED_H

/* A page fault that did I/O in a call that is not about files: an index that is mapped, sent to a socket, say. */
static __always_inline bool faults_count(u32 call)
{
	return call == CALL_NONE || (call >= CALL_SOCKET_READ && call <= CALL_POLL);
}

static __always_inline u8 wait_reason(u32 call, bool iowait, bool sleeps_deeply)
{
	if (iowait)
		return WAIT_DISK;
	if (call <= CALL_FILE_LAST)
		return sleeps_deeply ? WAIT_DISK : WAIT_OTHER;
	switch (call) {
	case CALL_SOCKET_READ:
	case CALL_SOCKET_WRITE:
		return sleeps_deeply ? WAIT_OTHER : WAIT_NET; /* peers are waited for so that a signal ends it */
	case CALL_EVENT:
		return WAIT_PIPE;
	case CALL_FUTEX:
		return WAIT_LOCK;
	case CALL_POLL:
		return WAIT_POLL;
	case CALL_SLEEP:
		return WAIT_SLEEP;
	}
	return WAIT_OTHER;
}

#define TASK_UNINTERRUPTIBLE 2

static __always_inline u32 task_state(struct task_struct *task)
{
	struct task_struct___request *r = (struct task_struct___request *)task;

	if (bpf_core_field_exists(r->__state))
		return r->__state;
	return (u32)((struct task_struct___state *)task)->state;
}

static __always_inline struct req_thread *thread_of(struct task_struct *task)
{
	u32 tgid = (u32)task->tgid;

	return maybe_target(tgid) ? known_thread(tgid, (u32)task->pid, false) : 0;
}

static __always_inline void switched_out(struct req_thread *t, struct task_struct *prev, bool preempted, u64 now)
{
	struct task_struct___request *task = (struct task_struct___request *)prev;
	u32 task_is = task_state(prev);
	bool iowait = BPF_CORE_READ_BITFIELD(task, in_iowait);

	notice_missed(t, task, now);
	settle(t, task->sched_info.run_delay);
	t->sums.oncpu += now - t->in;
	t->sums.switches++;
	t->out = now;
	t->ran = task->se.sum_exec_runtime;
	t->reason = preempted || !task_is ? WAIT_CPU : wait_reason(t->call, iowait, task_is & TASK_UNINTERRUPTIBLE);
	if (t->reason != WAIT_DISK || !faults_count(t->call)) {
		t->fault_waited &= ~2;
		return;
	}
	t->fault_waited |= 2;
	if (!t->fault)
		t->fault = now;
}

/* The state is read of the task itself: the tracepoint's own argument came in 5.18, in another place at first. */
SEC("?tp_btf/sched_switch")
int BPF_PROG(on_sched_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct req_thread *t = thread_of(prev);

	if (t)
		switched_out(t, prev, preempted, bpf_ktime_get_ns());
	t = thread_of(next);
	if (t)
		switched_in(t, bpf_ktime_get_ns());
	return 0;
}

SEC("?tp_btf/page_fault_user")
int BPF_PROG(on_page_fault)
{
	struct req_thread *t = this_thread();

	if (!t)
		return 0;
	t->fault = bpf_ktime_get_ns();
	t->fault_waited = 0;
	return 0;
}

/* A server that forks for each connection: its child is over before user space looks at processes again. */
SEC("?tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 from = (u32)parent->tgid, tgid = (u32)child->tgid, value;
	u32 *known;

	if (from == tgid || !maybe_target(from))
		return 0;
	known = bpf_map_lookup_elem(&targets, &from);
	if (!known || !(*known & REQ_TARGET_CHILDREN))
		return 0;
	value = REQ_TARGET | REQ_TARGET_CHILDREN | REQ_TARGET_BORN;
	if (bpf_map_update_elem(&targets, &tgid, &value, BPF_NOEXIST)) {
		if (!bpf_map_lookup_elem(&targets, &tgid))
			lose(REQ_LOSS_CHILDREN);
		return 0;
	}
	/* Two at once may lose one of their bits; user space sets them all again. */
	state.targets[(tgid / 64) & (REQ_TARGET_BITS / 64 - 1)] |= 1ull << (tgid & 63);
	return 0;
}

static __always_inline void forget_child(u32 tgid)
{
	u32 *known = bpf_map_lookup_elem(&targets, &tgid);

	if (known && *known & REQ_TARGET_BORN)
		bpf_map_delete_elem(&targets, &tgid);
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct req_thread *t = this_thread();
	u32 tid;

	if (!t)
		return 0;
	hold_cpu();
	emit_exit(t);
	tid = t->tid;
	if (tid == t->tgid)
		forget_child(tid);
	bpf_map_delete_elem(&threads, &tid);
	release_cpu();
	return 0;
}

#endif
