// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// BPF trampolines on submit_bio and bio_endio: the cheapest hooks, typed loads, no probe reads. x86 from 5.5 and arm64 from
// about 6.4.
#define CORE_TYPED
#include "bpf/core.bpf.h"
#include "bpf/cpu.bpf.h"

SEC("?fentry/submit_bio")
int BPF_PROG(on_submit_bio, struct bio *bio)
{
	hold_cpu();
	bio_submitted(ctx, bio);
	release_cpu();
	return 0;
}

SEC("?fentry/bio_endio")
int BPF_PROG(on_bio_endio, struct bio *bio)
{
	hold_cpu();
	bio_completed(bio);
	release_cpu();
	return 0;
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	task_forked(parent, child);
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	task_exited(task);
	return 0;
}
