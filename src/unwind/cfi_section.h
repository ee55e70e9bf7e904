// SPDX-License-Identifier: Apache-2.0
// The entries of one .eh_frame or .debug_frame section. libdw takes the entries apart, and their pointers and
// augmentations are read here.
#ifndef BLKPROF_UNWIND_CFI_SECTION_H
#define BLKPROF_UNWIND_CFI_SECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "elf/elf_file.h"
#include "unwind/budget.h"
#include "unwind/cfa_program.h"

#define CFI_CIES 64 // most files have two or three

struct cfi_cie {
	uint64_t key; // 1 + offset, 0 = free
	bool usable, sized;
	uint8_t encoding;
	uint64_t code_factor;
	int64_t data_factor;
	struct cfa_state initial;
};

struct cfi_section {
	uint8_t *data; // owned; bytes beyond len are 0
	size_t len;
	uint64_t address; // of the first byte; 0 in .debug_frame, which has none
	bool eh_frame;
	bool open_end; // its length is not known: it ends with a word of zero
	struct cfi_cie cies[CFI_CIES]; // by offset, the last seen
};

struct cfi_fde {
	uint64_t start, size;
	struct cfa_code code;
	const struct cfi_cie *cie; // until the next one is read
};

// NULL in *ret: the file has no such section, which is no error. max is in bytes, also after decompression.
int cfi_section_eh_frame(const struct elf_file *f, size_t max, struct cfi_section **ret, struct error *e);
int cfi_section_debug_frame(const struct elf_file *f, size_t max, struct cfi_section **ret, struct error *e);
void cfi_section_free(struct cfi_section *s);

enum cfi_kind {
	CFI_END,
	CFI_FDE,
	CFI_SKIP, // a CIE, or the end of an input section
	CFI_BAD,  // an FDE that cannot be used
};

// The entry at an offset, and the offset of the next. -EBADMSG: nothing behind it can be found. -EFBIG: the budget.
int cfi_section_read(struct cfi_section *s, uint64_t offset, struct budget *budget, uint64_t *ret_next,
		     enum cfi_kind *ret_kind, struct cfi_fde *ret_fde, struct error *e);

#endif
