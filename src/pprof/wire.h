// SPDX-License-Identifier: Apache-2.0
// The protobuf wire format, both ways. Writers write to memory that the caller has sized with the *_size functions.
#ifndef BLKPROF_PPROF_WIRE_H
#define BLKPROF_PPROF_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_GROUP = 3,
	WIRE_GROUP_END = 4,
	WIRE_FIXED32 = 5,
};

#define WIRE_VARINT_MAX 10

static inline size_t wire_varint_size(uint64_t v)
{
	// 7 bits a byte: ceil(bits / 7) without a division, right for 0 as well.
	return (size_t)((64 - __builtin_clzll(v | 1)) * 9 + 64) / 64;
}

static inline uint8_t *wire_put_varint(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)v | 0x80;
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

// All field numbers of profile.proto are below 16: a tag is one byte.
static inline uint8_t *wire_put_tag(uint8_t *p, unsigned field, enum wire_type type)
{
	*p++ = (uint8_t)(field << 3 | type);
	return p;
}

// A scalar field; 0 is the default and is not written.
static inline size_t wire_scalar_size(uint64_t v)
{
	return v ? 1 + wire_varint_size(v) : 0;
}

static inline uint8_t *wire_put_scalar(uint8_t *p, unsigned field, uint64_t v)
{
	return v ? wire_put_varint(wire_put_tag(p, field, WIRE_VARINT), v) : p;
}

static inline size_t wire_bytes_size(size_t len)
{
	return 1 + wire_varint_size(len) + len;
}

static inline uint8_t *wire_put_length(uint8_t *p, unsigned field, size_t len)
{
	return wire_put_varint(wire_put_tag(p, field, WIRE_BYTES), len);
}

static inline uint8_t *wire_put_bytes(uint8_t *p, unsigned field, const void *data, size_t len)
{
	p = wire_put_length(p, field, len);
	memcpy(p, data, len);
	return p + len;
}

enum wire_result {
	WIRE_OK,
	WIRE_SHORT,    // the input ends inside the number
	WIRE_OVERFLOW, // more than 64 bits
};

// Reads the number at *p, which ends before `end`, and moves *p behind it. Untouched on failure.
static inline enum wire_result wire_get_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	const uint8_t *q = *p;
	uint64_t v = 0;
	unsigned shift = 0;

	for (;; shift += 7) {
		if (q == end)
			return WIRE_SHORT;
		if (shift == 63 && *q > 1)
			return WIRE_OVERFLOW;
		v |= (uint64_t)(*q & 0x7f) << shift;
		if (*q++ < 0x80)
			break;
	}
	*p = q;
	*ret = v;
	return WIRE_OK;
}

#endif
