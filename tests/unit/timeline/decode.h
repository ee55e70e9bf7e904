// SPDX-License-Identifier: Apache-2.0
// Messages read back by another way than they were written: a field of a message by its number, however deep.
#ifndef BLKPROF_TESTS_TIMELINE_DECODE_H
#define BLKPROF_TESTS_TIMELINE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct field {
	unsigned number, wire;
	uint64_t value;	     // of varints and fixed ones
	const uint8_t *data; // of the others
	size_t len;
};

// The next field of a message; false at its end. *bad on what is malformed.
static inline bool field_next(const uint8_t **at, const uint8_t *end, struct field *ret, bool *bad)
{
	uint64_t numbers[2] = { 0, 0 };
	unsigned n = 1;

	if (*at == end)
		return false;
	for (unsigned i = 0; i < n; i++) {
		unsigned shift = 0;

		for (;; shift += 7) {
			if (*at == end || shift > 63) {
				*bad = true;
				return false;
			}
			numbers[i] |= (uint64_t)(**at & 0x7f) << shift;
			if (!(*(*at)++ & 0x80))
				break;
		}
		if (!i && (numbers[0] & 7) != 1)
			n = 2;
	}
	ret->number = (unsigned)(numbers[0] >> 3);
	ret->wire = numbers[0] & 7;
	ret->value = numbers[1];
	ret->data = *at;
	ret->len = ret->wire == 1 ? 8 : ret->wire == 2 ? (size_t)numbers[1] : 0;
	if (ret->wire > 2 || ret->len > (size_t)(end - *at)) {
		*bad = true;
		return false;
	}
	*at += ret->len;
	return true;
}

// The n-th field of that number; false when there is none.
static inline bool field_get(const uint8_t *data, size_t len, unsigned number, unsigned n, struct field *ret)
{
	const uint8_t *at = data;
	bool bad = false;

	*ret = (struct field){ 0 };
	while (field_next(&at, data + len, ret, &bad))
		if (ret->number == number && !n--)
			return true;
	return false;
}

#endif
