// SPDX-License-Identifier: Apache-2.0
// blkprof top: what is heaviest in a profile of any program.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/input.h"
#include "pprof/top.h"

struct top_command {
	const char *type, *by;
	uint32_t rows;
	uint64_t memory, max_size;
	struct arguments files;
};

static const struct top_command defaults = { .rows = 20, .memory = 160ull << 20, .max_size = 512ull << 20 };

#define AT(field) .offset = offsetof(struct top_command, field)

static const struct option_spec options[] = {
	{ .name = "type", .letter = 't', .argument = "TYPE", .set = option_set_text, AT(type),
	  .help = "Sample type to rank by, by its name or number. The default is the profile's own, for a profile of blkprof "
		  "io_time; a wrong name lists the right ones." },
	{ .name = "by", .letter = 'b', .argument = "WHAT", .set = option_set_text, AT(by),
	  .help = "Rank only 'function' or 'stack', or the values of a label (device, op, service, comm, pid ...). The default is "
		  "functions and stacks." },
	{ .name = "rows", .letter = 'n', .argument = "N", .set = option_set_number, .min = 0, .max = UINT32_MAX, AT(rows),
	  .help = "Show at most N of each (20 by default; 0 = all)." },
	{ .name = "memory", .argument = "SIZE", .set = option_set_size, .min = 1 << 20, .max = 1ull << 40, AT(memory),
	  .help = "Use at most SIZE of memory for what is kept of the profile (160M by default)." },
	{ .name = "max-size", .argument = "SIZE", .set = option_set_size, .min = 1 << 10, .max = 1ull << 40, AT(max_size),
	  .help = "Refuse a profile that has more than SIZE when decompressed (512M by default)." },
	{ 0 },
};

static struct top_options what_of(const struct top_command *c)
{
	struct top_options o = { .what = TOP_FUNCTIONS | TOP_STACKS, .type = c->type };

	if (c->by)
		o.what = !strcmp(c->by, "function") ? TOP_FUNCTIONS : !strcmp(c->by, "stack") ? TOP_STACKS : TOP_LABEL;
	if (o.what == TOP_LABEL)
		o.label = c->by;
	return o;
}

static int report(const struct top_command *c, const struct inputs *in, struct buf *out, struct error *e)
{
	struct pprof_limits limits = PPROF_LIMITS_DEFAULT;
	struct top_options o = what_of(c);
	struct top *t = top_new(&o);
	int err;

	if (!t)
		return error_set(e, -ENOMEM, "out of memory");
	limits.memory = c->memory;
	limits.message = c->max_size;
	err = top_read(t, in->sources, in->names, in->n, &limits, e);
	if (!err)
		err = top_print(t, c->rows, out, e);
	top_free(t);
	return err ? inputs_explain(NULL, err, e) : 0;
}

static int run(const void *arguments)
{
	const struct top_command *c = arguments;
	struct inputs in = { 0 };
	struct error e = { 0 };
	struct buf out = { 0 };
	int err = inputs_open(&c->files, c->max_size, &in, &e);

	if (!err) {
		err = report(c, &in, &out, &e);
		inputs_close(&in);
	}
	if (!err && (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout)))
		err = error_set(&e, -errno, "cannot write to standard output: %s", strerror(errno));
	buf_free(&out);
	return err ? command_error("top", STATUS_FAILED, &e) : STATUS_DONE;
}

const struct command command_top = {
	.name = "top",
	.summary = "show the heaviest functions and stacks of a profile",
	.usage = "FILE...",
	.about = "Reads pprof profiles of any program: files, '-' for standard input, or http:// and https:// addresses, whose "
		 "password is a token (http://user:TOKEN@host/debug/pprof/io?seconds=10). Several are merged. flat is what a function "
		 "has as the last of a stack, cum what all stacks have that it is in; both are those of 'go tool pprof -top'.\n\n"
		 "mean is the value divided by the number of operations.",
	.options = options,
	.defaults = &defaults,
	.size = sizeof(defaults),
	.argument = "FILE",
	.arguments = offsetof(struct top_command, files),
	.min = 1,
	.max = 1000,
	.completes = COMPLETES_FILE,
	.run = run,
};
