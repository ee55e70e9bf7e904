// SPDX-License-Identifier: Apache-2.0
// A profile as a store takes it from an agent.
#include <libdeflate.h>
#include <stdlib.h>

#include "collector/store_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const struct parsed *r)
{
	for (size_t i = 0; i < r->n_samples; i++) {
		const struct parsed_sample *s = &r->samples[i];

		if (s->labels >= r->sets.n || s->first + s->n > r->n_frames)
			abort();
		for (uint32_t k = 0; k < s->n; k++)
			if (r->frames[s->first + k] >= r->t->n_locations)
				abort();
	}
	for (size_t i = 0; i < r->t->n_locations; i++)
		parsed_offset(r->t, &r->t->locations[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct hash_secret secret = { { 1, 3, 5, 7 } };
	static struct parsed r; // used again, as by the store
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(1);
	size_t room = libdeflate_gzip_compress_bound(c, len), n;
	uint8_t *gz = malloc(room);
	struct error e;

	n = gz ? libdeflate_gzip_compress(c, data, len, gz, room) : 0;
	if (n && !parsed_read(&r, &secret, gz, n, 8u << 20, (size_t)64 << 20, &e))
		check(&r);
	parsed_reuse(&r);
	libdeflate_free_compressor(c);
	free(gz);
	return 0;
}
