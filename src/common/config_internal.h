// SPDX-License-Identifier: Apache-2.0
// What config.c (lines, sections, keys) and config_value.c (values) share.
#ifndef BLKPROF_COMMON_CONFIG_INTERNAL_H
#define BLKPROF_COMMON_CONFIG_INTERNAL_H

#include <stddef.h>

#include "common/config.h"

#define CONFIG_BYTES_MAX (1u << 20)
#define CONFIG_LINE_MAX 8192
#define CONFIG_VALUES_MAX 1024 // lines with a value, in all sections together
#define CONFIG_NAME_MAX 63     // bytes of a section, a key or the name of a pair

// One `key = value`. Texts lie in the config's copy of the file.
struct config_entry {
	unsigned key; // index in the table
	unsigned line;
	const char *name, *value;
	uint64_t number; // of the types that are one
};

struct config {
	char *text;
	struct config_entry *entries;
	unsigned n_entries, cap_entries;
	void **arrays; // of lists and pairs that were handed out
	unsigned n_arrays;
};

// Checks e->value against its key's type and range and fills e->number; the message says what is allowed.
int config_check_value(const struct config_key *key, struct config_entry *entry, struct error *e);
// Writes all entries to the caller's struct: whole, or on -ENOMEM not at all.
int config_commit(struct config *c, const struct config_key *keys, unsigned n_keys, void *into);

#endif
