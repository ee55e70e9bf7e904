// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

// Inside '…' of fish only these two have a meaning.
static void quote(const char *text, size_t len, FILE *to)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\'' || text[i] == '\\')
			fputc('\\', to);
		fputc(text[i], to);
	}
}

static void words(const char *const *list, FILE *to)
{
	fprintf(to, " -a '");
	for (unsigned i = 0; list && list[i]; i++)
		fprintf(to, "%s%s", i ? " " : "", list[i]);
	fputc('\'', to);
}

static void candidates(enum completes completes, const char *const *list, FILE *to)
{
	switch (completes) {
	case COMPLETES_FILE:
		fprintf(to, " -F");
		break;
	case COMPLETES_WORD:
		words(list, to);
		break;
	case COMPLETES_PID:
		fprintf(to, " -a '(__fish_complete_pids)'");
		break;
	case COMPLETES_DEVICE:
		fprintf(to, " -a '(command ls /sys/class/block 2>/dev/null)'");
		break;
	default:
		break;
	}
}

static void options(const char *condition, const struct option_spec *spec, FILE *to)
{
	for (; spec && spec->name; spec++) {
		fprintf(to, "complete -c blkprof -n '%s' -l %s", condition, spec->name);
		if (spec->letter)
			fprintf(to, " -s %c", spec->letter);
		if (spec->argument) {
			fprintf(to, " -r");
			candidates(spec->completes, spec->words, to);
		}
		fprintf(to, " -d '");
		quote(spec->help, options_first_sentence(spec->help), to);
		fprintf(to, "'\n");
	}
}

// The arguments of another program: its name stands behind blkprof's own command and options.
static void command_line(const struct option_spec *spec, FILE *to)
{
	fprintf(to, " -a '(__fish_complete_subcommand --fcs-skip=2");
	for (; spec && spec->name; spec++) {
		if (spec->argument && spec->letter)
			fprintf(to, " -%c", spec->letter);
		if (spec->argument)
			fprintf(to, " --%s", spec->name);
	}
	fprintf(to, ")'");
}

static void arguments(const char *condition, const struct command *c, FILE *to)
{
	if (!c->argument)
		return;
	fprintf(to, "complete -c blkprof -n '%s'", condition);
	if (c->command_line)
		command_line(c->options, to);
	else
		candidates(c->completes, c->words, to);
	fputc('\n', to);
}

void completion_fish(FILE *to)
{
	const struct command *c;

	fprintf(to,
		"# fish completion for blkprof; made by: blkprof completion fish\n"
		"function __blkprof_command\n\tset -l words (commandline -opc)\n"
		"\tif test (count $words) -lt 2\n\t\ttest \"$argv[1]\" = none\n\t\treturn\n\tend\n"
		"\ttest \"$words[2]\" = \"$argv[1]\"\nend\n"
		"complete -c blkprof -f\n");
	options("__blkprof_command none", options_common, to);
	for (unsigned i = 0; (c = command_get(i)); i++) {
		char condition[64];

		fprintf(to, "complete -c blkprof -n '__blkprof_command none' -a %s -d '", c->name);
		quote(c->summary, strlen(c->summary), to);
		fprintf(to, "'\n");
		snprintf(condition, sizeof(condition), "__blkprof_command %s", c->name);
		options(condition, c->options, to);
		options(condition, options_common, to);
		arguments(condition, c, to);
	}
}
