// SPDX-License-Identifier: Apache-2.0
// .eh_frame and .debug_frame of an ELF file compiled to a sorted table of rules, for the walk on the kernel side. Pure:
// bytes in, table out; the file is hostile: bounded in time and memory, checked, fuzzed. libdw reads the CFI.
#ifndef BLKPROF_UNWIND_UNWIND_H
#define BLKPROF_UNWIND_UNWIND_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rec.h"
#include "common/error.h"

struct unwind_row {
	uint32_t pc;   // from here on, relative to base
	uint16_t rule; // index
};

// Rows are sorted by pc, the first at the lowest covered address; a hole between functions is a row whose rule is
// UNWIND_CFA_NONE, but one of less than 16 bytes is padding and belongs to the row before it. In a file that also has Go
// code, holes are walked by frame pointer. Neighbours differ in their rules. Equal rules are one; rule 0 is all zeroes.
struct unwind_table {
	uint64_t base; // virtual address of the file that pc counts from: the lowest executable PT_LOAD's, page-aligned
	unsigned n_rows, n_rules;
	struct unwind_row *rows;
	struct unwind_rule *rules;
	unsigned n_unsupported; // rules and functions of the file that became UNWIND_CFA_NONE
};

struct unwind_limits {
	size_t file;	  // bytes of the file, 0 = 4 GiB
	size_t cfi;	  // bytes of each section with CFI, which are held in memory meanwhile, 0 = 256 MiB
	unsigned rows;	  // 0 = 8 million
	uint64_t cpu_ns;  // of this thread, 0 = 10 s
};

// -ENODATA: the file has no CFI (it then says so); -EINVAL: no ELF file of this machine; -EFBIG: beyond a limit;
// -EBADMSG: the CFI is corrupt. fd stays the caller's.
int unwind_compile(int fd, const struct unwind_limits *limits, struct unwind_table **ret, struct error *e);
void unwind_table_free(struct unwind_table *t);
// The rule at a virtual address of the file: what the kernel side would apply; never NULL.
const struct unwind_rule *unwind_find(const struct unwind_table *t, uint64_t address);

#endif
