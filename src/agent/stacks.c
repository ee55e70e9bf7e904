// SPDX-License-Identifier: Apache-2.0
#include "agent/frames.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)(*(const uint64_t *)(key) >> 32))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct stack {
	uint64_t hash;
	UT_hash_handle hh;
	uint16_t n_user, n_kernel;
	uint8_t n_callers, flags, broken;
	uint64_t frames[];
};

struct stacks {
	struct stack *table;
	unsigned max;
};

struct stacks *stacks_new(unsigned max)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (s)
		s->max = max;
	return s;
}

void stacks_free(struct stacks *s)
{
	struct stack *k, *next;

	if (!s)
		return;
	HASH_ITER(hh, s->table, k, next) {
		HASH_DEL(s->table, k);
		free(k);
	}
	free(s);
}

static struct stack *find(const struct stacks *s, uint64_t hash)
{
	struct stack *k;

	HASH_FIND(hh, s->table, &hash, sizeof(hash), k);
	return k;
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
	if (find(s, rec->hash))
		return 0;
	if (HASH_COUNT(s->table) >= s->max)
		return -ENOSPC;
	k = calloc(1, sizeof(*k) + n * 8);
	if (!k)
		return -ENOMEM;
	k->hash = rec->hash;
	k->n_callers = rec->n_callers;
	k->n_user = rec->n_user;
	k->n_kernel = rec->n_kernel;
	k->flags = rec->flags;
	k->broken = rec->broken;
	memcpy(k->frames, rec->frames, n * 8);
	HASH_ADD(hh, s->table, hash, sizeof(k->hash), k);
	if (k->hh.tbl)
		return 0;
	free(k);
	return -ENOMEM;
}

bool stacks_find(const struct stacks *s, uint64_t hash, struct stack_frames *ret)
{
	const struct stack *k = hash ? find(s, hash) : NULL;

	if (!k)
		return false;
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
