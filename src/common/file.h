// SPDX-License-Identifier: Apache-2.0
// Whole small files read within a bound, and files that appear whole or not at all.
#ifndef BLKPROF_COMMON_FILE_H
#define BLKPROF_COMMON_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/error.h"

// Appends the file to b and a NUL behind it that len does not count. -EFBIG when it is larger than `max`.
int file_read(const char *path, size_t max, struct buf *b);
int file_read_fd(int fd, size_t max, struct buf *b);
// First line of a small file (sysfs, proc) without its newline; out is always terminated.
int file_read_line(const char *path, char *out, size_t cap);

// The same in pieces: open, file_write_fd to its fd, close, which with `keep` puts it in its place, else removes it. Where
// the file system can do that the file has no name until then: a killed program leaves nothing.
struct file_atomic {
	int fd;
	const char *path; // the caller's
	bool in_place;	  // a device, a pipe
	char target[4096], temporary[4096];
};

int file_atomic_open(struct file_atomic *a, const char *path, struct error *e);
int file_atomic_close(struct file_atomic *a, int keep, struct error *e);

// Writes data to PATH: a temporary file beside it, synced, renamed over it, folder synced. A device, a pipe or
// /dev/stdout is written as it is. On failure PATH is as it was and the message says what to do.
int file_write_atomic(const char *path, const void *data, size_t len, struct error *e);
// Writes all of it to a descriptor, in as many parts as that takes.
int file_write_fd(int fd, const void *data, size_t len);
// What a failed write to a file means: sets e, returns code.
int file_write_explain(const char *path, int code, struct error *e);
// Says at once whether file_write_atomic would be able to create its file there.
int file_check_writable(const char *path, struct error *e);

#endif
