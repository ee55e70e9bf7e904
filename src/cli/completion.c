// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static void print_words(const char *const *words, FILE *to)
{
	for (unsigned i = 0; words && words[i]; i++)
		fprintf(to, "%s%s", i ? " " : "", words[i]);
}

static void bash_option_names(const struct option_spec *spec, FILE *to)
{
	for (; spec && spec->name; spec++) {
		if (spec->letter)
			fprintf(to, " -%c", spec->letter);
		fprintf(to, " --%s", spec->name);
	}
}

static void bash_candidates(enum completes completes, const char *const *words, FILE *to)
{
	switch (completes) {
	case COMPLETES_FILE:
		fprintf(to, "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))");
		break;
	case COMPLETES_WORD:
		fprintf(to, "COMPREPLY=($(compgen -W '");
		print_words(words, to);
		fprintf(to, "' -- \"$cur\"))");
		break;
	case COMPLETES_PID:
		fprintf(to, "COMPREPLY=($(compgen -W \"$(cd /proc && echo [0-9]*)\" -- \"$cur\"))");
		break;
	case COMPLETES_DEVICE:
		fprintf(to, "COMPREPLY=($(compgen -W \"$(ls /sys/class/block 2>/dev/null)\" -- \"$cur\"))");
		break;
	case COMPLETES_COMMAND:
		fprintf(to, "COMPREPLY=($(compgen -c -- \"$cur\"))");
		break;
	default:
		fprintf(to, "COMPREPLY=()");
	}
}

static void bash_values(const struct option_spec *spec, FILE *to)
{
	for (; spec && spec->name; spec++) {
		if (!spec->argument)
			continue;
		fprintf(to, "\t\t");
		if (spec->letter)
			fprintf(to, "-%c|", spec->letter);
		fprintf(to, "--%s) ", spec->name);
		bash_candidates(spec->completes, spec->words, to);
		fprintf(to, "; return ;;\n");
	}
}

// Options of the command whose value is the next word: `first` must not take the value for the command's argument.
static void bash_takes_value(const struct option_spec *spec, FILE *to)
{
	fprintf(to, "takes='");
	for (; spec && spec->name; spec++) {
		if (spec->argument && spec->letter)
			fprintf(to, " -%c ", spec->letter);
		if (spec->argument)
			fprintf(to, " --%s ", spec->name);
	}
	fprintf(to, "'\n");
}

static void bash_command(const struct command *c, FILE *to)
{
	fprintf(to, "\t%s)\n\t\t", c->name);
	if (c->command_line) {
		bash_takes_value(c->options, to);
		fprintf(to,
			"\t\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
			"\t\t\tcase ${COMP_WORDS[i]} in\n"
			"\t\t\t--) ((i + 1 == COMP_CWORD)) && rest=0 || rest=1; break ;;\n"
			"\t\t\t=) ((i++)) ;;\n"
			"\t\t\t-*) [[ $takes == *\" ${COMP_WORDS[i]} \"* && ${COMP_WORDS[i + 1]} != = ]] && ((i++)) ;;\n"
			"\t\t\t*) rest=1; break ;;\n"
			"\t\t\tesac\n"
			"\t\tdone\n"
			"\t\t[[ $rest == 0 ]] && { COMPREPLY=($(compgen -c -- \"$cur\")); return; }\n"
			"\t\t[[ $rest == 1 ]] && { compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\")); return; }\n\t\t");
	}
	fprintf(to, "case $prev in\n");
	bash_values(c->options, to);
	fprintf(to, "\t\tesac\n\t\t[[ $cur == -* ]] && { COMPREPLY=($(compgen -W '");
	bash_option_names(c->options, to);
	bash_option_names(options_common, to);
	fprintf(to, "' -- \"$cur\")); return; }\n\t\t");
	bash_candidates(c->argument ? c->completes : COMPLETES_NOTHING, c->words, to);
	fprintf(to, "\n\t\t;;\n");
}

void completion_bash(FILE *to)
{
	const struct command *c;

	fprintf(to,
		"# bash completion for blkprof; made by: blkprof completion bash\n"
		"_blkprof()\n{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} takes rest= i\n"
		"\tCOMPREPLY=()\n"
		"\t# bash splits --option=value into three words\n"
		"\tif [[ $cur == = ]]; then\n\t\tcur=\n"
		"\telif [[ $prev == = ]]; then\n\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n\tfi\n"
		"\tif ((COMP_CWORD == 1)); then\n\t\tCOMPREPLY=($(compgen -W '--help --version");
	for (unsigned i = 0; (c = command_get(i)); i++)
		fprintf(to, " %s", c->name);
	fprintf(to, "' -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]} in\n");
	for (unsigned i = 0; (c = command_get(i)); i++)
		bash_command(c, to);
	fprintf(to, "\tesac\n}\ncomplete -F _blkprof blkprof\n");
}

// Inside a quoted _arguments specification.
static void zsh_quote(const char *text, size_t len, FILE *to)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\'')
			fprintf(to, "'\\''");
		else if (strchr("[]:\\", text[i]))
			fprintf(to, "\\%c", text[i]);
		else
			fputc(text[i], to);
	}
}

static void zsh_action(enum completes completes, const char *const *words, FILE *to)
{
	switch (completes) {
	case COMPLETES_FILE:
		fprintf(to, "_files");
		break;
	case COMPLETES_WORD:
		fputc('(', to);
		print_words(words, to);
		fputc(')', to);
		break;
	case COMPLETES_PID:
		fprintf(to, "_pids");
		break;
	case COMPLETES_DEVICE:
		fprintf(to, "{compadd -- /sys/class/block/*(N\\:t)}");
		break;
	default:
		fprintf(to, "( )");
	}
}

// '(-d --duration)'{-d+,--duration=}'[help]:SECONDS:action', and without the exclusion '*' for what can be repeated.
static void zsh_options(const struct option_spec *spec, FILE *to)
{
	for (; spec && spec->name; spec++) {
		const char *value = spec->argument ? "=" : "";

		fprintf(to, "\t\t\t");
		if (spec->repeatable)
			fprintf(to, "'*'");
		else if (spec->letter)
			fprintf(to, "'(-%c --%s)'", spec->letter, spec->name);
		if (spec->letter)
			fprintf(to, "{-%c%s,--%s%s}", spec->letter, spec->argument ? "+" : "", spec->name, value);
		else
			fprintf(to, "--%s%s", spec->name, value);
		fprintf(to, "'[");
		zsh_quote(spec->help, options_first_sentence(spec->help), to);
		fputc(']', to);
		if (spec->argument) {
			fputc(':', to);
			zsh_quote(spec->argument, strlen(spec->argument), to);
			fputc(':', to);
			zsh_action(spec->completes, spec->words, to);
		}
		fprintf(to, "' \\\n");
	}
}

static void zsh_arguments(const struct command *c, FILE *to)
{
	if (!c->argument) {
		fprintf(to, "\t\t\t'*: :( )'\n");
	} else if (c->command_line) {
		fprintf(to, "\t\t\t'(-)1:command: _command_names -e' '*::arguments: _normal'\n");
	} else {
		fprintf(to, "\t\t\t'%s:", c->max > 1 ? "*" : "1");
		zsh_quote(c->argument, strlen(c->argument), to);
		fputc(':', to);
		zsh_action(c->completes, c->words, to);
		fprintf(to, "'\n");
	}
}

void completion_zsh(FILE *to)
{
	const struct command *c;

	fprintf(to,
		"#compdef blkprof\n# zsh completion for blkprof; made by: blkprof completion zsh\n\n"
		"_blkprof() {\n\tlocal curcontext=\"$curcontext\" state line\n\tlocal -a blkprof_commands\n\tblkprof_commands=(\n");
	for (unsigned i = 0; (c = command_get(i)); i++) {
		fprintf(to, "\t\t'%s:", c->name);
		zsh_quote(c->summary, strlen(c->summary), to);
		fprintf(to, "'\n");
	}
	fprintf(to,
		"\t)\n\t_arguments -C '(- *)'{-h,--help}'[Show help]' '(- *)'{-V,--version}'[Show the version]' \\\n"
		"\t\t'1:command:->command' '*::argument:->argument'\n"
		"\tcase $state in\n\tcommand) _describe command blkprof_commands ;;\n\targument)\n\t\tcase $words[1] in\n");
	for (unsigned i = 0; (c = command_get(i)); i++) {
		fprintf(to, "\t\t%s) _arguments -s -S \\\n", c->name);
		zsh_options(c->options, to);
		zsh_options(options_common, to);
		zsh_arguments(c, to);
		fprintf(to, "\t\t\t;;\n");
	}
	fprintf(to, "\t\tesac\n\t\t;;\n\tesac\n}\n\n"
		    "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n\t_blkprof \"$@\"\nelse\n\tcompdef _blkprof blkprof\nfi\n");
}
