// SPDX-License-Identifier: Apache-2.0
// The FDEs of a file in order of address, before their programs are run.
#ifndef BLKPROF_UNWIND_FUNCTIONS_H
#define BLKPROF_UNWIND_FUNCTIONS_H

#include "elf/elf_file.h"
#include "unwind/cfi_section.h"

struct function {
	uint32_t start, size; // relative to the base of the table
	uint32_t offset : 31; // in its section
	uint32_t debug_frame : 1;
};

struct functions {
	struct function *item; // owned
	size_t n, room;
	unsigned n_unusable;
};

// Adds the FDEs of a section that lie in an executable segment.
int functions_collect(struct functions *fs, const struct elf_file *f, uint64_t base, struct cfi_section *s,
		      struct budget *budget, struct error *e);
void functions_sort(struct functions *fs);
void functions_free(struct functions *fs);

#endif
