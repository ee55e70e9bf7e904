// SPDX-License-Identifier: Apache-2.0
#include "common/suggest.h"

#include <string.h>

#define WORD_MAX 32

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

// Levenshtein distance; words longer than WORD_MAX are no misspelling of anything here.
static unsigned distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b);
	unsigned row[WORD_MAX + 1];

	if (la > WORD_MAX || lb > WORD_MAX)
		return WORD_MAX;
	for (unsigned j = 0; j <= lb; j++)
		row[j] = j;
	for (unsigned i = 1; i <= la; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= lb; j++) {
			unsigned above = row[j];

			row[j] = smallest(row[j - 1] + 1, above + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[lb];
}

const char *suggest_word(const char *word, const char *(*next)(const void *context, unsigned i), const void *context)
{
	unsigned best = WORD_MAX, len = (unsigned)strlen(word);
	const char *name, *near = NULL;

	for (unsigned i = 0; (name = next(context, i)); i++) {
		unsigned d = distance(word, name);

		// A word that begins with what was written, or the other way round, is as good as one edit.
		if (len >= 2 && d > 1 && (!strncmp(word, name, len) || !strncmp(word, name, strlen(name))))
			d = 1;
		if (d < best) {
			best = d;
			near = name;
		}
	}
	return best <= 2 && best < len ? near : NULL;
}
