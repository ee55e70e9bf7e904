/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Stacks: walked into per-CPU scratch, known by a 64-bit hash of their frames, sent to user space once. Included by
 * core.bpf.h. */
#ifndef BLKPROF_BPF_STACK_H
#define BLKPROF_BPF_STACK_H

#include "bpf/unwind_maps.bpf.h"

#define TOP_WORDS 24 /* of the user stack, searched for the caller that a frame-pointer walk skips */

/* Each has scratch of its own: a sample's interrupt may hit a submission. */
enum stack_context {
	STACK_OF_BIO = 0,
	STACK_OF_CLOCK = 1,
	STACK_OF_SUBMITTER = 2,
	STACK_OF_SWITCH = 3, /* of the timeline */
	STACK_CONTEXTS = 4,
};

struct stack_scratch {
	struct stack_rec rec;
	u64 walk[RECORD_FRAMES];
	u64 top[TOP_WORDS];
	u64 tried; /* of them that look like code */
	struct unwind_walk unwind;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STACK_CONTEXTS);
	__type(key, u32);
	__type(value, struct stack_scratch);
} scratch SEC(".maps");

static __always_inline struct cpu_state *this_cpu(void);
static __always_inline void lose(struct cpu_state *cpu, enum loss_cause cause);
static __always_inline u64 wakeup(void);

#define FRAME_BYTES (RECORD_FRAMES * sizeof(u64))

#define STACK_HASH_SEED 0x243f6a8885a308d3ull

static __always_inline u64 mix(u64 h, u64 v)
{
	h ^= v;
	h *= 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

/* One frame into the record, and on to its caller. Verified once, not once for each turn of the loop that calls it. Returns
 * enum unwind_next. */
__noinline int unwind_step(u32 context)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &context);
	u64 frame;
	u32 n;

	if (!s)
		return UNWIND_STOP;
	n = s->rec.n_user;
	if (n >= RECORD_FRAMES) {
		s->rec.flags |= STACK_TRUNCATED_USER;
		return UNWIND_STOP;
	}
	/* User space takes one from all but the first, which are return addresses. */
	frame = s->unwind.ip + (n && s->unwind.exact);
	s->rec.frames[n] = frame;
	s->rec.n_user = n + 1;
	s->rec.hash = mix(s->rec.hash, frame);
	return unwind_frame(&s->unwind);
}

/* By the tables of the current process. False when it has none yet. */
static __noinline bool walk_by_tables(struct stack_scratch *s, u32 context)
{
	struct unwind_walk *w;
	u32 i;

	if (!s)
		return false;
	w = &s->unwind;
	if (!unwind_begin(w))
		return false;
	for (i = 0; i <= RECORD_FRAMES; i++)
		if (unwind_step(context))
			break;
	if (w->broken == UNWIND_NO_MAPPING)
		unwind_ask_again();
	return !w->pending;
}


/* Does a call instruction end at this address? E8 rel32, or FF /2 with 2, 3, 4, 6 or 7 bytes. */
static __always_inline bool follows_call(u64 address)
{
	u8 code[8] = {};

	if (bpf_probe_read_user(code, 7, (void *)(address - 7)))
		return false;
	if (code[2] == 0xe8)
		return true;
	return (code[5] == 0xff && (code[6] & 0x38) == 0x10) || (code[4] == 0xff && (code[5] & 0x38) == 0x10) ||
	       (code[3] == 0xff && (code[4] & 0x38) == 0x10) || (code[1] == 0xff && (code[2] & 0x38) == 0x10) ||
	       (code[0] == 0xff && (code[1] & 0x38) == 0x10);
}

/* libc's system-call wrappers set up no frame, so the walk by frame pointer skips whoever called them. Their return
 * address lies in the top words of the stack: at the very top, or, in a threaded program's cancellable calls and in
 * wrappers with locals, some words up, behind what earlier calls left there. Which of them called the leaf, and whether
 * the leaf is such a wrapper, is decided in user space. */
static __noinline void find_callers(struct stack_scratch *s)
{
	u64 ip = 0, sp = 0, bp = 0, word;
	u32 i, n;

	if (!s || user_registers(&ip, &sp, &bp) || bpf_probe_read_user(s->top, sizeof(s->top), (void *)sp))
		return;
	s->tried = 0;
	for (i = 0; i < TOP_WORDS; i++) {
		/* From here on the walk by frame pointer sees everything. */
		if (sp + i * 8 == bp)
			break;
		word = s->top[i];
		if (word < 0x10000 || word >> 47 || (word ^ sp) >> 24 == 0)
			continue;
		/* Both counts live in the map: as variables they would give the verifier a state for each of their values. */
		if (s->tried >= 12)
			break;
		s->tried++;
		if (!follows_call(word))
			continue;
		n = s->rec.n_callers;
		if (n >= RECORD_CALLERS)
			break;
		s->rec.frames[n] = word;
		s->rec.n_callers = n + 1;
	}
}

/* Walks one side into s->walk and appends it to the record behind `at` frames. Returns how many. */
static __always_inline u32 walk(void *ctx, struct stack_scratch *s, u32 at, u64 flags, u8 truncated)
{
	long len = bpf_get_stack(ctx, s->walk, FRAME_BYTES, flags);
	u32 n, i;

	if (len <= 0)
		return 0;
	n = (u32)len / sizeof(u64);
	if (n > RECORD_FRAMES)
		n = RECORD_FRAMES;
	if (n >= config.max_frames)
		s->rec.flags |= truncated;
	for (i = 0; i < RECORD_FRAMES; i++) {
		u32 to = at + i;

		barrier_var(to); /* or clang adds the index to an address whose bounds the verifier has from elsewhere */
		if (i >= n || to >= RECORD_CALLERS + 2 * RECORD_FRAMES)
			break;
		s->rec.frames[to] = s->walk[i];
		s->rec.hash = mix(s->rec.hash, s->walk[i]);
	}
	return n;
}

/* Where tables broke off, frame pointers may lead further: before the mappings of a new process are known, say. A leaf that
 * leads nowhere may at least have its caller found as without tables. */
static __noinline bool pointers_see_more(void *ctx, struct stack_scratch *s)
{
	long len = s ? bpf_get_stack(ctx, s->walk, FRAME_BYTES, BPF_F_USER_STACK) : 0;

	return s && (len > (long)(s->rec.n_user * sizeof(u64)) || s->rec.n_user == 1);
}

/* Walks the current task's stack, sends it when it is new, returns its hash; 0 when there is none. */
static __noinline u64 stack_take(void *ctx, struct cpu_state *cpu, u32 context, u32 kind, bool kernel)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &context);
	u32 n, i, one = 1;
	u64 hash;

	if (!s || !cpu)
		return 0;
	s->rec.type = RECORD_STACK;
	s->rec.flags = 0;
	s->rec.broken = UNWIND_WHOLE;
	s->rec.pad = 0;
	s->rec.pad2 = 0;
	s->rec.n_callers = 0;
	s->rec.n_user = 0;
	s->rec.n_kernel = 0;
	s->rec.hash = STACK_HASH_SEED;
	if (!kind && config.unwind) {
		if (walk_by_tables(s, context)) {
			s->rec.flags |= STACK_UNWOUND;
			s->rec.broken = s->unwind.broken;
			cpu->broken[s->rec.broken & (UNWIND_BREAKS - 1)]++;
		} else {
			s->rec.flags = STACK_PENDING;
			cpu->tables_pending++;
		}
	}
	if (!kind && (!(s->rec.flags & STACK_UNWOUND) || (s->rec.broken && pointers_see_more(ctx, s)))) {
		s->rec.flags &= ~STACK_UNWOUND;
		s->rec.n_user = 0;
		s->rec.hash = STACK_HASH_SEED;
		find_callers(s);
		n = s->rec.n_callers;
		for (i = 0; i < RECORD_CALLERS && i < n; i++)
			s->rec.hash = mix(s->rec.hash, s->rec.frames[i]);
		/* Read again, it may be any number: the walk is not verified once for each turn of the loop. */
		n = *(volatile u8 *)&s->rec.n_callers;
		s->rec.n_user = walk(ctx, s, n, BPF_F_USER_STACK, STACK_TRUNCATED_USER);
		if (!s->rec.n_user) {
			s->rec.flags |= STACK_UNREADABLE;
			lose(cpu, LOSS_STACK_UNREADABLE);
		}
	}
	n = s->rec.n_callers + s->rec.n_user;
	s->rec.hash = mix(s->rec.hash, n | (u32)s->rec.flags << 16 | (u32)s->rec.broken << 24);
	if (kernel)
		s->rec.n_kernel = walk(ctx, s, n, 0, STACK_TRUNCATED_KERNEL);
	if (s->rec.flags & (STACK_TRUNCATED_USER | STACK_TRUNCATED_KERNEL))
		lose(cpu, LOSS_STACK_TRUNCATED);
	hash = s->rec.hash ? s->rec.hash : 1;
	s->rec.hash = hash;
	if (bpf_map_lookup_elem(&stacks_sent, &hash))
		return hash;
	n = (n + s->rec.n_kernel) * sizeof(u64) + __builtin_offsetof(struct stack_rec, frames);
	if (n > sizeof(s->rec))
		n = sizeof(s->rec);
	if (bpf_ringbuf_output(&ring, &s->rec, n, wakeup()))
		lose(cpu, LOSS_STACK_RING_FULL);
	else
		bpf_map_update_elem(&stacks_sent, &hash, &one, BPF_ANY);
	return hash;
}

#endif
