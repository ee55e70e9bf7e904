// SPDX-License-Identifier: Apache-2.0
#include "pprof/flame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int child(struct flame *g, uint32_t parent, uint32_t frame, uint32_t *ret)
{
	uint32_t key[2] = { parent, frame };
	bool added;
	int err = intern_put(&g->edges, key, sizeof(key), ret, &added);

	if (err || !added)
		return err;
	err = memory_grow(g->folded->budget, &g->nodes, &g->nodes_cap, (size_t)*ret + 1, sizeof(*g->nodes));
	if (err)
		return err;
	g->nodes[*ret] = (struct flame_node){ .frame = frame, .parent = parent };
	g->n = (size_t)*ret + 1;
	return 0;
}

static int add_stack(struct flame *g, uint32_t id, int64_t v)
{
	const struct folded *f = g->folded;
	const uint32_t *frames = intern_key(&f->stacks, id);
	size_t n = intern_len(&f->stacks, id) / sizeof(*frames);
	uint32_t at = 0;
	int err;

	g->nodes[0].value = saturating_add(g->nodes[0].value, v);
	for (size_t i = 0; i < n; i++) {
		if (i == SVG_DEPTH_MAX) {
			g->cut = true;
			break;
		}
		err = child(g, at, frames[i], &at);
		if (err)
			return err;
		g->nodes[at].value = saturating_add(g->nodes[at].value, v);
	}
	return 0;
}

static int compare(const void *a, const void *b, void *context)
{
	const struct flame *g = context;
	const struct flame_node *x = &g->nodes[*(const uint32_t *)a], *y = &g->nodes[*(const uint32_t *)b];
	int c;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	c = strcmp(folded_name(g->folded, x->frame), folded_name(g->folded, y->frame));
	return c ? c : x->frame < y->frame ? -1 : x->frame > y->frame;
}

// Siblings side by side in the order of their names: two graphs of one program look alike.
static int lay_out(struct flame *g)
{
	double total = (double)g->nodes[0].value, x = 0;
	int err = memory_grow(g->folded->budget, &g->order, &g->order_cap, g->n, sizeof(*g->order));

	if (err)
		return err;
	for (uint32_t i = 1; i < g->n; i++)
		g->order[i - 1] = i;
	if (g->n > 1)
		qsort_r(g->order, g->n - 1, sizeof(*g->order), compare, g);
	for (uint32_t i = 0; i + 1 < g->n; i++) {
		struct flame_node *node = &g->nodes[g->order[i]], *parent = &g->nodes[node->parent];

		if (!parent->n_children++) {
			parent->first_child = i;
			x = 0;
		}
		// Relative to the parent, whose own place may not be known yet.
		node->x = x;
		x += total ? (double)node->value / total : 0;
	}
	// A parent's index is smaller than its children's.
	for (uint32_t i = 1; i < g->n; i++)
		g->nodes[i].x += g->nodes[g->nodes[i].parent].x;
	return 0;
}

int flame_new(const struct folded *f, size_t type, struct flame **ret)
{
	struct flame *g = calloc(1, sizeof(*g));
	size_t n_types = f->profile->n_types;
	int err;

	if (!g)
		return -ENOMEM;
	g->folded = f;
	g->type = type;
	intern_init(&g->edges, f->budget);
	err = memory_grow(f->budget, &g->nodes, &g->nodes_cap, 1, sizeof(*g->nodes));
	if (!err)
		g->nodes[0] = (struct flame_node){ 0 };
	g->n = 1;
	for (uint32_t id = 1; id <= f->stacks.n && !err; id++) {
		int64_t v = f->values[(size_t)(id - 1) * n_types + type];

		if (v > 0)
			err = add_stack(g, id, v);
	}
	if (!err)
		err = lay_out(g);
	if (err) {
		flame_free(g);
		return err;
	}
	*ret = g;
	return 0;
}

void flame_free(struct flame *g)
{
	if (!g)
		return;
	intern_free(&g->edges);
	memory_give(g->folded->budget, g->nodes_cap * sizeof(*g->nodes) + g->order_cap * sizeof(*g->order));
	free(g->nodes);
	free(g->order);
	free(g);
}
