// SPDX-License-Identifier: Apache-2.0
// Runs the sampler of the kernel side (bpf/sampler.h) over a recorded stream of bios, and says for each bio with which
// weight it was taken. Standard input: "TICK STRATUM" a line; standard output: "LINE WEIGHT" of the taken ones, the line
// counted from 0, the weight a decimal fraction. Argument: the seed of the random numbers, the target per tick.
#include <stdio.h>
#include <stdlib.h>

#include "bpf/sampler.h"

static uint64_t random_state;

// splitmix64, in the place of bpf_get_prandom_u32
static uint32_t random_u32(void)
{
	uint64_t z = (random_state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (uint32_t)(z >> 32);
}

int main(int argc, char **argv)
{
	static struct stratum strata[64];
	unsigned long long tick, line = 0;
	unsigned target, s;

	if (argc != 3)
		return 2;
	random_state = strtoull(argv[1], NULL, 10);
	target = (unsigned)strtoul(argv[2], NULL, 10);
	if (!target)
		return 2;
	for (; scanf("%llu %u", &tick, &s) == 2; line++) {
		struct stratum *t = &strata[s % 64];

		if (tick != t->tick)
			sampler_tick(t, tick, target, random_u32());
		t->count++;
		if (--t->gap)
			continue;
		printf("%llu %.8f\n", line, (double)t->weight / RECORD_WEIGHT_ONE);
		sampler_taken(t, random_u32());
	}
	return ferror(stdin) != 0;
}
