// SPDX-License-Identifier: Apache-2.0
// The function symbols of a module: 12 bytes each, sorted by address. Names stay in their file and are read on the first
// look-up of a function, so that a program of two gigabytes costs no more than its functions.
#ifndef BLKPROF_SYMBOLIZE_SYMTAB_H
#define BLKPROF_SYMBOLIZE_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_file.h"

#define SYMTAB_SOURCES_MAX 3
#define SYMTAB_NAME_MAX	   8192

struct symtab;

// `code` says which addresses are code; it must live as long as the table, as must the files that are added.
struct symtab *symtab_new(const struct elf_file *code, size_t memory_max);
void symtab_free(struct symtab *t);
// Adds the symbols of one symbol table section. -E2BIG when they exceed the memory: the table keeps what it has.
int symtab_add(struct symtab *t, const struct elf_file *f, const struct elf_section *section);
void symtab_sort(struct symtab *t);
size_t symtab_memory(const struct symtab *t);

struct symtab_match {
	uint32_t first, count; // symbols of the same start
	uint64_t start, size;  // virtual address; size 0 = the symbol does not say
};

// The function that holds a virtual address: a symbol whose size covers it, else the nearest one without a size in the
// same section.
bool symtab_find(const struct symtab *t, uint64_t address, struct symtab_match *ret);
// The name people know among the symbols of a match: those with a size, exported before local, few leading underscores, short, then
// alphabetical. Its length, 0 when no name can be read.
size_t symtab_name(const struct symtab *t, const struct symtab_match *match, char out[SYMTAB_NAME_MAX]);

#endif
