// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_TIMELINE_VARINT_H
#define BLKPROF_TIMELINE_VARINT_H

#include <stddef.h>
#include <stdint.h>

#define VARINT_MAX 10

static inline size_t varint_put(uint8_t *to, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (uint8_t)v | 0x80;
	to[n++] = (uint8_t)v;
	return n;
}

// Bytes used, 0 when it is cut off or longer than 64 bits.
static inline size_t varint_get(const uint8_t *from, size_t len, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t n = 0; n < len && n < VARINT_MAX; n++) {
		if (n == VARINT_MAX - 1 && from[n] > 1)
			return 0;
		v |= (uint64_t)(from[n] & 0x7f) << (7 * n);
		if (from[n] & 0x80)
			continue;
		*ret = v;
		return n + 1;
	}
	return 0;
}

#endif
