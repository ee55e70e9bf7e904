// SPDX-License-Identifier: Apache-2.0
// Names of the stubs in a procedure linkage table.
#ifndef BLKPROF_SYMBOLIZE_PLT_H
#define BLKPROF_SYMBOLIZE_PLT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_file.h"

struct plt_stub {
	uint64_t start, size; // virtual addresses
};

// Whether a virtual address lies in a linkage table, and in which stub.
bool plt_find(const struct elf_file *f, uint64_t address, struct plt_stub *ret);
// The name of the function that a stub jumps to; its length, 0 when it is unknown.
size_t plt_target(const struct elf_file *f, const struct plt_stub *stub, char *out, size_t cap);

#endif
