// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/symbolize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct symbolizer *s = symbolizer_new(NULL);
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	const char *module, *name;
	char path[64];
	uint64_t start, address;

	if (!s || fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	symbolizer_load_kernel(s, path);
	close(fd);
	for (size_t i = 0; i < 64; i++) {
		address = 0xffffffff81000000 + i * 16;
		if (i * 8 + 8 <= len)
			memcpy(&address, data + i * 8, 8);
		name = symbolizer_kernel(s, address, &module, &start);
		if (name && (!*name || start > address || (module && !*module)))
			abort();
	}
	symbolizer_free(s);
	return 0;
}
