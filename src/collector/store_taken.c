// SPDX-License-Identifier: Apache-2.0
// A treap: a search tree over (agent, number) that is a heap over random weights, so that its depth is that of a tree built
// in random order, whatever the order was.
#include "collector/store_taken.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "pprof/intern.h"

struct taken_node {
	struct source s;
	uint32_t left, right, weight;
};

void taken_free(struct taken *t)
{
	free(t->node);
	memset(t, 0, sizeof(*t));
}

void taken_clear(struct taken *t)
{
	t->n = 0;
	t->root = t->unused = 0;
}

static uint32_t next_weight(struct taken *t)
{
	// Without random bytes it still works, only predictably.
	if (!t->random && getrandom(&t->random, sizeof(t->random), GRND_NONBLOCK) != (ssize_t)sizeof(t->random))
		t->random = (uint64_t)(uintptr_t)t;
	t->random += 0x9e3779b97f4a7c15ull;
	return (uint32_t)((t->random ^ t->random >> 30) * 0xbf58476d1ce4e5b9ull >> 32);
}

static int new_node(struct taken *t, struct source s, uint32_t *ret)
{
	uint32_t at = t->unused;

	if (at) {
		t->unused = t->node[at].left;
	} else {
		at = t->n ? (uint32_t)t->n : 1;
		if (at == UINT32_MAX || memory_grow(NULL, &t->node, &t->cap, (size_t)at + 1, sizeof(*t->node)))
			return -ENOMEM;
		t->n = (size_t)at + 1;
	}
	t->node[at] = (struct taken_node){ .s = s, .weight = next_weight(t) };
	*ret = at;
	return 0;
}

// Does it lie wholly before batch `at` of an agent?
static bool is_before(const struct source *s, int64_t agent, uint64_t at)
{
	return s->agent != agent ? s->agent < agent : s->last < at;
}

static void split(struct taken *t, uint32_t tree, const struct source *at, uint32_t *left, uint32_t *right)
{
	struct taken_node *n = tree ? &t->node[tree] : NULL;

	if (!n) {
		*left = *right = 0;
	} else if (is_before(&n->s, at->agent, at->first)) {
		*left = tree;
		split(t, n->right, at, &n->right, right);
	} else {
		*right = tree;
		split(t, n->left, at, left, &n->left);
	}
}

// All of a is before all of b.
static uint32_t join(struct taken *t, uint32_t a, uint32_t b)
{
	if (!a || !b)
		return a ? a : b;
	if (t->node[a].weight > t->node[b].weight) {
		t->node[a].right = join(t, t->node[a].right, b);
		return a;
	}
	t->node[b].left = join(t, a, t->node[b].left);
	return b;
}

const struct source *taken_from(const struct taken *t, int64_t agent, uint64_t at)
{
	const struct source *found = NULL;

	for (uint32_t i = t->root; i;) {
		const struct taken_node *n = &t->node[i];

		if (is_before(&n->s, agent, at)) {
			i = n->right;
		} else {
			found = &n->s;
			i = n->left;
		}
	}
	return found && found->agent == agent ? found : NULL;
}

bool taken_has(const struct taken *t, struct source w)
{
	const struct source *s = taken_from(t, w.agent, w.first);

	return s && s->first <= w.first && w.last <= s->last;
}

bool taken_meets(const struct taken *t, struct source w)
{
	const struct source *s = taken_from(t, w.agent, w.first);

	return s && s->first <= w.last;
}

static void drop(struct taken *t, const struct source *s)
{
	uint32_t *link = &t->root, at;

	while (&t->node[*link].s != s)
		link = is_before(&t->node[*link].s, s->agent, s->first) ? &t->node[*link].right : &t->node[*link].left;
	at = *link;
	*link = join(t, t->node[at].left, t->node[at].right);
	t->node[at].left = t->unused;
	t->unused = at;
}

int taken_add(struct taken *t, struct source w)
{
	const struct source *s;
	uint32_t at, left, right;

	while ((s = taken_from(t, w.agent, w.first ? w.first - 1 : 0)) && s->first <= w.last + 1) {
		if (s->first <= w.first && w.last <= s->last)
			return 0;
		w.first = s->first < w.first ? s->first : w.first;
		w.last = s->last > w.last ? s->last : w.last;
		drop(t, s);
	}
	if (new_node(t, w, &at))
		return -ENOMEM;
	split(t, t->root, &w, &left, &right);
	t->root = join(t, join(t, left, at), right);
	return 0;
}

static int list(const struct taken *t, uint32_t tree, struct sources *ret)
{
	const struct taken_node *n = tree ? &t->node[tree] : NULL;
	int err;

	if (!n)
		return 0;
	err = list(t, n->left, ret);
	if (!err)
		err = sources_append(ret, n->s);
	return err ? err : list(t, n->right, ret);
}

int taken_list(const struct taken *t, struct sources *ret)
{
	return list(t, t->root, ret);
}
