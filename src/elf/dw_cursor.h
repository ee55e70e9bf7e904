// SPDX-License-Identifier: Apache-2.0
// Reads the encodings of DWARF and .eh_frame from bytes that may end anywhere: past the end, or at an encoding that
// nobody writes, everything is 0 and `bad` stays set, so that a reader checks once.
#ifndef BLKPROF_ELF_DW_CURSOR_H
#define BLKPROF_ELF_DW_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dw_cursor {
	const uint8_t *at, *end;
	bool bad;
};

static inline struct dw_cursor dw_cursor_at(const uint8_t *from, const uint8_t *end)
{
	return (struct dw_cursor){ .at = from, .end = end, .bad = !from || from > end };
}

static inline size_t dw_left(const struct dw_cursor *c)
{
	return c->bad ? 0 : (size_t)(c->end - c->at);
}

// size bytes, at most 8, of this machine's byte order.
static inline uint64_t dw_take(struct dw_cursor *c, size_t size)
{
	uint64_t v = 0;

	if (size > dw_left(c)) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->at, size);
	c->at += size;
	return v;
}

static inline uint8_t dw_byte(struct dw_cursor *c)
{
	if (!dw_left(c)) {
		c->bad = true;
		return 0;
	}
	return *c->at++;
}

// The next len bytes, or NULL.
static inline const uint8_t *dw_skip(struct dw_cursor *c, uint64_t len)
{
	const uint8_t *from = c->at;

	if (len > dw_left(c)) {
		c->bad = true;
		return NULL;
	}
	c->at += len;
	return from;
}

uint64_t dw_uleb(struct dw_cursor *c);
int64_t dw_sleb(struct dw_cursor *c);
// A value of the format in the low four bits of a DW_EH_PE_ encoding, for files of 64 or 32 bits.
uint64_t dw_value(struct dw_cursor *c, uint8_t encoding, bool is64);
// A code pointer: absolute or relative to `here`, its own address. What else there is, no linker writes for code.
uint64_t dw_pointer(struct dw_cursor *c, uint8_t encoding, uint64_t here, bool is64);

#endif
