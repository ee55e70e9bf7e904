// SPDX-License-Identifier: Apache-2.0
// A file that is written in pieces and appears whole or not at all; or standard output.
#ifndef BLKPROF_CLI_OUTFILE_H
#define BLKPROF_CLI_OUTFILE_H

#include <stddef.h>

#include "common/error.h"

struct outfile {
	int fd;
	const char *path; // NULL = standard output
	char *temporary;  // beside path; NULL = path is written itself (a device, a pipe)
};

// path NULL or "-": standard output.
int outfile_open(struct outfile *o, const char *path, struct error *e);
int outfile_write(void *output, const void *data, size_t len); // 0 or negative errno
// keep: it takes its place; else what was written is removed.
int outfile_close(struct outfile *o, int keep, struct error *e);

#endif
