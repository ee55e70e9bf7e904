// SPDX-License-Identifier: Apache-2.0
// blkprof completion: what a shell needs to complete blkprof's commands and options.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static const char *const shells[] = { "bash", "zsh", "fish", NULL };

struct completion_options {
	struct arguments shell;
};

static int check(void *options, struct error *e)
{
	const struct completion_options *o = options;

	for (unsigned i = 0; shells[i]; i++)
		if (!strcmp(o->shell.v[0], shells[i]))
			return 0;
	return error_set(e, -EINVAL, "'%.60s' is not allowed; allowed: bash, zsh, fish", o->shell.v[0]);
}

static int run(const void *options)
{
	const struct completion_options *o = options;
	struct error e;

	if (!strcmp(o->shell.v[0], "zsh"))
		completion_zsh(stdout);
	else if (!strcmp(o->shell.v[0], "fish"))
		completion_fish(stdout);
	else
		completion_bash(stdout);
	if (!fflush(stdout) && !ferror(stdout))
		return STATUS_DONE;
	error_set(&e, 0, "cannot write to standard output: %s", strerror(errno));
	return command_error("completion", STATUS_FAILED, &e);
}

static const struct completion_options defaults;

const struct command command_completion = {
	.name = "completion",
	.summary = "print what a shell needs to complete blkprof",
	.usage = "bash|zsh|fish",
	.about = "Prints a script that completes blkprof's commands, options and values. An installed blkprof has it in place; "
		 "otherwise: source <(blkprof completion bash)",
	.defaults = &defaults,
	.size = sizeof(defaults),
	.argument = "bash|zsh|fish",
	.arguments = offsetof(struct completion_options, shell),
	.min = 1,
	.max = 1,
	.completes = COMPLETES_WORD,
	.words = shells,
	.check = check,
	.run = run,
};
