// SPDX-License-Identifier: Apache-2.0
// From ids of a store to numbers of this process.
#ifndef BLKPROF_COLLECTOR_STORE_IDMAP_H
#define BLKPROF_COLLECTOR_STORE_IDMAP_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct idmap {
	struct idmap_slot {
		uint32_t key, value;
	} *slot; // key 0 = free
	size_t n, cap;
};

static inline size_t idmap_at(const struct idmap *m, uint32_t key)
{
	size_t k = (size_t)((uint64_t)key * 0x9e3779b97f4a7c15ull >> 32) & (m->cap - 1);

	while (m->slot[k].key && m->slot[k].key != key)
		k = (k + 1) & (m->cap - 1);
	return k;
}

// NULL when it is not there.
static inline uint32_t *idmap_find(const struct idmap *m, uint32_t key)
{
	size_t k;

	if (!m->cap || !key)
		return NULL;
	k = idmap_at(m, key);
	return m->slot[k].key ? &m->slot[k].value : NULL;
}

static inline int idmap_put(struct idmap *m, uint32_t key, uint32_t value)
{
	size_t k;

	if (m->n * 4 >= m->cap * 3) {
		struct idmap old = *m;

		m->cap = old.cap ? old.cap * 2 : 64;
		m->slot = calloc(m->cap, sizeof(*m->slot));
		if (!m->slot) {
			*m = old;
			return -ENOMEM;
		}
		for (size_t i = 0; i < old.cap; i++)
			if (old.slot[i].key)
				m->slot[idmap_at(m, old.slot[i].key)] = old.slot[i];
		free(old.slot);
	}
	k = idmap_at(m, key);
	m->n += !m->slot[k].key;
	m->slot[k] = (struct idmap_slot){ key, value };
	return 0;
}

static inline void idmap_clear(struct idmap *m)
{
	if (m->n)
		memset(m->slot, 0, m->cap * sizeof(*m->slot));
	m->n = 0;
}

static inline void idmap_free(struct idmap *m)
{
	free(m->slot);
	*m = (struct idmap){ 0 };
}

#endif
