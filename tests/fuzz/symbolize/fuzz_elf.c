// SPDX-License-Identifier: Apache-2.0
// An ELF file of anybody's making: every look-up gives a name.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/text.h"
#include "symbolize/symbolize.h"

#define PROBES 24

static void look(struct sym_module *m, uint64_t offset)
{
	struct sym_line lines[SYM_LINES_MAX];
	uint64_t start, size;
	unsigned n = sym_module_lookup(m, offset, lines);

	if (!n || n > SYM_LINES_MAX)
		abort();
	for (unsigned i = 0; i < n; i++)
		if (!lines[i].name || !*lines[i].name || !text_is_utf8(lines[i].name, strlen(lines[i].name)))
			abort();
	if (sym_module_function(m, offset, &start, &size) && !size)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct symbolizer_options options = { .memory = 1 << 20 };
	struct symbolizer *s = symbolizer_new(&options);
	int fd = memfd_create("elf", MFD_CLOEXEC);
	struct sym_module *m;
	uint64_t offset;

	if (!s || fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	m = symbolizer_module(s, fd, "/lib/libfoo.so.1", NULL);
	close(fd);
	for (size_t i = 0; i < PROBES; i++)
		look(m, len * i / PROBES);
	for (size_t i = 0; i < PROBES && i * 8 + 8 <= len; i++) {
		memcpy(&offset, data + i * 8, 8);
		look(m, offset);
	}
	symbolizer_free(s);
	return 0;
}
