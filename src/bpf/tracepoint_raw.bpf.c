// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// The tracepoint backend for kernels that have BTF and refuse programs that are typed by it: the same hooks, every load a
// probe read.
#define CORE_TRACEPOINT
#include "bpf/core.bpf.h"
#include "bpf/cpu.bpf.h"
#include "bpf/follow_raw.bpf.h"

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
