// SPDX-License-Identifier: Apache-2.0
// 64-bit hash of bytes, for tables and identities of this process only: not persistent, not for hostile collisions.
// Hash tables are uthash's (uthash.h), whose HASH_FUNCTION may be set to this.
#ifndef BLKPROF_COMMON_HASH_H
#define BLKPROF_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t hash_mix(uint64_t h, uint64_t v)
{
	h ^= v;
	h *= 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

static inline uint64_t hash_bytes(const void *data, size_t len, uint64_t seed)
{
	const uint8_t *p = data;
	uint64_t h = seed ^ (len * 0xff51afd7ed558ccdull), v;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&v, p, 8);
		h = hash_mix(h, v);
	}
	v = 0;
	memcpy(&v, p, len);
	h = hash_mix(h, v);
	h *= 0xc4ceb9fe1a85ec53ull;
	return h ^ (h >> 32);
}

#endif
