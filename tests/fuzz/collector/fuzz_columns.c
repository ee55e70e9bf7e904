// SPDX-License-Identifier: Apache-2.0
// Blobs of a store, which may be damaged: columns, notes, sources. What can be read is written and read again alike.
#include <stdlib.h>
#include <string.h>

#include "collector/store_columns.h"
#include "collector/store_notes.h"
#include "collector/store_sources.h"

static void columns(const uint8_t *data, size_t len)
{
	struct unpacker *u = unpacker_new(), *again = unpacker_new();
	struct packer *p = packer_new();
	struct sums s = { 0 };
	struct columns c, d;
	const void *packed;
	size_t packed_len;

	if (!columns_unpack(u, data, len, &c) && c.n < 100000) {
		for (size_t i = 0; i < c.n; i++) {
			int64_t v[PPROF_TYPES];

			for (unsigned k = 0; k < PPROF_TYPES; k++)
				v[k] = c.value[k] ? c.value[k][i] : 0;
			if (sums_add(&s, (struct row_id){ c.stack[i], c.labels[i], c.pid ? c.pid[i] : 0 }, v))
				abort();
		}
		sums_sort(&s);
		if (columns_pack(p, &s, &packed, &packed_len) || columns_unpack(again, packed, packed_len, &d) || d.n != s.n)
			abort();
		for (size_t i = 0; i < d.n; i++) {
			if (d.stack[i] != s.sum[i].id.stack || d.labels[i] != s.sum[i].id.labels || (d.pid ? d.pid[i] : 0) != s.sum[i].id.pid)
				abort();
			for (unsigned k = 0; k < PPROF_TYPES; k++)
				if ((d.value[k] ? d.value[k][i] : 0) != s.sum[i].value[k])
					abort();
		}
	}
	sums_free(&s);
	packer_free(p);
	unpacker_free(u);
	unpacker_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct notes notes = { 0 };
	struct sources sources = { 0 };
	struct intervals when = { 0 };

	if (!size)
		return 0;
	switch (data[0] % 3) {
	case 0: columns(data + 1, size - 1); break;
	case 1: notes_unpack(data + 1, size - 1, &notes, 0); break;
	case 2: sources_unpack(data + 1, size - 1, &sources, &when); break;
	}
	notes_free(&notes);
	sources_free(&sources);
	intervals_free(&when);
	return 0;
}
