// SPDX-License-Identifier: Apache-2.0
// Kernel symbols from a file in the form of /proc/kallsyms.
#ifndef BLKPROF_SYMBOLIZE_KERNEL_H
#define BLKPROF_SYMBOLIZE_KERNEL_H

#include <stdint.h>

struct kernel_symbols;

// -ENODATA when every address in the file is hidden, else a negative errno.
int kernel_symbols_load(int fd, struct kernel_symbols **ret);
void kernel_symbols_free(struct kernel_symbols *k);
const char *kernel_symbols_find(const struct kernel_symbols *k, uint64_t address, const char **ret_module,
				uint64_t *ret_start);

#endif
