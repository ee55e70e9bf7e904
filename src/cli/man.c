// SPDX-License-Identifier: Apache-2.0
// Manual pages: the parts that the tables know, around prose written by hand.
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static void roff(const char *text, FILE *to)
{
	// A full stop or an apostrophe at the start of a line would be a request.
	if (*text == '.' || *text == '\'')
		fprintf(to, "\\&");
	for (; *text; text++) {
		if (*text == '-')
			fprintf(to, "\\-");
		else if (*text == '\\')
			fprintf(to, "\\e");
		else
			fputc(*text, to);
	}
}

static void options(const struct option_spec *spec, FILE *to)
{
	for (; spec && spec->name; spec++) {
		fprintf(to, ".TP\n");
		if (spec->letter)
			fprintf(to, "\\fB\\-%c\\fR, ", spec->letter);
		fprintf(to, "\\fB\\-\\-");
		roff(spec->name, to);
		fprintf(to, "\\fR");
		if (spec->argument) {
			fprintf(to, " \\fI");
			roff(spec->argument, to);
			fprintf(to, "\\fR");
		}
		fputc('\n', to);
		roff(spec->help, to);
		fputc('\n', to);
	}
}

static void list_commands(FILE *to)
{
	const struct command *c;

	for (unsigned i = 0; (c = command_get(i)); i++) {
		fprintf(to, ".TP\n.BR blkprof\\-%s (1)\n", c->name);
		roff(c->summary, to);
		fputc('\n', to);
	}
}

static void header(const struct command *c, FILE *to)
{
	fprintf(to, ".\\\" Made from the option tables and docs/man: do not edit.\n.TH BLKPROF");
	for (const char *p = c ? c->name : ""; *p; p++)
		fprintf(to, "%s%c", p == c->name ? "\\-" : "", *p >= 'a' && *p <= 'z' ? *p - 32 : *p);
	fprintf(to, " 1 \"\" \"blkprof %s\" \"User commands\"\n.SH NAME\nblkprof%s%s \\- ", BLKPROF_VERSION, c ? "\\-" : "",
		c ? c->name : "");
	roff(c ? c->summary : "profile the time programs spend on disks", to);
	fprintf(to, "\n.SH SYNOPSIS\n.B blkprof %s\n", c ? c->name : "");
	roff(c ? "[OPTION...] " : "COMMAND [OPTION...]", to);
	if (c)
		roff(c->usage, to);
	fputc('\n', to);
}

void man_page(const struct command *c, const char *prose, FILE *to)
{
	header(c, to);
	while (*prose) {
		size_t len = strcspn(prose, "\n");

		if (c && len == strlen("@OPTIONS@") && !strncmp(prose, "@OPTIONS@", len)) {
			options(c->options, to);
			options(options_common, to);
		} else if (len == strlen("@COMMANDS@") && !strncmp(prose, "@COMMANDS@", len)) {
			list_commands(to);
		} else {
			fprintf(to, "%.*s\n", (int)len, prose);
		}
		prose += len + (prose[len] == '\n');
	}
}
