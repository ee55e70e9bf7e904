// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// Where bios begin and end, for kernels that refuse programs that are typed by BTF: every load is a probe read.
#ifndef BLKPROF_BPF_BLOCK_HOOKS_RAW_BPF_H
#define BLKPROF_BPF_BLOCK_HOOKS_RAW_BPF_H

#include "bpf/core.bpf.h"

SEC("?raw_tp/block_bio_queue")
int on_bio_queue(struct bpf_raw_tracepoint_args *ctx)
{
	hold_cpu();
	bio_submitted(ctx, (struct bio *)ctx->args[0]);
	release_cpu();
	return 0;
}

/* Up to 5.10 the queue comes first. */
SEC("?raw_tp/block_bio_queue")
int on_queue_bio_queue(struct bpf_raw_tracepoint_args *ctx)
{
	hold_cpu();
	bio_submitted(ctx, (struct bio *)ctx->args[1]);
	release_cpu();
	return 0;
}

SEC("?raw_tp/block_bio_complete")
int on_bio_complete(struct bpf_raw_tracepoint_args *ctx)
{
	hold_cpu();
	bio_completed((struct bio *)ctx->args[1]);
	release_cpu();
	return 0;
}

SEC("?raw_tp/block_rq_complete")
int on_rq_complete(struct bpf_raw_tracepoint_args *ctx)
{
	hold_cpu();
	request_completed((struct request *)ctx->args[0], (u32)ctx->args[1], (u32)ctx->args[2]);
	release_cpu();
	return 0;
}

#endif
