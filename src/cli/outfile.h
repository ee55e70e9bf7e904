// SPDX-License-Identifier: Apache-2.0
// A file that is written in pieces and appears whole or not at all; or standard output.
#ifndef BLKPROF_CLI_OUTFILE_H
#define BLKPROF_CLI_OUTFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/file.h"

struct outfile {
	int fd;
	bool standard; // standard output
	struct file_atomic file;
};

// path NULL or "-": standard output.
int outfile_open(struct outfile *o, const char *path, struct error *e);
int outfile_write(void *output, const void *data, size_t len); // 0 or negative errno
// keep: it takes its place; else what was written is removed.
int outfile_close(struct outfile *o, int keep, struct error *e);

#endif
