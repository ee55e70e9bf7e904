// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "common/suggest.h"

static const struct command *const list[] = {
	&command_record,
	&command_timeline,
	&command_agent,
	&command_top,
	&command_export,
	&command_diff,
	&command_collector,
	&command_query,
	&command_requests,
	&command_doctor,
	&command_keygen,
	&command_completion,
};

const struct command *command_get(unsigned i)
{
	return i < sizeof(list) / sizeof(*list) ? list[i] : NULL;
}

const struct command *command_find(const char *name)
{
	const struct command *c;

	for (unsigned i = 0; (c = command_get(i)); i++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

static const char *name_of(const void *context, unsigned i)
{
	const struct command *c = command_get(i);

	return c ? c->name : NULL;
}

int command_status(int err)
{
	return err == -EINVAL || err == -ERANGE ? STATUS_USAGE : STATUS_FAILED;
}

int command_error(const char *name, int status, const struct error *e)
{
	fprintf(stderr, "blkprof%s%s: %s\n", name ? " " : "", name ? name : "", e->text);
	return status;
}

static int usage_error(const char *name, const struct error *e)
{
	fprintf(stderr, "blkprof%s%s: %s (see blkprof%s%s --help)\n", name ? " " : "", name ? name : "", e->text, name ? " " : "",
		name ? name : "");
	return STATUS_USAGE;
}

static void program_help(FILE *to)
{
	const struct command *c;

	fprintf(to, "blkprof: profile the time programs spend on disks\n\nUsage: blkprof COMMAND [OPTION...]\n\nCommands:\n");
	for (unsigned i = 0; (c = command_get(i)); i++)
		fprintf(to, "  %-12s %s\n", c->name, c->summary);
	fprintf(to, "\n'blkprof COMMAND --help' explains a command, 'man blkprof' the program.\n");
}

// Help and version are worth an exit status of failure when nobody can read them (a full disk, a closed pipe).
static int flushed(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return STATUS_DONE;
	fprintf(stderr, "blkprof: cannot write to standard output: %s\n", strerror(errno));
	return STATUS_FAILED;
}

static int print_version(void)
{
	printf("blkprof %s\n", BLKPROF_VERSION);
	return flushed();
}

static int run(const struct command *c, int argc, char **argv, void *options)
{
	struct error e = { 0 };
	int err;

	if (c->size)
		memcpy(options, c->defaults, c->size);
	err = options_parse(c, argc, argv, options, &e);
	if (err == OPTIONS_HELP) {
		options_help(c, stdout);
		return flushed();
	}
	if (err == OPTIONS_VERSION)
		return print_version();
	if (err)
		return usage_error(c->name, &e);
	return c->run(options);
}

static int dispatch(const struct command *c, int argc, char **argv)
{
	void *options = malloc(c->size ? c->size : 1);
	int status;

	if (!options) {
		fprintf(stderr, "blkprof %s: out of memory\n", c->name);
		return STATUS_FAILED;
	}
	status = run(c, argc, argv, options);
	free(options);
	return status;
}

static int no_command(const char *word)
{
	const char *near = suggest_word(word, name_of, NULL);
	struct error e;

	if (near)
		error_set(&e, 0, "there is no command '%.60s'; did you mean '%s'?", word, near);
	else
		error_set(&e, 0, "there is no %s '%.60s'", word[0] == '-' ? "option" : "command", word);
	return usage_error(NULL, &e);
}

static int help(const char *name)
{
	const struct command *c = name ? command_find(name) : NULL;

	if (name && !c)
		return no_command(name);
	if (c)
		options_help(c, stdout);
	else
		program_help(stdout);
	return flushed();
}

int commands_main(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2) {
		program_help(stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return help(argc > 2 ? argv[2] : NULL);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return print_version();
	c = command_find(argv[1]);
	return c ? dispatch(c, argc - 1, argv + 1) : no_command(argv[1]);
}
