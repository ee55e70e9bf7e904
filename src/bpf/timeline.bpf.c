// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// The timeline of threads and bios, by BTF-typed raw tracepoints.
#define CORE_TYPED
#define CORE_TRACEPOINT
#define CORE_WATCHED
#include "bpf/core.bpf.h"
#include "bpf/timeline.bpf.h"
#include "bpf/block_hooks.bpf.h"

SEC("?tp_btf/block_rq_issue")
int BPF_PROG(on_rq_issue, struct request *rq)
{
	request_issued(rq);
	return 0;
}

/* Up to 5.10 the queue comes first. */
SEC("?tp_btf/block_rq_issue")
int BPF_PROG(on_queue_rq_issue, void *queue, struct request *rq)
{
	request_issued(rq);
	return 0;
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next, u32 state)
{
	task_switched(ctx, preempted, prev, next, state);
	return 0;
}

/* Up to 5.17 the state that prev sleeps in is the task's own. */
SEC("?tp_btf/sched_switch")
int BPF_PROG(on_task_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	task_switched(ctx, preempted, prev, next, task_state(prev));
	return 0;
}

SEC("?tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	task_waking(task);
	return 0;
}

SEC("?tp_btf/sched_wakeup_new")
int BPF_PROG(on_new, struct task_struct *task)
{
	task_started(task);
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, u32 old_tid)
{
	task_executed(task, old_tid);
	return 0;
}
