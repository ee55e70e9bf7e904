// SPDX-License-Identifier: Apache-2.0
// The kernel side's walk over user stacks, compiled as user code: whoever includes this fills the memory that the walk
// reads. A walk records at most RECORD_FRAMES frames, as bpf/stack.bpf.h does.
#ifndef BLKPROF_TESTS_BPF_UNWIND_USER_H
#define BLKPROF_TESTS_BPF_UNWIND_USER_H

#include <stdbool.h>

#include "bpf/record_rec.h"
#include "bpf/unwind_rec.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define barrier_var(v) __asm__("" : "+r"(v))

static struct {
	u32 *(*words)(u32 place);
	const struct unwind_rule *rules;
	long (*read)(void *out, u32 size, u64 address);
} unwind_user;

static u32 *unwind_words(u32 place)
{
	return unwind_user.words(place);
}

static const struct unwind_rule *unwind_rule_at(u32 id)
{
	return id < UNWIND_RULES ? &unwind_user.rules[id] : 0;
}

static long unwind_read(void *out, u32 size, u64 address)
{
	return unwind_user.read(out, size, address);
}

#include "bpf/unwind.bpf.h"

struct unwind_user_stack {
	unsigned n;
	bool truncated;
	u64 frames[RECORD_FRAMES];
};

static inline void unwind_user_walk(struct unwind_walk *w, struct unwind_user_stack *s)
{
	s->n = 0;
	s->truncated = false;
	do {
		if (s->n == RECORD_FRAMES) {
			s->truncated = true;
			return;
		}
		s->frames[s->n] = w->ip + (s->n && w->exact);
		s->n++;
	} while (unwind_frame(w) == UNWIND_ON);
}

#endif
