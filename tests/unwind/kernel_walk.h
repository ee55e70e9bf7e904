// SPDX-License-Identifier: Apache-2.0
// The kernel side's walk (bpf/unwind.bpf.h) as user code, over another process's stack. One at a time.
#ifndef BLKPROF_TESTS_KERNEL_WALK_H
#define BLKPROF_TESTS_KERNEL_WALK_H

#include "unwind/unwind.h"
#include "walker.h"

struct kernel_walk;

struct kernel_walk *kernel_walk_new(const struct walker *w);
void kernel_walk_free(struct kernel_walk *k);
// An executable mapping, in order of address; `address` is that of its first byte in the file's own addresses. Without a
// table it is walked by frame pointer.
void kernel_walk_map(struct kernel_walk *k, uint64_t start, uint64_t end, uint64_t address, const struct unwind_table *table);
// As walker_walk; the end is WALK_END or WALK_NO_RULE for whatever else.
void kernel_walk_walk(struct kernel_walk *k, struct registers at, struct walk *ret);

#endif
