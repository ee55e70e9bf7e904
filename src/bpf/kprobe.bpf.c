// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// kprobes on submit_bio and bio_endio: every load is a probe read, and the kernel skips a kprobe that interrupts another
// BPF program on its CPU.
#include "bpf/core.bpf.h"
#include "bpf/cpu.bpf.h"
#include "bpf/follow_raw.bpf.h"

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
