// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_CLI_RECORD_OPTIONS_H
#define BLKPROF_CLI_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/filter.h"
#include "agent/recorder.h"
#include "cli/options.h"

#define RECORD_RATE 1000 // stacks per second and CPU, about

struct record_options {
	uint64_t duration_ns; // 0 = until a signal, or the command ends
	const char *output;   // NULL = a name of host and time, "-" = standard output
	struct filter_options filter;
	unsigned backend; // enum backend
	uint32_t rate, cpu_hz;
	bool kernel_stacks, all;
	unsigned labels; // enum label_set
	unsigned unwind; // 0 auto, 1 by frame pointer only
	const char *root, *node;
	struct arguments command; // n = 0: none
};

extern const struct option_spec record_option_table[];
extern const struct record_options record_defaults;

// Setters of lists in a struct filter_options.
option_setter option_add_pid, option_add_cgroup;

int record_options_check(void *options, struct error *e);

#endif
