// SPDX-License-Identifier: Apache-2.0
#include "cli/timeline_options.h"

#include <errno.h>
#include <string.h>

#include "cli/input.h"
#include "cli/record_options.h"

#define AT(field) .offset = offsetof(struct timeline_options_cli, field)

const struct timeline_options_cli timeline_defaults = { .max_size = 512ull << 20, .rows = 40 };

const struct option_spec timeline_option_table[] = {
	{ .name = "duration", .letter = 'd', .argument = "SECONDS", .set = option_set_duration, AT(duration_ns),
	  .min = 1000000, .max = 86400ull * 1000000000,
	  .help = "Record for so long. Also with a unit: 500ms, 90s, 5m. Without it, until Ctrl-C." },
	{ .name = "output", .letter = 'o', .argument = "FILE", .set = option_set_text, AT(output), .completes = COMPLETES_FILE,
	  .help = "Write the trace to FILE, which appears whole or not at all. '-' is standard output. Without it, to "
		  "blkprof-HOST-TIME-PID.pftrace in the current folder; with --from-file, nowhere." },
	{ .name = "pid", .letter = 'p', .argument = "PID", .set = option_add_pid, AT(filter), .repeatable = true,
	  .completes = COMPLETES_PID, .help = "Threads of these processes. A list separated by commas, repeatable." },
	{ .name = "cgroup", .argument = "CGROUP", .set = option_add_cgroup, AT(filter), .repeatable = true,
	  .completes = COMPLETES_FILE,
	  .help = "Threads of this cgroup and those below it. A path, or a name below a cgroup mount such as "
		  "/system.slice/nginx.service; a list, repeatable." },
	{ .name = "all", .letter = 'a', .set = option_set_flag, AT(all), .help = "All threads of the node." },
	{ .name = "stacks", .letter = 's', .set = option_set_flag, AT(stacks),
	  .help = "Show the stack of each I/O and of each sleep, the program's and the kernel's. It costs some microseconds for "
		  "each." },
	{ .name = "no-requests", .set = option_set_flag, AT(no_requests),
	  .help = "Do not look for HTTP requests that the processes of --pid serve. Looking slows all system calls of the node "
		  "somewhat." },
	{ .name = "max-size", .argument = "SIZE", .set = option_set_size, .min = 1 << 20, .max = 1ull << 40, AT(max_size),
	  .help = "End the trace before it is larger than SIZE (512M by default). What is left out is said in it, and the summary "
		  "still counts it." },
	{ .name = "rows", .letter = 'n', .argument = "N", .set = option_set_number, .min = 0, .max = UINT32_MAX, AT(rows),
	  .help = "Show at most N threads in the summary (40 by default; 0 = all)." },
	{ .name = "raw", .argument = "FILE", .set = option_set_text, AT(raw), .completes = COMPLETES_FILE,
	  .help = "Write what came from the kernel to FILE too, for --from-file." },
	{ .name = "from-file", .argument = "FILE", .set = option_set_text, AT(from_file), .completes = COMPLETES_FILE,
	  .help = "Record nothing and make the trace of FILE, which --raw wrote. It needs no privileges." },
	{ 0 },
};

int timeline_options_check(void *options, struct error *e)
{
	const struct timeline_options_cli *o = options;
	unsigned chosen = (o->filter.n_pid > 0) + (o->filter.n_cgroup > 0) + o->all;

	if (o->from_file && (chosen || o->duration_ns || o->raw || o->stacks))
		return error_set(e, -EINVAL, "option --from-file: what was recorded is recorded; allowed beside it: --output, "
					     "--max-size, --rows");
	if (o->from_file)
		return 0;
	if (!chosen)
		return error_set(e, -EINVAL, "whose threads? allowed: one of --pid PID, --cgroup CGROUP, --all");
	if (chosen > 1)
		return error_set(e, -EINVAL, "only one of --pid, --cgroup and --all is allowed");
	return 0;
}
