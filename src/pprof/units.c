// SPDX-License-Identifier: Apache-2.0
#include "pprof/units.h"

#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	enum unit_family family;
	int64_t scale;
};

static const struct unit units[] = {
	{ "nanosecond", UNIT_TIME, 1 },
	{ "ns", UNIT_TIME, 1 },
	{ "microsecond", UNIT_TIME, 1000 },
	{ "us", UNIT_TIME, 1000 },
	{ "\xce\xbcs", UNIT_TIME, 1000 },
	{ "\xc2\xb5s", UNIT_TIME, 1000 },
	{ "millisecond", UNIT_TIME, 1000000 },
	{ "ms", UNIT_TIME, 1000000 },
	{ "second", UNIT_TIME, 1000000000 },
	{ "sec", UNIT_TIME, 1000000000 },
	{ "s", UNIT_TIME, 1000000000 },
	{ "hour", UNIT_TIME, 3600000000000 },
	{ "hr", UNIT_TIME, 3600000000000 },
	{ "byte", UNIT_BYTES, 1 },
	{ "b", UNIT_BYTES, 1 },
	{ "kilobyte", UNIT_BYTES, 1ll << 10 },
	{ "kbyte", UNIT_BYTES, 1ll << 10 },
	{ "kb", UNIT_BYTES, 1ll << 10 },
	{ "megabyte", UNIT_BYTES, 1ll << 20 },
	{ "mbyte", UNIT_BYTES, 1ll << 20 },
	{ "mb", UNIT_BYTES, 1ll << 20 },
	{ "gigabyte", UNIT_BYTES, 1ll << 30 },
	{ "gbyte", UNIT_BYTES, 1ll << 30 },
	{ "gb", UNIT_BYTES, 1ll << 30 },
	{ "terabyte", UNIT_BYTES, 1ll << 40 },
	{ "tb", UNIT_BYTES, 1ll << 40 },
	{ "petabyte", UNIT_BYTES, 1ll << 50 },
	{ "pb", UNIT_BYTES, 1ll << 50 },
};

enum unit_family unit_parse(const char *unit, int64_t *ret_scale)
{
	size_t len = strlen(unit);

	for (int plural = 0; plural < 2; plural++) {
		for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
			if (strlen(units[i].name) == len && !strncasecmp(units[i].name, unit, len)) {
				*ret_scale = units[i].scale;
				return units[i].family;
			}
		if (len < 3 || (unit[len - 1] != 's' && unit[len - 1] != 'S'))
			break;
		len--;
	}
	*ret_scale = 1;
	return UNIT_OTHER;
}
