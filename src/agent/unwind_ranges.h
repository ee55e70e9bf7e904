// SPDX-License-Identifier: Apache-2.0
// Which of a process's mappings shows where: they are known in order of appearance, and the newest hides what was there
// before. Pure.
#ifndef BLKPROF_AGENT_UNWIND_RANGES_H
#define BLKPROF_AGENT_UNWIND_RANGES_H

#include <stdint.h>

struct unwind_range {
	uint64_t start, limit;
	unsigned source; // of the caller's
};

struct unwind_ranges {
	struct unwind_range *items; // by start, never overlapping; owned
	unsigned n, max, capacity;
};

// Adds what of [start, limit) is not covered yet: call with the newest mapping first. -ENOSPC beyond max, -ENOMEM.
int unwind_ranges_add(struct unwind_ranges *r, uint64_t start, uint64_t limit, unsigned source);

#endif
