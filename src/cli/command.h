// SPDX-License-Identifier: Apache-2.0
// The commands of the program. A command is one `const struct command command_NAME` (options.h) in a file of its own,
// named here and in the list in commands.c, with its prose in docs/man/blkprof-NAME.1.in.
#ifndef BLKPROF_CLI_COMMAND_H
#define BLKPROF_CLI_COMMAND_H

#include "cli/options.h"

enum {
	STATUS_DONE = 0,
	STATUS_FAILED = 1, // with one line on standard error: what failed, why, what to do
	STATUS_USAGE = 2,
};

extern const struct command command_agent, command_record;
extern const struct command command_query;
extern const struct command command_requests;
extern const struct command command_top;
extern const struct command command_export;
extern const struct command command_diff;
extern const struct command command_collector;
extern const struct command command_doctor;
extern const struct command command_keygen;
extern const struct command command_timeline;
extern const struct command command_completion;

// The i-th command, in the order in which they are listed; NULL behind the last one.
const struct command *command_get(unsigned i);
const struct command *command_find(const char *name);

// Runs `blkprof argv[1] …`: all there is of main.
int commands_main(int argc, char **argv);

// Shell completion and manual pages, made of the tables.
void completion_bash(FILE *to);
void completion_zsh(FILE *to);
void completion_fish(FILE *to);
// The manual page of a command (NULL: of the program): header and synopsis, then `prose`, in which a line "@OPTIONS@"
// stands for the options and "@COMMANDS@" for the list of commands.
void man_page(const struct command *c, const char *prose, FILE *to);

// The exit status for what went wrong before anything was done: a value that is wrong or out of range is wrong usage.
int command_status(int err);
// "blkprof NAME: TEXT" on standard error; returns status.
int command_error(const char *name, int status, const struct error *e);

#endif
