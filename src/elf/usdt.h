// SPDX-License-Identifier: Apache-2.0
// Probes that a program has of itself, as sys/sdt.h writes them: notes of .note.stapsdt name a place that is a nop until
// somebody puts a uprobe there (https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation).
#ifndef BLKPROF_ELF_USDT_H
#define BLKPROF_ELF_USDT_H

#include "elf/elf_file.h"

// Offsets in the file of a probe's places, at most cap of them; how many there are. Places that are not in code, and probes
// that want to be switched on by a semaphore, are left out.
unsigned usdt_find(const struct elf_file *f, const char *provider, const char *name, uint64_t *offsets, unsigned cap);

#endif
