// SPDX-License-Identifier: Apache-2.0
// INI-like configuration files: [section], key = value, # comments; repeated keys add. The file is hostile: bounded,
// checked. Every error names the file and the line.
#ifndef BLKPROF_COMMON_CONFIG_H
#define BLKPROF_COMMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum config_type {
	CONFIG_TEXT,  // const char *, owned by the config
	CONFIG_LIST,  // struct config_list, repeatable
	CONFIG_BOOL,  // bool: yes, no, true, false
	CONFIG_U32,   // uint32_t
	CONFIG_SIZE,  // uint64_t bytes: KiB, MiB, GiB and K, M, G for the same powers of 1024
	CONFIG_TIME,  // uint64_t ns: ms, s, m, h, d
	CONFIG_PAIRS, // struct config_pairs: any name = value of the section (key "*")
};

struct config_list {
	unsigned n;
	const char **item;
	unsigned *line; // where each was said
};

struct config_pairs {
	unsigned n;
	const char **name, **value;
};

struct config_key {
	const char *section, *key;
	enum config_type type;
	unsigned offset; // of the value in the caller's struct, which holds the default before
	double min, max; // numbers, sizes (bytes) and times (ns); both 0 = any
};

struct config;

// Fills `into`; values live until config_free. -EINVAL with "FILE:LINE: what, and what to do" (an unknown key with the
// nearest known one), -ENOENT and other errors of reading.
int config_read(const char *path, const struct config_key *keys, unsigned n_keys, void *into, struct config **ret, struct error *e);
// The same from memory; `name` stands for the file in messages.
int config_parse(const char *name, const char *text, size_t size, const struct config_key *keys, unsigned n_keys, void *into,
		 struct config **ret, struct error *e);
void config_free(struct config *c);
// Exposed for options of the command line and for tests.
int config_size(const char *text, uint64_t *ret);
int config_time(const char *text, uint64_t *ret_ns);

#endif
