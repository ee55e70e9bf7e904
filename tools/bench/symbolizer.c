// SPDX-License-Identifier: Apache-2.0
// symbolizer FILE < ADDRESSES: names virtual addresses, one a line in hexadecimal, as tools/bench/symbolize compares.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "symbolize/symbolize.h"

static int run(struct sym_module *m, const struct elf_file *layout)
{
	struct sym_line lines[SYM_LINES_MAX];
	char text[64];

	while (fgets(text, sizeof(text), stdin)) {
		uint64_t offset = UINT64_MAX;
		unsigned n;

		elf_file_offset(layout, strtoull(text, NULL, 16), &offset);
		n = sym_module_lookup(m, offset, lines);
		puts(lines[n - 1].system_name ? lines[n - 1].system_name : lines[n - 1].name);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, status = 1;
	struct symbolizer *s = symbolizer_new(NULL);
	struct sym_module *m = s && fd >= 0 ? symbolizer_module(s, fd, argv[1], NULL) : NULL;
	struct elf_file layout;
	struct error e;

	if (!m)
		fprintf(stderr, "usage: symbolizer FILE < ADDRESSES\n");
	else if (elf_file_open(&layout, fd, &e))
		fprintf(stderr, "%s: %s\n", argv[1], e.text);
	else
		status = run(m, &layout);
	if (m)
		elf_file_close(&layout);
	symbolizer_free(s);
	return status;
}
