// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// The timeline for kernels that refuse programs that are typed by BTF: the same hooks, every load a probe read.
#define CORE_TRACEPOINT
#define CORE_WATCHED
#include "bpf/core.bpf.h"
#include "bpf/timeline.bpf.h"
#include "bpf/block_hooks_raw.bpf.h"

SEC("?raw_tp/block_rq_issue")
int on_rq_issue(struct bpf_raw_tracepoint_args *ctx)
{
	request_issued((struct request *)ctx->args[0]);
	return 0;
}

/* Up to 5.10 the queue comes first. */
SEC("?raw_tp/block_rq_issue")
int on_queue_rq_issue(struct bpf_raw_tracepoint_args *ctx)
{
	request_issued((struct request *)ctx->args[1]);
	return 0;
}

SEC("?raw_tp/sched_switch")
int on_switch(struct bpf_raw_tracepoint_args *ctx)
{
	task_switched(ctx, ctx->args[0], (struct task_struct *)ctx->args[1], (struct task_struct *)ctx->args[2], (u32)ctx->args[3]);
	return 0;
}

/* Up to 5.17 the state that prev sleeps in is the task's own. */
SEC("?raw_tp/sched_switch")
int on_task_switch(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx->args[1];

	task_switched(ctx, ctx->args[0], prev, (struct task_struct *)ctx->args[2], task_state(prev));
	return 0;
}

SEC("?raw_tp/sched_waking")
int on_waking(struct bpf_raw_tracepoint_args *ctx)
{
	task_waking((struct task_struct *)ctx->args[0]);
	return 0;
}

SEC("?raw_tp/sched_wakeup_new")
int on_new(struct bpf_raw_tracepoint_args *ctx)
{
	task_started((struct task_struct *)ctx->args[0]);
	return 0;
}

SEC("?raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	task_executed((struct task_struct *)ctx->args[0], (u32)ctx->args[1]);
	return 0;
}
