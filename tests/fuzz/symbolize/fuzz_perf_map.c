// SPDX-License-Identifier: Apache-2.0
// A perf map that arrives in pieces; the first byte says how large they are.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "symbolize/perf_map.h"

static void look_up(struct perf_map *m, uint64_t address)
{
	char out[64];
	struct perf_symbol s;

	if (!perf_map_find(m, address, &s))
		return;
	if (address < s.start || address - s.start >= s.size || !text_is_utf8(s.name, strlen(s.name)))
		abort();
	perf_map_display(s.name, out, sizeof(out));
	if (!memchr(out, 0, sizeof(out)) || !text_is_utf8(out, strlen(out)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct perf_map *m = perf_map_new(16 << 10);
	size_t piece, taken = 0;

	if (!m)
		abort();
	if (len < 1) {
		perf_map_free(m);
		return 0;
	}
	piece = data[0] + 1u;
	data++;
	len--;
	for (size_t end = piece; taken < len; end += piece) {
		if (end > len)
			end = len;
		taken += perf_map_add(m, (const char *)data + taken, end - taken);
		look_up(m, 0x1000);
		look_up(m, end * 16);
		look_up(m, UINT64_MAX);
		if (end == len)
			break;
	}
	if (perf_map_memory(m) > (16 << 10) + 4096)
		abort();
	perf_map_free(m);
	return 0;
}
