// SPDX-License-Identifier: Apache-2.0
// Plays the events of one device of a stream at their times: through aio, or synchronously on a device that completes
// while it is asked.
#ifndef LOAD_PLAYER_H
#define LOAD_PLAYER_H

#include <stdint.h>

#include "common/error.h"
#include "streams.h"
#include "target.h"
#include "truth.h"

struct player_options {
	const char *load;
	uint64_t duration_ns; // real time
	double scale;	      // of the rates: 0.5 stretches the load to twice its time
	uint64_t seed;
	unsigned device; // whose events are played
	const struct target *target;
	int cpu;	   // to run on, or -1
	uint64_t start_ns; // CLOCK_MONOTONIC
};

struct performance {
	struct truth stacks[STREAM_STACKS];
	uint64_t events;
	uint64_t lag_max_ns;   // of a submission behind its time
	uint64_t submitted_ns; // when the last one was submitted
	uint64_t planned_ns;   // when it was due
};

int player_run(const struct player_options *o, struct performance *ret, struct error *e);

#endif
