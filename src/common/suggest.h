// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_COMMON_SUGGEST_H
#define BLKPROF_COMMON_SUGGEST_H

// The nearest of a list of names when it is near enough to be what was meant, or NULL. next gives the i-th name, NULL
// behind the last.
const char *suggest_word(const char *word, const char *(*next)(const void *context, unsigned i), const void *context);

#endif
