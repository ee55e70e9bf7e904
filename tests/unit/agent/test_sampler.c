// SPDX-License-Identifier: Apache-2.0
// The draw of the sampler: its mean, its distribution, its bounds.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bpf/sampler.h"

static uint64_t random_state = 1;

static uint32_t random_u32(void)
{
	uint64_t z = (random_state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (uint32_t)(z >> 32);
}

static void exponential_follows_the_logarithm(void **state)
{
	for (unsigned i = 0; i < 100000; i++) {
		uint32_t r = random_u32();
		double exact = -log(((double)r + 1) / 4294967296.0), got = sampler_exponential(r) / 65536.0;

		assert_true(fabs(exact - got) < 0.0002);
	}
	assert_int_equal(sampler_exponential(UINT32_MAX), 0);
	assert_true(fabs(sampler_exponential(0) / 65536.0 - 32 * log(2)) < 0.01);
}

static void gap_is_geometric(void **state)
{
	static const double weights[] = { 1, 1.25, 1.5, 2, 3.75, 8, 8.5, 10, 100, 5000 };

	for (unsigned w = 0; w < sizeof(weights) / sizeof(*weights); w++) {
		uint32_t weight = (uint32_t)(weights[w] * RECORD_WEIGHT_ONE);
		unsigned n = 2000000, ones = 0;
		double sum = 0, p = 1 / weights[w];

		for (unsigned i = 0; i < n; i++) {
			uint32_t gap = sampler_gap(weight, random_u32());

			assert_true(gap >= 1);
			sum += gap;
			ones += gap == 1;
		}
		// four standard errors beside the approximation of the logarithm
		assert_true(fabs(sum / n / weights[w] - 1) < 0.001 + 4 / sqrt(n));
		assert_true(fabs((double)ones / n - p) < 0.01 * p + 4 * sqrt(p / n));
	}
}

static void weights_stay_in_bounds(void **state)
{
	assert_int_equal(sampler_weight(0), RECORD_WEIGHT_ONE);
	assert_int_equal(sampler_weight(RECORD_WEIGHT_ONE + 1), RECORD_WEIGHT_ONE * 5 / 4);
	assert_int_equal(sampler_weight(RECORD_WEIGHT_ONE * 8), RECORD_WEIGHT_ONE * 8);
	assert_int_equal(sampler_weight(UINT64_MAX), SAMPLER_WEIGHT_MAX);
	for (uint64_t w = 1; w < SAMPLER_WEIGHT_MAX; w += 1 + w / 7)
		assert_true(sampler_gap(sampler_weight(w), random_u32()) >= 1);
}

static void quiet_takes_every_bio(void **state)
{
	struct stratum s = { 0 };

	for (uint64_t tick = 1000; tick < 2000; tick++) {
		sampler_tick(&s, tick, 4, random_u32());
		for (unsigned i = 0; i < 3; i++) {
			s.count++;
			assert_int_equal(--s.gap, 0);
			assert_int_equal(s.weight, RECORD_WEIGHT_ONE);
			sampler_taken(&s, random_u32());
		}
	}
}

// 100,000 bios a second for ten seconds: about the target, once what was saved is spent.
static void flood_takes_the_target(void **state)
{
	struct stratum s = { 0 };
	unsigned taken = 0;

	for (uint64_t tick = 1000; tick < 3500; tick++) {
		sampler_tick(&s, tick, 4, random_u32());
		for (unsigned i = 0; i < 400; i++) {
			s.count++;
			if (--s.gap)
				continue;
			taken += tick >= 1250;
			sampler_taken(&s, random_u32());
		}
	}
	assert_in_range(taken, 2250 * 3, 2250 * 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exponential_follows_the_logarithm), cmocka_unit_test(gap_is_geometric),
		cmocka_unit_test(weights_stay_in_bounds),	     cmocka_unit_test(quiet_takes_every_bio),
		cmocka_unit_test(flood_takes_the_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
