// SPDX-License-Identifier: Apache-2.0
// Declarations of plugins: what is taken has metrics that are the plugin's own.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/request_plugins.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error e = { "" };
	char *copy = malloc(size ? size : 1);
	int err;

	memcpy(copy, data, size);
	err = request_plugins_check("x", copy, size, &e);
	if (err && !*e.text)
		abort();
	if (!err && !memmem(copy, size, "x_", 2))
		abort();
	free(copy);
	return 0;
}
