// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_PPROF_UNITS_H
#define BLKPROF_PPROF_UNITS_H

#include <stdint.h>

enum unit_family {
	UNIT_OTHER, // counts and what nobody knows
	UNIT_TIME,  // in nanoseconds
	UNIT_BYTES,
};

// The family of a unit as pprof spells them (any case, plural or not), and how much of the family's smallest it is.
enum unit_family unit_parse(const char *unit, int64_t *ret_scale);

#endif
