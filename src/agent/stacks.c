// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/record_rec.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)(*(const uint64_t *)(key) >> 32))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#define TURNS_UNUSED 3 // then it is unsent
#define TURNS_UNSENT 3 // then it is freed

struct stack {
	uint64_t hash;
	UT_hash_handle hh;
	struct stack *prev, *next; // last used first
	uint32_t used;		   // turn
	uint16_t n_user, n_kernel;
	uint8_t n_callers, flags, broken;
	bool unsent;
	uint64_t frames[];
};

struct stacks {
	struct stack *table, *list;
	size_t memory, max;
	uint64_t evicted;
	uint32_t turn;
	stacks_unsend_fn unsend;
	void *context;
};

struct stacks *stacks_new(size_t memory, stacks_unsend_fn unsend, void *context)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->max = memory;
	s->unsend = unsend;
	s->context = context;
	return s;
}

static size_t size_of(const struct stack *k)
{
	// uthash's buckets cost about two words an element, malloc as much.
	return sizeof(*k) + 32 + 8 * ((size_t)k->n_callers + k->n_user + k->n_kernel);
}

static void drop(struct stacks *s, struct stack *k)
{
	if (!k->unsent)
		s->unsend(k->hash, s->context);
	HASH_DEL(s->table, k);
	DL_DELETE(s->list, k);
	s->memory -= size_of(k);
	free(k);
}

void stacks_free(struct stacks *s)
{
	struct stack *k;

	if (!s)
		return;
	while ((k = s->list)) {
		k->unsent = true;
		drop(s, k);
	}
	free(s);
}

static void use(struct stacks *s, struct stack *k)
{
	k->used = s->turn;
	if (s->list == k)
		return;
	DL_DELETE(s->list, k);
	DL_PREPEND(s->list, k);
}

static struct stack *find(const struct stacks *s, uint64_t hash)
{
	struct stack *k;

	HASH_FIND(hh, s->table, &hash, sizeof(hash), k);
	return k;
}

static int insert(struct stacks *s, const struct stack_rec *rec, size_t n)
{
	struct stack *k = calloc(1, sizeof(*k) + n * 8);

	if (!k)
		return -ENOMEM;
	k->hash = rec->hash;
	k->n_callers = rec->n_callers;
	k->n_user = rec->n_user;
	k->n_kernel = rec->n_kernel;
	k->flags = rec->flags;
	k->broken = rec->broken;
	k->used = s->turn;
	memcpy(k->frames, rec->frames, n * 8);
	HASH_ADD(hh, s->table, hash, sizeof(k->hash), k);
	if (!k->hh.tbl) {
		free(k);
		return -ENOMEM;
	}
	DL_PREPEND(s->list, k);
	s->memory += size_of(k);
	while (s->memory > s->max && s->list->prev != k) {
		s->evicted++;
		drop(s, s->list->prev);
	}
	return 0;
}

int stacks_add(struct stacks *s, const void *record, size_t size)
{
	const struct stack_rec *rec = record;
	struct stack *k;
	size_t n;

	if (size < offsetof(struct stack_rec, frames))
		return -EINVAL;
	n = (size_t)rec->n_callers + rec->n_user + rec->n_kernel;
	if (rec->n_callers > RECORD_CALLERS || rec->n_user > RECORD_FRAMES || rec->n_kernel > RECORD_FRAMES ||
	    n * 8 > size - offsetof(struct stack_rec, frames))
		return -EINVAL;
	k = find(s, rec->hash);
	if (!k)
		return insert(s, rec, n);
	k->unsent = false;
	use(s, k);
	return 0;
}

bool stacks_find(struct stacks *s, uint64_t hash, struct stack_frames *ret)
{
	struct stack *k = hash ? find(s, hash) : NULL;

	if (!k)
		return false;
	use(s, k);
	ret->callers = k->frames;
	ret->n_callers = k->n_callers;
	ret->user = k->frames + k->n_callers;
	ret->n_user = k->n_user;
	ret->kernel = ret->user + k->n_user;
	ret->n_kernel = k->n_kernel;
	ret->flags = k->flags;
	ret->broken = k->broken;
	return true;
}

void stacks_turn(struct stacks *s)
{
	struct stack *k = s->list ? s->list->prev : NULL, *before;

	s->turn++;
	for (; k && s->turn - k->used > TURNS_UNUSED; k = before) {
		before = k == s->list ? NULL : k->prev;
		if (!k->unsent)
			s->unsend(k->hash, s->context);
		k->unsent = true;
		if (s->turn - k->used > TURNS_UNUSED + TURNS_UNSENT)
			drop(s, k);
	}
}

uint64_t stacks_evicted(const struct stacks *s)
{
	return s->evicted;
}

size_t stacks_memory(const struct stacks *s)
{
	return s->memory;
}
