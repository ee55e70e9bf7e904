// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// Programs that do nothing, on the hooks and of the types of the measured ones: what the hooks themselves cost.
#include "bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("?tp_btf/block_bio_queue")
int BPF_PROG(typed_submit, struct bio *bio)
{
	return 0;
}

SEC("?tp_btf/block_bio_complete")
int BPF_PROG(typed_complete, void *queue, struct bio *bio)
{
	return 0;
}

SEC("?tp_btf/block_rq_complete")
int BPF_PROG(typed_rq_complete, struct request *rq, u32 status, u32 nr_bytes)
{
	return 0;
}

SEC("?raw_tp/block_bio_queue")
int raw_submit(struct bpf_raw_tracepoint_args *ctx)
{
	return 0;
}

SEC("?raw_tp/block_bio_complete")
int raw_complete(struct bpf_raw_tracepoint_args *ctx)
{
	return 0;
}

SEC("?kprobe/submit_bio")
int BPF_KPROBE(kprobe_submit, struct bio *bio)
{
	return 0;
}

SEC("?kprobe/bio_endio")
int BPF_KPROBE(kprobe_complete, struct bio *bio)
{
	return 0;
}

SEC("?fentry/submit_bio")
int BPF_PROG(fentry_submit, struct bio *bio)
{
	return 0;
}

SEC("?fentry/bio_endio")
int BPF_PROG(fentry_complete, struct bio *bio)
{
	return 0;
}

SEC("?tp_btf/sys_enter")
int BPF_PROG(request_enter, struct pt_regs *regs, long number)
{
	return 0;
}

SEC("?tp_btf/sys_exit")
int BPF_PROG(request_exit, struct pt_regs *regs, long result)
{
	return 0;
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(request_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	return 0;
}

SEC("?tp_btf/page_fault_user")
int BPF_PROG(request_fault)
{
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(request_thread_exit, struct task_struct *task)
{
	return 0;
}

SEC("?raw_tp/block_rq_complete")
int raw_rq_complete(struct bpf_raw_tracepoint_args *ctx)
{
	return 0;
}
