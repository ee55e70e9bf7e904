// SPDX-License-Identifier: Apache-2.0
// unwind_dump FILE: the table of a file, one row a line: address, CFA kind, offset, what is added, rbp kind, offset.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "unwind/unwind.h"

int main(int argc, char **argv)
{
	struct unwind_table *t;
	struct error e = { "" };
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || unwind_compile(fd, NULL, &t, &e)) {
		fprintf(stderr, "%s: %s\n", argc == 2 ? argv[1] : "usage: unwind_dump FILE", e.text);
		return 1;
	}
	close(fd);
	for (unsigned i = 0; i < t->n_rows; i++) {
		const struct unwind_rule *r = unwind_find(t, t->base + t->rows[i].pc);

		printf("%" PRIx64 " %u %d %d %u %d\n", t->base + t->rows[i].pc, r->cfa, r->cfa_offset, r->cfa_add, r->rbp,
		       r->rbp_offset);
	}
	printf("# %u rows, %u rules, %u unsupported\n", t->n_rows, t->n_rules, t->n_unsupported);
	unwind_table_free(t);
	return 0;
}
