// SPDX-License-Identifier: Apache-2.0
// A thread's name is whatever its program says; a stem is bounded, valid and stays what it is.
#include <stdlib.h>
#include <string.h>

#include "agent/service.h"
#include "common/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1), stem[64], kind[64];

	if (!name)
		return 0;
	memcpy(name, data, size);
	name[size] = 0;
	thread_stem(name, stem, sizeof(stem));
	kernel_thread_kind(name, kind, sizeof(kind));
	if (!text_is_utf8(stem, strlen(stem)) || !text_is_utf8(kind, strlen(kind)))
		abort();
	if (size && *name && (!*stem || !*kind))
		abort();
	free(name);
	return 0;
}
