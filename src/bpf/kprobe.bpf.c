// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// kprobes on submit_bio and bio_endio: every load is a probe read, and the kernel skips a kprobe that interrupts another
// BPF program on its CPU.
#include "bpf/core.bpf.h"
#include "bpf/cpu.bpf.h"

SEC("?kprobe/submit_bio")
int BPF_KPROBE(on_submit_bio, struct bio *bio)
{
	bio_submitted(ctx, bio);
	return 0;
}

SEC("?kprobe/bio_endio")
int BPF_KPROBE(on_bio_endio, struct bio *bio)
{
	bio_completed(bio);
	return 0;
}

SEC("?raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	task_forked((struct task_struct *)ctx->args[0], (struct task_struct *)ctx->args[1]);
	return 0;
}

SEC("?raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	task_exited((struct task_struct *)ctx->args[0]);
	return 0;
}
