// SPDX-License-Identifier: Apache-2.0
// A growing byte buffer. An allocation that fails is remembered in `error` and later appends do nothing, so that a
// writer checks once, at its end.
#ifndef BLKPROF_COMMON_BUF_H
#define BLKPROF_COMMON_BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *data; // owned
	size_t len;
	size_t cap;
	int error; // 0 or -ENOMEM
};

void buf_append(struct buf *b, const void *data, size_t len);
void buf_byte(struct buf *b, uint8_t byte);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Room for `len` more bytes; NULL when there is no memory. The caller adds what it used to b->len.
uint8_t *buf_reserve(struct buf *b, size_t len);
void buf_free(struct buf *b); // also NULL; the buffer can be used again

#endif
