/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Which bio gets a stack, and for how many it stands. Each bio is taken with a probability p that is known before it
 * arrives and weighs 1/p. The gap to the next sample is geometric, so it has no memory and may be drawn anew whenever p
 * changes: when the tick (a jiffy, or some) has moved on, p comes from the bios of the tick just before, and within a tick p
 * halves after every `target` samples. A stratum that was quiet takes every bio. What it did not take of its target in
 * quiet ticks it saves, up to SAMPLER_SAVED_TICKS' worth, and spends a quarter of it a tick: without that a load of short
 * bursts between pauses has so few samples that its shares are off by some percent after 20 s. What it took beyond its
 * target it owes: p halves only after the target is reached, so a busy stratum would take half as many again.
 * Pure: compiled for BPF and for user space, where tests/unit/agent/test_sampler.c holds it against the model. */
#ifndef BLKPROF_BPF_SAMPLER_H
#define BLKPROF_BPF_SAMPLER_H

#include "bpf/record_rec.h"

#define SAMPLER_INLINE static inline __attribute__((always_inline))
#define SAMPLER_SAVED_TICKS 250
#define SAMPLER_DEBT_TICKS 8
#define SAMPLER_WEIGHT_MAX (1u << 28) /* a million bios in 24.8 */
#define SAMPLER_TABLE_END (8 * RECORD_WEIGHT_ONE)
#define SAMPLER_STEP (RECORD_WEIGHT_ONE / 4)

/* -1 / ln(1 - 1/w) in 16.16 for w = 1.25, 1.5 … 8: the scale of the exponential whose floor is geometric with mean w - 1. */
static const u32 sampler_scale_small[28] = {
	40720,	59653,	77347,	94548,	111496, 128294, 144996, 161632, 178220, 194774, 211301, 227807, 244297, 260773,
	277238, 293694, 310143, 326585, 343021, 359453, 375880, 392304, 408725, 425142, 441558, 457971, 474382, 490791,
};

/* log2(1 + i/64) in 16.16. */
static const u32 sampler_log2[65] = {
	0, 1466, 2909, 4331, 5732, 7112, 8473, 9814, 11136, 12440, 13727, 14996, 16248,
	17484, 18704, 19909, 21098, 22272, 23433, 24579, 25711, 26830, 27936, 29029, 30109, 31178,
	32234, 33279, 34312, 35334, 36346, 37346, 38336, 39316, 40286, 41246, 42196, 43137, 44068,
	44990, 45904, 46809, 47705, 48593, 49472, 50344, 51207, 52063, 52911, 53751, 54584, 55410,
	56229, 57040, 57845, 58643, 59434, 60219, 60997, 61769, 62534, 63294, 64047, 64794, 65536,
};

/* The nearest weight that the draw below realises exactly: quarters up to 8, rounded up. */
SAMPLER_INLINE u32 sampler_weight(u64 weight)
{
	if (weight <= RECORD_WEIGHT_ONE)
		return RECORD_WEIGHT_ONE;
	if (weight > SAMPLER_WEIGHT_MAX)
		return SAMPLER_WEIGHT_MAX;
	if (weight < SAMPLER_TABLE_END)
		return (weight + SAMPLER_STEP - 1) & ~(u64)(SAMPLER_STEP - 1);
	return weight;
}

/* -ln((r + 1) / 2^32) in 16.16. A coarser logarithm (a line or a parabola between powers of two) still has the right
 * mean, but makes the bio behind a sample up to a tenth likelier than the others. */
SAMPLER_INLINE u32 sampler_exponential(u32 random)
{
	u64 x = (u64)random + 1, log2;
	u32 e = 0, mantissa, i;

	/* Position of the highest bit without clz, which BPF does not have. */
	if (x >> 32)
		return 0;
	if (x >> 16)
		e += 16;
	if ((x >> e) >> 8)
		e += 8;
	if ((x >> e) >> 4)
		e += 4;
	if ((x >> e) >> 2)
		e += 2;
	if ((x >> e) >> 1)
		e += 1;
	mantissa = (u32)(x << (32 - e));
	i = (mantissa >> 26) & 63;
	log2 = ((u64)e << 16) + sampler_log2[i] +
	       (((u64)(sampler_log2[i + 1] - sampler_log2[i]) * ((mantissa >> 10) & 0xffff)) >> 16);
	return (((32ull << 16) - log2) * 45426) >> 16; /* ln 2 in 16.16 */
}

SAMPLER_INLINE u32 sampler_gap(u32 weight, u32 random)
{
	u64 scale, gap;

	if (weight <= RECORD_WEIGHT_ONE)
		return 1;
	if (weight <= SAMPLER_TABLE_END) {
		u32 i = weight / SAMPLER_STEP - 5;

		scale = sampler_scale_small[i < 28 ? i : 27];
	} else {
		/* w - 1/2 - 1/(12 w), right to 1/(24 w^2). */
		scale = ((u64)weight << 8) - 32768 - (1398101u / weight);
	}
	gap = 1 + ((scale * sampler_exponential(random)) >> 32);
	return gap > 0xffffffffu ? 0xffffffffu : gap;
}

/* A tick has begun: p from the ticks before it. target: samples per tick in the long run. */
SAMPLER_INLINE void sampler_tick(struct stratum *s, u64 tick, u32 target, u32 random)
{
	u64 passed = tick - s->tick, last = passed == 1 ? s->count : 0;
	s64 saved, most = (s64)SAMPLER_SAVED_TICKS * target, share;

	if (passed > SAMPLER_SAVED_TICKS)
		passed = SAMPLER_SAVED_TICKS;
	saved = s->saved + (s64)(passed * target) - s->taken;
	if (saved > most)
		saved = most;
	if (saved < -(s64)SAMPLER_DEBT_TICKS * target)
		saved = -(s64)SAMPLER_DEBT_TICKS * target;
	share = target + (saved >> 2);
	s->saved = saved;
	s->target = share < 1 ? 1 : share;
	s->weight = sampler_weight(last * RECORD_WEIGHT_ONE / s->target);
	s->tick = tick;
	s->count = 0;
	s->taken = 0;
	s->gap = sampler_gap(s->weight, random);
}

/* After a sample was taken with the weight that the stratum had. */
SAMPLER_INLINE void sampler_taken(struct stratum *s, u32 random)
{
	s->taken++;
	if (s->taken % s->target == 0)
		s->weight = sampler_weight((u64)s->weight * 2);
	s->gap = sampler_gap(s->weight, random);
}

#endif
