// SPDX-License-Identifier: Apache-2.0
// The comments of an agent's profiles, taken apart so that they can be added up: a pattern, and the numbers in it.
#ifndef BLKPROF_COLLECTOR_STORE_NOTES_H
#define BLKPROF_COLLECTOR_STORE_NOTES_H

#include <stddef.h>
#include <stdint.h>

#include "collector/store_idmap.h"
#include "common/buf.h"

#define NOTE_NUMBERS 8
#define NOTES_MAX 1024 // comments kept of a profile

struct note {
	uint32_t text; // id of its pattern (never 0), in which byte 1 stands for a number
	uint32_t n;
	uint64_t number[NOTE_NUMBERS];
};

struct notes {
	struct note *note; // sorted by text when packed
	size_t n, cap;
	struct idmap at; // index + 1 of a text; after packing only notes_clear is possible
};

// The pattern of a comment and its numbers. What the totals and the window say is known from the samples: 0 is returned for
// those, 1 for what is worth keeping. A window=TIME is left out of what is added up. pattern has room for strlen(comment) + 1.
int note_parse(const char *comment, char *pattern, struct note *ret);
void note_print(const char *pattern, size_t len, const struct note *n, struct buf *out);

// Adds numbers of the same pattern up; `most`: keeps the largest instead (the same fact told by several profiles).
int notes_add(struct notes *s, const struct note *n, int most); // 0 or -ENOMEM
int notes_pack(struct notes *s, struct buf *out);
int notes_unpack(const void *data, size_t len, struct notes *s, int most); // adds; -EBADMSG, -ENOMEM
void notes_clear(struct notes *s);
void notes_free(struct notes *s);

#endif
