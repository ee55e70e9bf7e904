// SPDX-License-Identifier: Apache-2.0
#include "agent/unwind_store.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA_BYTES sizeof(struct unwind_arena)

struct extent {
	uint32_t start, words;
};

struct extents {
	struct extent *items;
	size_t n, capacity;
};

struct arena {
	uint32_t *words;
	struct extents holes; // by start; never two that touch
};

struct unwind_store {
	int map;
	unsigned n, max;
	size_t used;
	struct arena arenas[UNWIND_ARENAS];
	struct extents given; // places
};

struct unwind_store *unwind_store_new(int map, size_t bytes)
{
	struct unwind_store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->map = map;
	s->max = bytes / ARENA_BYTES < UNWIND_ARENAS ? (unsigned)(bytes / ARENA_BYTES) : UNWIND_ARENAS;
	return s;
}

void unwind_store_free(struct unwind_store *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->n; i++) {
		munmap(s->arenas[i].words, ARENA_BYTES);
		free(s->arenas[i].holes.items);
	}
	free(s->given.items);
	free(s);
}

static int extents_insert(struct extents *e, size_t at, struct extent x)
{
	if (e->n == e->capacity) {
		size_t capacity = e->capacity ? 2 * e->capacity : 16;
		struct extent *items = reallocarray(e->items, capacity, sizeof(*items));

		if (!items)
			return -ENOMEM;
		e->items = items;
		e->capacity = capacity;
	}
	memmove(e->items + at + 1, e->items + at, (e->n - at) * sizeof(*e->items));
	e->items[at] = x;
	e->n++;
	return 0;
}

static void extents_remove(struct extents *e, size_t at)
{
	e->n--;
	memmove(e->items + at, e->items + at + 1, (e->n - at) * sizeof(*e->items));
}

// The map of maps holds it from then on.
static void *arena_shared(struct unwind_store *s, uint32_t index)
{
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_arena", sizeof(uint32_t), ARENA_BYTES, 1, &o);
	void *memory = NULL;

	if (fd < 0)
		return NULL;
	memory = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		memory = NULL;
	if (memory && bpf_map_update_elem(s->map, &index, &fd, BPF_ANY)) {
		munmap(memory, ARENA_BYTES);
		memory = NULL;
	}
	close(fd);
	return memory;
}

static int arena_add(struct unwind_store *s)
{
	struct arena *a = &s->arenas[s->n];
	uint32_t first = s->n ? 0 : 2; // place 0 means none
	void *memory;

	if (s->n == s->max)
		return -ENOSPC;
	if (s->map < 0) {
		memory = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			memory = NULL;
	} else {
		memory = arena_shared(s, s->n);
	}
	if (!memory)
		return -ENOMEM;
	if (extents_insert(&a->holes, 0, (struct extent){ first, UNWIND_ARENA_WORDS - first })) {
		munmap(memory, ARENA_BYTES); // an arena that the map has and nobody uses is replaced on the next try
		return -ENOMEM;
	}
	a->words = memory;
	s->n++;
	return 0;
}

static bool take_hole(struct arena *a, uint32_t words, uint32_t *ret_start)
{
	for (size_t i = 0; i < a->holes.n; i++) {
		struct extent *hole = &a->holes.items[i];

		if (hole->words < words)
			continue;
		*ret_start = hole->start;
		hole->start += words;
		hole->words -= words;
		if (!hole->words)
			extents_remove(&a->holes, i);
		return true;
	}
	return false;
}

int unwind_store_take(struct unwind_store *s, uint32_t words, uint32_t *ret_place)
{
	uint32_t start;
	int err;

	if (!words || words > UNWIND_ARENA_WORDS - 2)
		return -E2BIG;
	words = (words + 1) & ~1u;
	for (unsigned i = 0;; i++) {
		if (i == s->n) {
			err = arena_add(s);
			if (err)
				return err;
		}
		if (!take_hole(&s->arenas[i], words, &start))
			continue;
		s->used += words * sizeof(uint32_t);
		*ret_place = i << UNWIND_ARENA_BITS | start;
		memset(unwind_store_at(s, *ret_place), 0, words * sizeof(uint32_t));
		return 0;
	}
}

uint32_t *unwind_store_at(const struct unwind_store *s, uint32_t place)
{
	return s->arenas[place >> UNWIND_ARENA_BITS].words + (place & (UNWIND_ARENA_WORDS - 1));
}

int unwind_store_give(struct unwind_store *s, uint32_t place, uint32_t words)
{
	return extents_insert(&s->given, s->given.n, (struct extent){ place, (words + 1) & ~1u });
}

static void put_hole(struct arena *a, struct extent x)
{
	struct extents *holes = &a->holes;
	size_t at = 0;

	while (at < holes->n && holes->items[at].start < x.start)
		at++;
	if (at < holes->n && x.start + x.words == holes->items[at].start) {
		holes->items[at].start = x.start;
		holes->items[at].words += x.words;
	} else if (extents_insert(holes, at, x)) {
		return; // without memory the words stay unused
	}
	if (at && holes->items[at - 1].start + holes->items[at - 1].words == holes->items[at].start) {
		holes->items[at - 1].words += holes->items[at].words;
		extents_remove(holes, at);
	}
}

void unwind_store_reclaim(struct unwind_store *s)
{
	for (size_t i = 0; i < s->given.n; i++) {
		struct extent x = s->given.items[i];
		struct arena *a = &s->arenas[x.start >> UNWIND_ARENA_BITS];

		s->used -= x.words * sizeof(uint32_t);
		x.start &= UNWIND_ARENA_WORDS - 1;
		put_hole(a, x);
	}
	s->given.n = 0;
}

size_t unwind_store_given(const struct unwind_store *s)
{
	return s->given.n;
}

size_t unwind_store_bytes(const struct unwind_store *s)
{
	return s->n * ARENA_BYTES;
}

size_t unwind_store_used(const struct unwind_store *s)
{
	return s->used;
}
