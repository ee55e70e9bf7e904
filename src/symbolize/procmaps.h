// SPDX-License-Identifier: Apache-2.0
// Lines of /proc/PID/maps:
//   5573a3067000-5573a306c000 r-xp 00002000 fe:00 247026                     /usr/bin/cat
// The path is what follows the inode and its blanks, up to the end of the line; a newline in it is written \012.
#ifndef BLKPROF_SYMBOLIZE_PROCMAPS_H
#define BLKPROF_SYMBOLIZE_PROCMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct procmaps_entry {
	uint64_t start, limit; // addresses, start < limit
	uint64_t offset;       // of start in the file
	uint32_t major, minor; // of the file's device
	uint64_t inode;	       // 0 for memory without a file
	bool readable, writable, executable, shared;
	const char *path; // inside the line, not terminated, still escaped
	size_t path_len;  // 0 for anonymous memory
};

// One line without its newline. -EINVAL for what the kernel would not write; *ret is then untouched.
int procmaps_parse(const char *line, size_t len, struct procmaps_entry *ret);
// Copies a path with \012 made a newline again, at most cap-1 bytes, terminated. Returns its length.
size_t procmaps_unescape(char *out, size_t cap, const char *in, size_t len);
// Length of the path without the " (deleted)" that the kernel puts behind a file that has no name any more.
size_t procmaps_strip_deleted(const char *path, size_t len, bool *ret_deleted);

#endif
