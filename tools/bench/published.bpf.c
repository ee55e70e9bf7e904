// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// The published design, as its authors describe it, for the benchmark's other side: kprobes on submit_bio and bio_endio
// (also as fentry and as raw tracepoints, so that it runs on the same hooks as ours), a per-CPU sampler that lets one bio per millisecond
// take a stack and carry the operations and bytes skipped before it, and an LRU map of bios in flight keyed by the pointer.
// A skipped bio costs a clock read and counters at submission, and a map miss at completion.
#include "bpf/kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

const volatile __u64 interval = 1000000; // ns between two stacks of a CPU

struct sampler { u64 next, ops, read_bytes, write_bytes; };
struct bio_in_flight { u64 start, ops, read_bytes, write_bytes; s32 stack; u32 tgid; };
struct stack_key { u32 tgid; s32 stack; };
struct stack_value { u64 ops, time, read_bytes, write_bytes; };

struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, struct sampler); } samplers SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __uint(max_entries, 65536); __type(key, u64); __type(value, struct bio_in_flight); } in_flight SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_STACK_TRACE); __uint(max_entries, 16384); __uint(key_size, 4); __uint(value_size, 127 * 8); } stacks SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_HASH); __uint(max_entries, 16384); __type(key, struct stack_key); __type(value, struct stack_value); } totals SEC(".maps");

static __always_inline int submitted(void *ctx, struct bio *bio)
{
	u32 zero = 0, size = BPF_CORE_READ(bio, bi_iter.bi_size), op = BPF_CORE_READ(bio, bi_opf) & 0xff;
	struct sampler *s = bpf_map_lookup_elem(&samplers, &zero);
	u64 now = bpf_ktime_get_ns(), key = (u64)bio;
	struct bio_in_flight v = {};

	if (!s)
		return 0;
	s->ops++;
	if (op == 0)
		s->read_bytes += size;
	else if (op == 1)
		s->write_bytes += size;
	if (now < s->next)
		return 0;
	v.start = now;
	v.ops = s->ops;
	v.read_bytes = s->read_bytes;
	v.write_bytes = s->write_bytes;
	s->ops = s->read_bytes = s->write_bytes = 0;
	s->next = now + interval;
	v.tgid = bpf_get_current_pid_tgid() >> 32;
	v.stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK | BPF_F_FAST_STACK_CMP);
	bpf_map_update_elem(&in_flight, &key, &v, BPF_ANY);
	return 0;
}

static __always_inline int completed(struct bio *bio)
{
	u64 key = (u64)bio, time;
	struct bio_in_flight *v = bpf_map_lookup_elem(&in_flight, &key);
	struct stack_key k = {};
	struct stack_value zero = {}, *t;

	if (!v)
		return 0;
	time = bpf_ktime_get_ns() - v->start;
	k.tgid = v->tgid;
	k.stack = v->stack;
	t = bpf_map_lookup_elem(&totals, &k);
	if (!t) {
		bpf_map_update_elem(&totals, &k, &zero, BPF_NOEXIST);
		t = bpf_map_lookup_elem(&totals, &k);
	}
	if (t) {
		t->ops += v->ops;
		t->time += time * v->ops;
		t->read_bytes += v->read_bytes;
		t->write_bytes += v->write_bytes;
	}
	bpf_map_delete_elem(&in_flight, &key);
	return 0;
}

SEC("?raw_tp/block_bio_queue")
int submit(struct bpf_raw_tracepoint_args *ctx)
{
	return submitted(ctx, (struct bio *)ctx->args[0]);
}

// Up to 5.10 the queue came first; attaching this one is refused where there is one argument.
SEC("?raw_tp/block_bio_queue")
int submit_second(struct bpf_raw_tracepoint_args *ctx)
{
	return submitted(ctx, (struct bio *)ctx->args[1]);
}

SEC("?raw_tp/block_bio_complete")
int complete(struct bpf_raw_tracepoint_args *ctx)
{
	return completed((struct bio *)ctx->args[1]);
}

SEC("?kprobe/submit_bio")
int BPF_KPROBE(kprobe_submit, struct bio *bio)
{
	return submitted(ctx, bio);
}

SEC("?kprobe/bio_endio")
int BPF_KPROBE(kprobe_complete, struct bio *bio)
{
	return completed(bio);
}

SEC("?fentry/submit_bio")
int BPF_PROG(fentry_submit, struct bio *bio)
{
	return submitted(ctx, bio);
}

SEC("?fentry/bio_endio")
int BPF_PROG(fentry_complete, struct bio *bio)
{
	return completed(bio);
}
