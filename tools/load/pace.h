// SPDX-License-Identifier: Apache-2.0
#ifndef LOAD_PACE_H
#define LOAD_PACE_H

#include <stdint.h>
#include <time.h>

#include "common/clock.h"

enum {
	PACE_SPIN_NS = 60000, // a sleep may come back this late
};

// Returns at `due` (CLOCK_MONOTONIC) or at once when that is past: sleeps the most of it, spins the rest.
static inline void pace_until(uint64_t due)
{
	uint64_t now = clock_monotonic();

	if (due > now + PACE_SPIN_NS) {
		uint64_t wake = due - PACE_SPIN_NS;
		struct timespec t = {(time_t)(wake / 1000000000u), (long)(wake % 1000000000u)};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	}
	while (clock_monotonic() < due)
		;
}

#endif
