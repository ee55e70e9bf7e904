// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_COMMON_CLOCK_H
#define BLKPROF_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// The clock of bpf_ktime_get_ns and of every record of ours.
static inline uint64_t clock_monotonic(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t clock_realtime(void)
{
	return clock_ns(CLOCK_REALTIME);
}

#endif
