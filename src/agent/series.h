// SPDX-License-Identifier: Apache-2.0
// How the load of each (disk, operation) went over time: a window's operations and I/O time in steps. A comparison of two
// windows learns from it how much equal loads differ. Sixty-four steps at most: they get longer as the window does.
#ifndef BLKPROF_AGENT_SERIES_H
#define BLKPROF_AGENT_SERIES_H

#include <stdint.h>

#include "agent/aggregate.h"

#define SERIES_STEPS 64
#define SERIES_STEP_NS 250000000ull // the shortest

struct series_steps {
	double ops[SERIES_STEPS], time_ns[SERIES_STEPS];
};

struct series {
	uint64_t start, step; // ns, CLOCK_MONOTONIC
	unsigned n;	      // steps so far
	struct series_steps *of[AGGREGATE_DISKS][OP_CLASSES]; // NULL = nothing
};

void series_start(struct series *s, uint64_t start);
void series_free(struct series *s); // what it holds
// At `at`; what was before the start belongs to the first step. Without memory a step is missing.
void series_add(struct series *s, uint16_t disk, uint8_t op, uint64_t at, double ops, double time_ns);
// Adds a series of a later time.
void series_merge(struct series *into, const struct series *from);

#endif
