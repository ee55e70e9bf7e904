// SPDX-License-Identifier: Apache-2.0
// A command line for the tests: writable words, as main's are.
#ifndef TESTS_UNIT_CLI_WORDS_H
#define TESTS_UNIT_CLI_WORDS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#define WORDS_MAX 80

struct words {
	char text[4096];
	char *argv[WORDS_MAX + 1];
	int argc;
};

// Splits at spaces; the word "''" is an empty one.
static inline void words_split(struct words *w, const char *line)
{
	char *save = NULL;

	assert_true(strlen(line) < sizeof(w->text));
	strcpy(w->text, line);
	w->argc = 0;
	for (char *word = strtok_r(w->text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		assert_true(w->argc < WORDS_MAX);
		w->argv[w->argc++] = strcmp(word, "''") ? word : word + 2;
	}
	w->argv[w->argc] = NULL;
}

#endif
