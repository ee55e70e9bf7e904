// SPDX-License-Identifier: Apache-2.0
// Function boundaries from unwind information, for code without symbols.
#ifndef BLKPROF_SYMBOLIZE_EH_FRAME_H
#define BLKPROF_SYMBOLIZE_EH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_file.h"

struct eh_function {
	uint64_t start, size; // virtual addresses
};

// The functions of an .eh_frame that no table sorts, collected on the first look-up. Starts as zeroes.
struct eh_frame {
	bool collected;
	struct eh_function *functions; // owned, sorted
	size_t count;
};

void eh_frame_free(struct eh_frame *frame);
// The function that covers an address, by the sorted table of .eh_frame_hdr, read in place; else by .eh_frame.
bool eh_frame_find(struct eh_frame *frame, const struct elf_file *f, uint64_t address, uint64_t *ret_start,
		   uint64_t *ret_size);

#endif
