// SPDX-License-Identifier: Apache-2.0
// An ELF file of anybody's making: places of probes are in it.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "elf/usdt.h"

#define PLACES 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *image = malloc(len ? len : 1);
	uint64_t places[PLACES];
	struct elf_file f;
	struct error e;
	unsigned n;

	if (!image)
		abort();
	memcpy(image, data, len);
	if (!elf_file_open_image(&f, image, len, &e)) {
		n = usdt_find(&f, "hotspot", "gc__begin", places, PLACES);
		if (n > PLACES)
			abort();
		for (unsigned i = 0; i < n; i++)
			if (places[i] >= len)
				abort();
	}
	elf_file_close(&f);
	return 0;
}
