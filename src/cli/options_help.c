// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "cli/options.h"

#define WIDTH 80
#define COLUMN 28 // where the explanations begin

void options_wrap(FILE *to, const char *text, unsigned indent, unsigned width)
{
	unsigned column = indent;

	while (*text) {
		size_t len = strcspn(text, " \n");

		if (column > indent && column + 1 + len > width) {
			fprintf(to, "\n%*s", indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', to);
			column++;
		}
		fwrite(text, 1, len, to);
		column += (unsigned)len;
		text += len;
		if (!strncmp(text, "\n\n", 2)) {
			fprintf(to, "\n\n%*s", indent, "");
			column = indent;
		}
		text += strspn(text, " \n");
	}
	fputc('\n', to);
}

size_t options_first_sentence(const char *help)
{
	const char *end = strstr(help, ". ");
	size_t len = end ? (size_t)(end - help) : strlen(help);

	return len && help[len - 1] == '.' ? len - 1 : len;
}

static void help_options(const struct option_spec *spec, FILE *to)
{
	for (; spec && spec->name; spec++) {
		char left[64];
		int n;

		n = snprintf(left, sizeof(left), "  %c%c%s --%s%s%s", spec->letter ? '-' : ' ', spec->letter ? spec->letter : ' ',
			     spec->letter ? "," : " ", spec->name, spec->argument ? " " : "", spec->argument ? spec->argument : "");
		if (n >= COLUMN - 1)
			fprintf(to, "%s\n%*s", left, COLUMN, "");
		else
			fprintf(to, "%-*s", COLUMN, left);
		options_wrap(to, spec->help, COLUMN, WIDTH);
	}
}

void options_help(const struct command *c, FILE *to)
{
	fprintf(to, "blkprof %s: %s\n\nUsage: blkprof %s [OPTION...]%s%s\n\n", c->name, c->summary, c->name, *c->usage ? " " : "",
		c->usage);
	options_wrap(to, c->about, 0, WIDTH);
	fprintf(to, "\nOptions:\n");
	help_options(c->options, to);
	help_options(options_common, to);
	fprintf(to, "\nMore: man blkprof-%s\n", c->name);
}
