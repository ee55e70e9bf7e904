// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_columns.h"
#include "pprof/profile.h"

void sums_free(struct sums *s)
{
	free(s->sum);
	free(s->slots);
	memset(s, 0, sizeof(*s));
}

void sums_clear(struct sums *s)
{
	s->n = 0;
	if (s->slots)
		memset(s->slots, 0, s->slots_cap * sizeof(*s->slots));
}

static inline size_t slot_of(const struct sums *s, struct row_id id)
{
	uint64_t h = ((uint64_t)id.stack << 32 | id.labels) * 0x9e3779b97f4a7c15ull ^ (uint64_t)id.pid * 0xff51afd7ed558ccdull;

	return (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull >> 20 & (s->slots_cap - 1);
}

static inline bool same(struct row_id a, struct row_id b)
{
	return a.stack == b.stack && a.labels == b.labels && a.pid == b.pid;
}

static int grow(struct sums *s)
{
	size_t cap = s->cap ? s->cap * 2 : 256, slots_cap = cap * 2;
	struct sum *sum = realloc(s->sum, cap * sizeof(*sum));
	uint32_t *slots;

	if (!sum)
		return -ENOMEM;
	s->sum = sum;
	slots = calloc(slots_cap, sizeof(*slots));
	if (!slots || cap >= UINT32_MAX) {
		free(slots);
		return -ENOMEM;
	}
	free(s->slots);
	s->slots = slots;
	s->slots_cap = slots_cap;
	s->cap = cap;
	for (size_t i = 0; i < s->n; i++) {
		size_t k = slot_of(s, s->sum[i].id);

		while (slots[k])
			k = (k + 1) & (slots_cap - 1);
		slots[k] = (uint32_t)i + 1;
	}
	return 0;
}

void sums_ask_slot(const struct sums *s, struct row_id id)
{
	if (s->slots_cap)
		__builtin_prefetch(&s->slots[slot_of(s, id)]);
}

void sums_ask_sum(const struct sums *s, struct row_id id)
{
	uint32_t at = s->slots_cap ? s->slots[slot_of(s, id)] : 0;

	if (at)
		__builtin_prefetch(&s->sum[at - 1], 1);
}

int sums_add(struct sums *s, struct row_id id, const int64_t value[PPROF_TYPES])
{
	size_t k;

	if (s->n == s->cap && grow(s))
		return -ENOMEM;
	for (k = slot_of(s, id); s->slots[k]; k = (k + 1) & (s->slots_cap - 1)) {
		struct sum *found = &s->sum[s->slots[k] - 1];

		if (!same(found->id, id))
			continue;
		for (unsigned c = 0; c < PPROF_TYPES; c++)
			found->value[c] = saturating_add(found->value[c], value[c]);
		return 0;
	}
	s->slots[k] = (uint32_t)s->n + 1;
	s->sum[s->n].id = id;
	memcpy(s->sum[s->n].value, value, sizeof(s->sum[0].value));
	s->n++;
	return 0;
}

static int compare(const void *pa, const void *pb)
{
	const struct row_id *a = &((const struct sum *)pa)->id, *b = &((const struct sum *)pb)->id;

	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	if (a->labels != b->labels)
		return a->labels < b->labels ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

void sums_sort(struct sums *s)
{
	if (s->n)
		qsort(s->sum, s->n, sizeof(*s->sum), compare);
}
