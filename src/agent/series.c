// SPDX-License-Identifier: Apache-2.0
#include "agent/series.h"

#include <stdlib.h>
#include <string.h>

void series_start(struct series *s, uint64_t start)
{
	s->start = start;
	s->step = SERIES_STEP_NS;
}

void series_free(struct series *s)
{
	for (unsigned disk = 0; disk < AGGREGATE_DISKS; disk++) {
		for (unsigned op = 0; op < OP_CLASSES; op++) {
			free(s->of[disk][op]);
			s->of[disk][op] = NULL;
		}
	}
}

static void halve(double v[SERIES_STEPS])
{
	for (unsigned i = 0; i < SERIES_STEPS / 2; i++)
		v[i] = v[2 * i] + v[2 * i + 1];
	memset(v + SERIES_STEPS / 2, 0, SERIES_STEPS / 2 * sizeof(*v));
}

static void lengthen(struct series *s)
{
	for (unsigned disk = 0; disk < AGGREGATE_DISKS; disk++) {
		for (unsigned op = 0; op < OP_CLASSES; op++) {
			if (!s->of[disk][op])
				continue;
			halve(s->of[disk][op]->ops);
			halve(s->of[disk][op]->time_ns);
		}
	}
	s->step *= 2;
	s->n = (s->n + 1) / 2;
}

void series_add(struct series *s, uint16_t disk, uint8_t op, uint64_t at, double ops, double time_ns)
{
	struct series_steps **of;
	uint64_t i;

	if (disk >= AGGREGATE_DISKS || op >= OP_CLASSES || !s->step)
		return;
	while ((i = at > s->start ? (at - s->start) / s->step : 0) >= SERIES_STEPS)
		lengthen(s);
	of = &s->of[disk][op];
	if (!*of)
		*of = calloc(1, sizeof(**of));
	if (!*of)
		return;
	if (s->n <= i)
		s->n = (unsigned)i + 1;
	(*of)->ops[i] += ops;
	(*of)->time_ns[i] += time_ns;
}

void series_merge(struct series *into, const struct series *from)
{
	for (uint16_t disk = 0; disk < AGGREGATE_DISKS; disk++) {
		for (uint8_t op = 0; op < OP_CLASSES; op++) {
			const struct series_steps *of = from->of[disk][op];

			for (unsigned i = 0; of && i < from->n; i++)
				series_add(into, disk, op, from->start + i * from->step + from->step / 2, of->ops[i], of->time_ns[i]);
		}
	}
}
