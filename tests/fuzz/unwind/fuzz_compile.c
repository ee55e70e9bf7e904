// SPDX-License-Identifier: Apache-2.0
// An ELF file of anybody's making: a table that keeps its promises, or an error that says why.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/unwind.h"

static void look(const struct unwind_table *t)
{
	static const struct unwind_rule none;

	if (!t->n_rules || memcmp(&t->rules[0], &none, sizeof(none)))
		abort();
	for (unsigned i = 0; i < t->n_rows; i++) {
		const struct unwind_row *row = &t->rows[i];

		if (row->rule >= t->n_rules || (i && (row->pc <= row[-1].pc || row->rule == row[-1].rule)))
			abort();
		if (unwind_find(t, t->base + row->pc) != &t->rules[row->rule])
			abort();
	}
	for (unsigned i = 0; i < t->n_rules; i++)
		if (t->rules[i].cfa > UNWIND_CFA_SIGNAL || t->rules[i].rbp > UNWIND_RBP_UNKNOWN)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct unwind_limits limits = { .cfi = 1 << 20, .rows = 100000, .cpu_ns = 5000000000 };
	struct unwind_table *t = NULL;
	struct error e = { "" };
	int fd = memfd_create("elf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	if (!unwind_compile(fd, &limits, &t, &e))
		look(t);
	else if (t || !e.text[0])
		abort();
	unwind_table_free(t);
	close(fd);
	return 0;
}
