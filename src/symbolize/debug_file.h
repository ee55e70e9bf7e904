// SPDX-License-Identifier: Apache-2.0
// Separate debug files: found by build-id or .gnu_debuglink, in the process's root before the host's; and the small
// symbol table that distributions pack into .gnu_debugdata.
#ifndef BLKPROF_SYMBOLIZE_DEBUG_FILE_H
#define BLKPROF_SYMBOLIZE_DEBUG_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "elf/elf_file.h"

// What tells one file from another, also after its path has been given to a new one.
struct file_id {
	uint64_t device, inode, size;
	int64_t modified; // ns
};

struct file_id file_id_of(const struct stat *st);
bool file_id_equal(const struct file_id *a, const struct file_id *b);
// Only root or this user could have written the file, and its path leads through the host's root.
bool file_trusted(const struct stat *st, const char *root);
// Opens a regular file below root (NULL = the host's), resolving symbolic links inside of it. Negative errno.
int file_open_below(const char *root, const char *path);

struct debug_file {
	bool found;
	char *root, *path; // owned; root NULL = the host's
	struct file_id id;
	bool trusted;
	struct elf_file elf;
};

// `debug_root` is the host's folder of debug files, `path` the module's inside `root`.
bool debug_file_find(struct debug_file *d, const struct elf_file *main, const char *path, const char *root,
		     const char *debug_root);
void debug_file_close(struct debug_file *d);
// The symbol table of .gnu_debugdata, unpacked in memory.
bool debug_data_open(struct elf_file *mini, const struct elf_file *main);

#endif
