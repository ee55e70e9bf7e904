// SPDX-License-Identifier: Apache-2.0
// A table of byte strings: the same bytes get the same id, ids are dense from 1 in the order of first use. The hash is
// keyed with a random secret, since the bytes come from outside.
#ifndef BLKPROF_PPROF_INTERN_H
#define BLKPROF_PPROF_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a set of tables may take together. limit 0 = no limit.
struct memory_budget {
	size_t used, limit;
};

// Takes `bytes` from the budget: 0, or -E2BIG when that is more than it has.
int memory_take(struct memory_budget *b, size_t bytes);
void memory_give(struct memory_budget *b, size_t bytes);
// A block of `*cap` elements of `size` bytes grown to hold `need` elements; *cap becomes the new capacity. 0, -ENOMEM or
// -E2BIG with the block untouched.
int memory_grow(struct memory_budget *b, void *block, size_t *cap, size_t need, size_t size);

struct intern_entry {
	size_t offset;
	uint32_t len, pad;
};

// The hash beside the id: a look-up touches an entry only when it is most likely the right one.
struct intern_slot {
	uint32_t hash, id; // id 0 = free
};

struct intern {
	uint8_t *bytes;
	size_t len, cap;
	struct intern_entry *entries; // of id i: entries[i - 1]
	size_t entries_cap;
	uint32_t n;
	struct intern_slot *slots; // a power of two of them
	size_t slots_cap;
	uint64_t secret[2];
	struct memory_budget *budget; // shared, not owned; may be NULL
};

void intern_init(struct intern *t, struct memory_budget *budget);
void intern_free(struct intern *t);
void intern_clear(struct intern *t); // keeps its memory and its secret
uint32_t intern_find(const struct intern *t, const void *key, size_t len); // 0 = it is not there
// The id of the key, added when it is new. 0, -ENOMEM, -E2BIG (budget) or -EOVERFLOW (too many or too long).
int intern_put(struct intern *t, const void *key, size_t len, uint32_t *ret_id, bool *ret_new);

// The same in steps, for those who look up many keys and have other work meanwhile: a table is larger than the caches, and
// each step waits for the memory that the one before has asked for.
uint32_t intern_hash(const struct intern *t, const void *key, size_t len);
int intern_put_hashed(struct intern *t, const void *key, size_t len, uint32_t hash, uint32_t *ret_id, bool *ret_new);

static inline void intern_ask_slot(const struct intern *t, uint32_t hash)
{
	if (t->slots_cap)
		__builtin_prefetch(&t->slots[hash & (t->slots_cap - 1)]);
}

static inline const struct intern_entry *intern_likely(const struct intern *t, uint32_t hash)
{
	const struct intern_slot *s = t->slots_cap ? &t->slots[hash & (t->slots_cap - 1)] : NULL;

	return s && s->id && s->hash == hash ? &t->entries[s->id - 1] : NULL;
}

static inline void intern_ask_entry(const struct intern *t, uint32_t hash)
{
	__builtin_prefetch(intern_likely(t, hash));
}

static inline void intern_ask_key(const struct intern *t, uint32_t hash)
{
	const struct intern_entry *e = intern_likely(t, hash);

	if (!e)
		return;
	__builtin_prefetch(t->bytes + e->offset);
	__builtin_prefetch(t->bytes + e->offset + 64);
}

// The bytes of an id: aligned to 8, a NUL behind them that the length does not count. Valid until the next intern_put.
static inline const void *intern_key(const struct intern *t, uint32_t id)
{
	return t->bytes + t->entries[id - 1].offset;
}

static inline uint32_t intern_len(const struct intern *t, uint32_t id)
{
	return t->entries[id - 1].len;
}

#endif
