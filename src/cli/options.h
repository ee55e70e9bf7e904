// SPDX-License-Identifier: Apache-2.0
// One table for each command, from which its options are parsed and its --help, shell completion and manual page are
// made. A ready-made setter writes to `offset` of the command's options struct; a setter of one's own may do anything.
#ifndef BLKPROF_CLI_OPTIONS_H
#define BLKPROF_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

// What a shell offers for an argument.
enum completes {
	COMPLETES_NOTHING,
	COMPLETES_FILE,
	COMPLETES_WORD, // one of option_spec.words
	COMPLETES_PID,
	COMPLETES_DEVICE,
	COMPLETES_COMMAND, // a program and its arguments
};

struct option_spec;

// value is writable and lives as long as argv; NULL for an option without an argument. target is the options struct plus
// offset. Returns 0 or -EINVAL with what is wrong and what is allowed; the option's name is put in front of it.
typedef int option_setter(const struct option_spec *spec, void *target, char *value, struct error *e);

struct option_spec {
	const char *name;     // "duration"
	char letter;	      // 'd', or 0
	const char *argument; // "SECONDS"; NULL = none
	const char *help;     // sentences; the first one stands alone in completions
	option_setter *set;
	size_t offset;
	uint64_t min, max;	  // of numbers; of durations in nanoseconds
	const char *const *words; // what option_set_word takes; ends with NULL
	enum completes completes;
	bool repeatable; // each use adds; of the others the last one counts
};

// The rest of the command line, in an options struct.
struct arguments {
	int n;
	char **v; // n pointers and a NULL; points into argv
};

struct command {
	const char *name;
	const char *summary; // one line, small letter, no full stop
	const char *usage;   // what stands behind "blkprof NAME [OPTION...]"; "" = nothing
	const char *about;   // paragraphs of --help, separated by "\n\n"
	const struct option_spec *options; // ends with an entry without a name; NULL = only --help and --version
	const void *defaults;		   // the options struct before parsing
	size_t size;			   // of that struct
	const char *argument;		   // name of the arguments in messages; NULL = it takes none
	size_t arguments;		   // offset of a struct arguments
	int min, max;			   // how many
	enum completes completes;	   // the arguments
	const char *const *words;	   // for COMPLETES_WORD
	bool times;			   // an argument may begin with a minus and a digit: "-15m..-5m"
	bool command_line;		   // the first argument ends the options: the rest is another program's
	int (*check)(void *options, struct error *e); // what no option can see alone; NULL, or returns 0 or -EINVAL
	int (*run)(const void *options);	      // returns the exit status
};

// Ready-made setters and the type they write.
option_setter option_set_flag;	   // bool = true
option_setter option_set_text;	   // const char *; not empty
option_setter option_set_number;   // uint32_t in [min, max]
option_setter option_set_duration; // uint64_t nanoseconds in [min, max]
option_setter option_set_word;	   // unsigned (or an enum): the index in words

enum {
	OPTIONS_HELP = 1,
	OPTIONS_VERSION = 2,
};

// Parses argv (argv[0] is the command's name; the vector is reordered) into options, which holds the defaults. 0,
// OPTIONS_HELP, OPTIONS_VERSION, or -EINVAL with a message.
int options_parse(const struct command *c, int argc, char **argv, void *options, struct error *e);
void options_help(const struct command *c, FILE *to);
// --help and --version, which every command has.
extern const struct option_spec options_common[];

// Writes text wrapped to `width` columns; every line but the first begins with `indent` spaces.
void options_wrap(FILE *to, const char *text, unsigned indent, unsigned width);
// Length of the first sentence, without its full stop.
size_t options_first_sentence(const char *help);

#endif
