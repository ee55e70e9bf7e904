// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_CLI_TIMELINE_OPTIONS_H
#define BLKPROF_CLI_TIMELINE_OPTIONS_H

#include "agent/filter.h"
#include "cli/options.h"

struct timeline_options_cli {
	uint64_t duration_ns; // 0 = until a signal
	const char *output, *raw, *from_file;
	struct filter_options filter;
	bool all, stacks, no_requests;
	uint64_t max_size;
	uint32_t rows;
};

extern const struct option_spec timeline_option_table[];
extern const struct timeline_options_cli timeline_defaults;
int timeline_options_check(void *options, struct error *e);

#endif
