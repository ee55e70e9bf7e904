// SPDX-License-Identifier: Apache-2.0
// The 128-bit hash by which a store knows strings, locations and stacks. Keyed with the store's secret: agents cannot
// choose two things that become one. The first half is what the index finds, the second tells a collision of it.
#ifndef BLKPROF_COLLECTOR_STORE_HASH_H
#define BLKPROF_COLLECTOR_STORE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct hash128 {
	uint64_t a, b;
};

struct hash_secret {
	uint64_t k[4];
};

static inline uint64_t hash128_fold(uint64_t a, uint64_t b)
{
	__uint128_t m = (__uint128_t)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline void hash128_add(struct hash128 *h, const struct hash_secret *s, uint64_t v)
{
	h->a = hash128_fold(h->a ^ s->k[0], v ^ s->k[1]) + v;
	h->b = hash128_fold(h->b ^ s->k[2], v ^ s->k[3]) ^ ((v << 31) | (v >> 33));
}

static inline void hash128_add_hash(struct hash128 *h, const struct hash_secret *s, struct hash128 v)
{
	hash128_add(h, s, v.a);
	hash128_add(h, s, v.b);
}

static inline void hash128_add_bytes(struct hash128 *h, const struct hash_secret *s, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t v;

	hash128_add(h, s, len);
	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&v, p, 8);
		hash128_add(h, s, v);
	}
	v = 0;
	if (len)
		memcpy(&v, p, len);
	hash128_add(h, s, v);
}

// tag: what kind of thing it is.
static inline struct hash128 hash128_start(const struct hash_secret *s, uint64_t tag)
{
	struct hash128 h = { s->k[1] + tag, s->k[3] ^ tag };

	return h;
}

static inline struct hash128 hash128_end(struct hash128 h, const struct hash_secret *s)
{
	struct hash128 r = { hash128_fold(h.a ^ s->k[2], h.b ^ 0x8ebc6af09c88c6e3ull), hash128_fold(h.b ^ s->k[0], h.a ^ 0x589965cc75374cc3ull) };

	return r;
}

#endif
