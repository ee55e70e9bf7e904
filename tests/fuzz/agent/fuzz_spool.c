// SPDX-License-Identifier: Apache-2.0
// A file of the spool and its name. The first byte says whether the checksums are made right, so that what is behind them
// is reached too.
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "agent/spool_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void seal(uint8_t *file, size_t size)
{
	uint32_t crc;

	if (size < SPOOL_HEADER)
		return;
	crc = htole32((uint32_t)crc32(crc32(0, NULL, 0), file + SPOOL_HEADER, (uInt)(size - SPOOL_HEADER)));
	memcpy(file + SPOOL_HEADER - 8, &crc, 4);
	crc = htole32((uint32_t)crc32(crc32(0, NULL, 0), file, SPOOL_HEADER - 4));
	memcpy(file + SPOOL_HEADER - 4, &crc, 4);
}

static void parse_file(const uint8_t *data, size_t size)
{
	uint8_t again[SPOOL_HEADER];
	const uint8_t *payload = NULL;
	struct spool_file f, second;
	struct error e = { "" };

	if (spool_file_decode(data, size, &f, &payload, &e)) {
		if (!*e.text)
			abort();
		return;
	}
	if (payload != data + SPOOL_HEADER || f.size != size - SPOOL_HEADER || !batch_node_valid(f.node))
		abort();
	spool_header_encode(&f, payload, again);
	if (spool_header_decode(again, sizeof(again), &second, NULL) || second.sequence != f.sequence || second.end != f.end)
		abort();
}

static void parse_name(const uint8_t *data, size_t size)
{
	char name[SPOOL_NAME_MAX + 8] = "", again[SPOOL_NAME_MAX];
	uint64_t order, sequence;
	uint8_t instance[16];
	int temporary;

	memcpy(name, data, size < sizeof(name) - 1 ? size : sizeof(name) - 1);
	if (spool_name_parse(name, &order, instance, &sequence, &temporary))
		return;
	spool_name_format(again, order, instance, sequence);
	if (strncmp(name, again, strlen(again)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (!size)
		return 0;
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	if (*data & 1)
		seal(copy, size - 1);
	parse_file(copy, size - 1);
	parse_name(copy, size - 1);
	free(copy);
	return 0;
}
