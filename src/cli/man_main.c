// SPDX-License-Identifier: Apache-2.0
// Build tool: man_main NAME PROSE prints the manual page of blkprof (NAME "blkprof") or of a command ("blkprof-record").
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "common/file.h"

#define PROSE_MAX (1 << 20)

int main(int argc, char **argv)
{
	const struct command *c = NULL;
	struct buf prose = { 0 };
	int err;

	if (argc != 3 || strncmp(argv[1], "blkprof", 7)) {
		fprintf(stderr, "usage: man_main NAME PROSE\n");
		return STATUS_USAGE;
	}
	if (argv[1][7] == '-') {
		c = command_find(argv[1] + 8);
		if (!c) {
			fprintf(stderr, "%s: there is no such command\n", argv[1]);
			return STATUS_FAILED;
		}
	}
	err = file_read(argv[2], PROSE_MAX, &prose);
	if (err) {
		fprintf(stderr, "cannot read %s: %s\n", argv[2], strerror(-err));
		return STATUS_FAILED;
	}
	man_page(c, (const char *)prose.data, stdout);
	buf_free(&prose);
	return fflush(stdout) || ferror(stdout) ? STATUS_FAILED : STATUS_DONE;
}
