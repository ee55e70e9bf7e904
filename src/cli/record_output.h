// SPDX-License-Identifier: Apache-2.0
// Where a recording's profile goes, and what a person sees on standard error meanwhile and at the end.
#ifndef BLKPROF_CLI_RECORD_OUTPUT_H
#define BLKPROF_CLI_RECORD_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/recorder.h"
#include "common/error.h"

struct record_output {
	char path[PATH_MAX]; // "-" = standard output
	bool progress;	     // standard error is a terminal of ours
};

// Takes FILE of -o (NULL = a name of node and time in the current folder) and checks that it can be written. No progress
// line beside a command: the terminal is the command's. -EINVAL for what is wrong usage, else another negative errno.
int output_choose(struct record_output *o, const char *file, const char *node, bool command, struct error *e);
int output_write(const struct record_output *o, const void *data, size_t len, struct error *e);

void output_attaching(const struct record_output *o); // loading may take a second or two
void output_progress(const struct record_output *o, struct recorder *r, uint64_t elapsed_ns, uint64_t duration_ns);
void output_clear_progress(const struct record_output *o);
// The report of the recorder, and where the profile of so many bytes is.
void output_report(const struct record_output *o, struct recorder *r, unsigned heaviest, size_t size);

#endif
