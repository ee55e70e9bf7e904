// SPDX-License-Identifier: Apache-2.0
// The function table that every Go program carries for its own tracebacks, also when it is stripped (Go 1.16 and later).
// Read in place: look-ups cost a few reads and no memory.
#ifndef BLKPROF_SYMBOLIZE_GOPCLN_H
#define BLKPROF_SYMBOLIZE_GOPCLN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_file.h"

struct go_table {
	uint64_t count;		       // functions; 0 = no table
	uint64_t text;		       // address that entries are relative to
	uint64_t names, names_end;     // file offsets
	uint64_t functions, end;       // file offsets of the sorted table and of the section's end
	unsigned width;		       // of a field of the table
	bool relative;		       // to text, since Go 1.18
};

struct go_function {
	uint64_t start, size; // virtual addresses
	uint64_t name;	      // file offset
};

void go_table_open(struct go_table *t, const struct elf_file *f);
bool go_table_find(const struct go_table *t, const struct elf_file *f, uint64_t address, struct go_function *ret);
size_t go_table_name(const struct go_table *t, const struct elf_file *f, const struct go_function *function, char *out,
		     size_t cap);

#endif
