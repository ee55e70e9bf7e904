// SPDX-License-Identifier: Apache-2.0
// Where the body of a request or of an answer ends: after its length, or behind its last chunk; of what was written or read
// there are only the first bytes to look at. Hostile input.
#ifndef BLKPROF_REQUEST_BODY_H
#define BLKPROF_REQUEST_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum body_kind {
	BODY_NONE = 0, // or all of it has come
	BODY_LENGTH,
	BODY_CHUNKED,
	BODY_OPEN, // where it ends is not known
};

struct body {
	enum body_kind kind;
	uint64_t left; // of it, or of its chunk
	uint8_t state, digits;
};

// Some bytes in a row, of which the kernel side kept the beginning.
struct piece {
	const char *at;
	size_t known;	// bytes there are of it
	uint64_t total; // bytes there were
};

void piece_advance(struct piece *p, uint64_t by);

void body_of_length(struct body *b, uint64_t length);
void body_in_chunks(struct body *b);
void body_open(struct body *b);
// Takes what belongs to it off the piece; how much that was. All of the rest, when its end gets out of sight.
uint64_t body_take(struct body *b, struct piece *p);
// It goes on, and where it ends will be known.
bool body_is_followed(const struct body *b);

#endif
