// SPDX-License-Identifier: Apache-2.0
// Protocol buffers written straight into a buffer. Zeros are written too: readers of proto2 messages tell them from what is
// missing.
#ifndef BLKPROF_TIMELINE_PROTO_H
#define BLKPROF_TIMELINE_PROTO_H

#include "common/buf.h"

void proto_number(struct buf *b, unsigned field, uint64_t v); // int64: negative ones as their two's complement
void proto_fixed64(struct buf *b, unsigned field, uint64_t v);
void proto_bytes(struct buf *b, unsigned field, const void *data, size_t len);
void proto_text(struct buf *b, unsigned field, const char *text);
// A message within: begin returns a mark for its end.
size_t proto_begin(struct buf *b, unsigned field);
void proto_end(struct buf *b, size_t mark);

#endif
