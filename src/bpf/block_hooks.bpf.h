// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// Where bios begin and end, for recordings and timelines: by BTF-typed raw tracepoints.
#ifndef BLKPROF_BPF_BLOCK_HOOKS_BPF_H
#define BLKPROF_BPF_BLOCK_HOOKS_BPF_H

#include "bpf/core.bpf.h"

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

#endif
