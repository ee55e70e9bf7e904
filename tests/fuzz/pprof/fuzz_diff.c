// SPDX-License-Identifier: Apache-2.0
// Two profiles from anywhere compared: the first two bytes say where one ends and the other begins.
#include <stddef.h>
#include <stdint.h>

#include "pprof/decode.h"
#include "pprof/diff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct pprof_reader *read_one(const uint8_t *data, size_t len)
{
	const struct pprof_limits limits = { .message = 1 << 20, .memory = 16 << 20, .frames = 1 << 16 };
	const struct pprof_source source = { .fd = -1, .data = data, .len = len };
	struct pprof_reader *r = pprof_reader_new(&limits);

	if (r && pprof_reader_add(r, &source, NULL)) {
		pprof_reader_free(r);
		return NULL;
	}
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct diff_options o = { .memory = 16 << 20 };
	struct pprof_reader *base, *incident;
	const struct profile *b, *i;
	struct buf out = { 0 };
	struct diff *d;
	size_t first;

	if (len < 2)
		return 0;
	first = (size_t)data[0] << 8 | data[1];
	if (first > len - 2)
		first = (len - 2) / 2;
	base = read_one(data + 2, first);
	incident = read_one(data + 2 + first, len - 2 - first);
	if (base && incident) {
		b = pprof_reader_finish(base);
		i = pprof_reader_finish(incident);
		if (!diff_new(b, i, &o, &d, NULL)) {
			diff_print(d, 5, &out);
			diff_json(d, 5, &out);
			diff_free(d);
		}
		diff_profile(b, i, &out, NULL);
		buf_free(&out);
	}
	pprof_reader_free(base);
	pprof_reader_free(incident);
	return 0;
}
