// SPDX-License-Identifier: Apache-2.0
// Profiles named on a command line: files, "-" for standard input, http:// and https:// addresses.
#ifndef BLKPROF_CLI_INPUT_H
#define BLKPROF_CLI_INPUT_H

#include <stdint.h>

#include "cli/options.h"
#include "pprof/decode.h"

struct inputs {
	struct pprof_source *sources;
	const char **names; // as they may be shown: without the password of an address
	char **made;	    // what of the names was made for that
	size_t n;
};

// Opens them all; what is no regular file is copied to an unlinked temporary one, of at most `max` bytes, since profiles
// are read twice. On failure nothing stays open.
int inputs_open(const struct arguments *a, uint64_t max, struct inputs *ret, struct error *e);
void inputs_close(struct inputs *in);

// A size in bytes: uint64_t in [min, max].
option_setter option_set_size;

// "FILE: " in front of the message of a source that failed, with what to do about a limit.
int inputs_explain(const char *name, int err, struct error *e);

#endif
