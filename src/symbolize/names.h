// SPDX-License-Identifier: Apache-2.0
// The names a module has given out. They live as long as the module, so their number is bounded.
#ifndef BLKPROF_SYMBOLIZE_NAMES_H
#define BLKPROF_SYMBOLIZE_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct sym_name {
	const char *display;
	const char *system; // or NULL
};

struct name_entry;
struct start_entry;

struct names {
	struct name_entry *symbols, *texts; // by the name as it is in the file
	struct start_entry *starts;	    // by address
	unsigned count;
	size_t memory;
};

void names_free(struct names *n);
// A symbol's display name, with `suffix` ("@plt") behind it; NULL without memory or when there are too many.
const struct sym_name *names_symbol(struct names *n, const char *raw, const char *suffix);
// A text as it is (made valid UTF-8).
const struct sym_name *names_text(struct names *n, const char *text);
// The same if it is there already, or NULL.
const struct sym_name *names_find_text(const struct names *n, const char *text);
// What the function at an address was called before, or NULL.
const struct sym_name *names_start(const struct names *n, uint64_t start);
void names_set_start(struct names *n, uint64_t start, const struct sym_name *name);

#endif
