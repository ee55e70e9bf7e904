// SPDX-License-Identifier: Apache-2.0
// What a trace says once and names by number from then on. When it has become too much, everything is said anew.
#ifndef BLKPROF_TIMELINE_INTERNED_H
#define BLKPROF_TIMELINE_INTERNED_H

#include <stdbool.h>

#include "common/buf.h"

struct interned;

struct interned *interned_new(size_t memory);
void interned_free(struct interned *in);
// Whether more than `memory` is kept: time for interned_clear, between packets.
bool interned_is_full(const struct interned *in);
void interned_clear(struct interned *in);

// The number of a text of one kind (INTERNED_*), from 1; 0 without memory. What the reader is to be told of it is appended
// to `said`, the body of an InternedData message.
uint64_t interned_text(struct interned *in, unsigned kind, const char *text, struct buf *said);
// The number of a stack: `number` identifies it, text is its frames, outermost first, one a line.
uint64_t interned_stack(struct interned *in, uint64_t number, const char *text, struct buf *said);

#endif
