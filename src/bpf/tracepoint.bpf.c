// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// The backend that needs neither kprobes nor trampolines: BTF-typed raw tracepoints. block_bio_complete fires only for
// bios that do not end through a request, block_rq_complete for the others.
#define CORE_TYPED
#define CORE_TRACEPOINT
#include "bpf/core.bpf.h"
#include "bpf/cpu.bpf.h"

SEC("?tp_btf/block_bio_queue")
int BPF_PROG(on_bio_queue, struct bio *bio)
{
	hold_cpu();
	bio_submitted(ctx, bio);
	release_cpu();
	return 0;
}

/* Up to 5.10 the queue comes first. */
SEC("?tp_btf/block_bio_queue")
int BPF_PROG(on_queue_bio_queue, void *queue, struct bio *bio)
{
	hold_cpu();
	bio_submitted(ctx, bio);
	release_cpu();
	return 0;
}

SEC("?tp_btf/block_bio_complete")
int BPF_PROG(on_bio_complete, void *queue, struct bio *bio)
{
	hold_cpu();
	bio_completed(bio);
	release_cpu();
	return 0;
}

SEC("?tp_btf/block_rq_complete")
int BPF_PROG(on_rq_complete, struct request *rq, u32 status, u32 nr_bytes)
{
	hold_cpu();
	request_completed(rq, status, nr_bytes);
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
