// SPDX-License-Identifier: Apache-2.0
// Function boundaries from unwind information, for code without symbols.
#ifndef BLKPROF_SYMBOLIZE_EH_FRAME_H
#define BLKPROF_SYMBOLIZE_EH_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolize/elf_file.h"

// Start and size (virtual addresses) of the frame description that covers an address, found through the sorted table of
// .eh_frame_hdr; where the file has none, by walking .eh_frame.
bool eh_frame_find(const struct elf_file *f, uint64_t address, uint64_t *ret_start, uint64_t *ret_size);

#endif
