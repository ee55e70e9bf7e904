// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "request/thread_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(void *context, uint32_t nid, const char *name, size_t len)
{
	if (!nid || !len || memchr(name, '\n', len))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);

	memcpy(copy, data, size);
	thread_dump_parse(copy, size, 50, check, NULL);
	free(copy);
	return 0;
}
