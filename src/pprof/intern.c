// SPDX-License-Identifier: Apache-2.0
#include "pprof/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

int memory_take(struct memory_budget *b, size_t bytes)
{
	if (!b)
		return 0;
	if (b->limit && (bytes > b->limit || b->used > b->limit - bytes))
		return -E2BIG;
	b->used += bytes;
	return 0;
}

// Tables are walked at random: with small pages the address translation costs as much as the memory. Asked for, never
// needed.
static void huge_pages(void *block, size_t bytes)
{
	const size_t huge = (size_t)2 << 20;
	uintptr_t from = ((uintptr_t)block + huge - 1) & ~(uintptr_t)(huge - 1), to = ((uintptr_t)block + bytes) & ~(uintptr_t)(huge - 1);

	if (bytes >= 2 * huge && to > from)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
}

void memory_give(struct memory_budget *b, size_t bytes)
{
	if (b)
		b->used -= bytes < b->used ? bytes : b->used;
}

int memory_grow(struct memory_budget *b, void *block, size_t *cap, size_t need, size_t size)
{
	size_t want = *cap ? *cap : size == 1 ? 256 : 16, bytes;
	void **slot = block, *moved;
	int err;

	if (need <= *cap)
		return 0;
	while (want < need)
		// Large blocks grow by half: what is allocated and not used stays small against the budget.
		if (__builtin_add_overflow(want, want * size > (8u << 20) ? want / 2 : want, &want))
			return -ENOMEM;
	if (__builtin_mul_overflow(want, size, &bytes))
		return -ENOMEM;
	err = memory_take(b, bytes - *cap * size);
	if (err)
		return err;
	moved = realloc(*slot, bytes);
	if (!moved) {
		memory_give(b, bytes - *cap * size);
		return -ENOMEM;
	}
	huge_pages(moved, bytes);
	*slot = moved;
	*cap = want;
	return 0;
}

void intern_init(struct intern *t, struct memory_budget *budget)
{
	memset(t, 0, sizeof(*t));
	t->budget = budget;
	// Without random bytes the table is still right, only predictable.
	if (getrandom(t->secret, sizeof(t->secret), GRND_NONBLOCK) != (ssize_t)sizeof(t->secret))
		t->secret[0] = (uint64_t)(uintptr_t)t * 0x9e3779b97f4a7c15ull + (uint64_t)getpid();
	t->secret[0] |= 1;
}

void intern_free(struct intern *t)
{
	memory_give(t->budget, t->cap + t->entries_cap * sizeof(*t->entries) + t->slots_cap * sizeof(*t->slots));
	free(t->bytes);
	free(t->entries);
	free(t->slots);
	memset(t, 0, sizeof(*t));
}

void intern_clear(struct intern *t)
{
	if (t->n)
		memset(t->slots, 0, t->slots_cap * sizeof(*t->slots));
	t->n = 0;
	t->len = 0;
}

static uint64_t fold(uint64_t a, uint64_t b)
{
	__uint128_t m = (__uint128_t)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

uint32_t intern_hash(const struct intern *t, const void *key, size_t len)
{
	const uint8_t *p = key;
	uint64_t h = t->secret[0] ^ len, v;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&v, p, 8);
		h = fold(h ^ 0xa0761d6478bd642full, v ^ t->secret[1]);
	}
	if (len) {
		v = 0;
		memcpy(&v, p, len);
		h = fold(h ^ 0xe7037ed1a0b428dbull, v ^ t->secret[1]);
	}
	h = fold(h ^ t->secret[0], 0x8ebc6af09c88c6e3ull);
	return (uint32_t)(h ^ h >> 32);
}

static int grow_slots(struct intern *t)
{
	size_t cap = t->slots_cap ? t->slots_cap * 2 : 64;
	struct intern_slot *slots;
	int err = memory_take(t->budget, (cap - t->slots_cap) * sizeof(*slots));

	if (err)
		return err;
	slots = calloc(cap, sizeof(*slots));
	if (!slots) {
		memory_give(t->budget, (cap - t->slots_cap) * sizeof(*slots));
		return -ENOMEM;
	}
	huge_pages(slots, cap * sizeof(*slots));
	for (size_t i = 0; i < t->slots_cap; i++) {
		size_t s = t->slots[i].hash & (cap - 1);

		if (!t->slots[i].id)
			continue;
		while (slots[s].id)
			s = (s + 1) & (cap - 1);
		slots[s] = t->slots[i];
	}
	free(t->slots);
	t->slots = slots;
	t->slots_cap = cap;
	return 0;
}

static int append(struct intern *t, const void *key, size_t len)
{
	size_t need = (len + 8) & ~(size_t)7; // room for a NUL, and the next key is aligned again
	int err;

	if (t->n >= UINT32_MAX - 1 || len > UINT32_MAX - 16)
		return -EOVERFLOW;
	err = memory_grow(t->budget, &t->bytes, &t->cap, t->len + need, 1);
	if (!err)
		err = memory_grow(t->budget, &t->entries, &t->entries_cap, (size_t)t->n + 1, sizeof(*t->entries));
	if (err)
		return err;
	t->entries[t->n] = (struct intern_entry){ .offset = t->len, .len = (uint32_t)len };
	if (len)
		memcpy(t->bytes + t->len, key, len);
	memset(t->bytes + t->len + len, 0, need - len);
	t->len += need;
	t->n++;
	return 0;
}

uint32_t intern_find(const struct intern *t, const void *key, size_t len)
{
	uint32_t h = intern_hash(t, key, len);

	if (!t->slots_cap)
		return 0;
	for (size_t s = h & (t->slots_cap - 1); t->slots[s].id; s = (s + 1) & (t->slots_cap - 1)) {
		const struct intern_entry *e = &t->entries[t->slots[s].id - 1];

		if (t->slots[s].hash == h && e->len == len && (!len || !memcmp(t->bytes + e->offset, key, len)))
			return t->slots[s].id;
	}
	return 0;
}

int intern_put(struct intern *t, const void *key, size_t len, uint32_t *ret_id, bool *ret_new)
{
	return intern_put_hashed(t, key, len, intern_hash(t, key, len), ret_id, ret_new);
}

int intern_put_hashed(struct intern *t, const void *key, size_t len, uint32_t h, uint32_t *ret_id, bool *ret_new)
{
	size_t s;
	int err;

	if ((size_t)t->n * 4 >= t->slots_cap * 3) {
		err = grow_slots(t);
		if (err)
			return err;
	}
	for (s = h & (t->slots_cap - 1); t->slots[s].id; s = (s + 1) & (t->slots_cap - 1)) {
		const struct intern_entry *e;

		if (t->slots[s].hash != h)
			continue;
		e = &t->entries[t->slots[s].id - 1];
		if (e->len == len && (!len || !memcmp(t->bytes + e->offset, key, len))) {
			*ret_id = t->slots[s].id;
			if (ret_new)
				*ret_new = false;
			return 0;
		}
	}
	err = append(t, key, len);
	if (err)
		return err;
	t->slots[s] = (struct intern_slot){ .hash = h, .id = t->n };
	*ret_id = t->n;
	if (ret_new)
		*ret_new = true;
	return 0;
}
