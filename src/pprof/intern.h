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
// The id of the key, added when it is new. 0, -ENOMEM, -E2BIG (budget) or -EOVERFLOW (too many or too long).
int intern_put(struct intern *t, const void *key, size_t len, uint32_t *ret_id, bool *ret_new);

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
