// SPDX-License-Identifier: Apache-2.0
// CPU time that a hostile file may cost, looked at once in a while.
#ifndef BLKPROF_UNWIND_BUDGET_H
#define BLKPROF_UNWIND_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

#define BUDGET_STRIDE 65536

struct budget {
	uint64_t end; // of this thread's CPU clock
	uint32_t spent;
	bool over;
};

static inline struct budget budget_of(uint64_t cpu_ns)
{
	uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	return (struct budget){ .end = now + cpu_ns < now ? UINT64_MAX : now + cpu_ns };
}

// `units` more steps of work, each some nanoseconds. False when the time is up, from then on always.
static inline bool budget_spend(struct budget *b, uint32_t units)
{
	b->spent += units;
	if (b->spent < BUDGET_STRIDE)
		return !b->over;
	b->spent = 0;
	if (clock_ns(CLOCK_THREAD_CPUTIME_ID) > b->end)
		b->over = true;
	return !b->over;
}

#endif
