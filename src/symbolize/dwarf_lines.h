// SPDX-License-Identifier: Apache-2.0
// Source lines and inlined calls, by libdw. libdw is not made for hostile files: it only gets files that root or this
// user has written on the host (file_trusted), and none whose debug information is larger than the memory allows.
#ifndef BLKPROF_SYMBOLIZE_DWARF_LINES_H
#define BLKPROF_SYMBOLIZE_DWARF_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_file.h"

struct dwarf_lines;

struct dwarf_line {
	const char *name; // linkage name, or the plain one; NULL for the containing function of a file without names
	const char *file; // owned by the table
	int64_t line;
};

bool dwarf_lines_present(const struct elf_file *f);
// NULL when the file has no line tables, is too large, or libdw refuses it.
struct dwarf_lines *dwarf_lines_new(const struct elf_file *f, size_t memory_max);
void dwarf_lines_free(struct dwarf_lines *d);
size_t dwarf_lines_memory(const struct dwarf_lines *d);
// Innermost inlined call first, the containing function last; 0 when the address has no line.
unsigned dwarf_lines_find(struct dwarf_lines *d, uint64_t address, struct dwarf_line *lines, unsigned max);

#endif
