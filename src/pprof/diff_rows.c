// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/diff_internal.h"

// Of the larger side's total: a change below it is not worth a look, however sure it is.
#define SHARE_LEAST 0.01

double diff_rate(const struct diff *d, enum diff_side side, double sum)
{
	return sum / d->facts[side].coverage.node_seconds;
}

static double variance(const struct diff *d, enum diff_side side, double var)
{
	double seconds = d->facts[side].coverage.node_seconds;

	return var / (seconds * seconds);
}

double diff_error(const struct diff *d, const struct diff_cell *c)
{
	return sqrt(variance(d, DIFF_BASE, c->side[DIFF_BASE].var_value) + variance(d, DIFF_INCIDENT, c->side[DIFF_INCIDENT].var_value));
}

// One in a hundred comparisons of equal windows may show a change, among n that each could; the errors themselves are
// estimated from few buckets, hence the wider tail.
double diff_limit(size_t n)
{
	double z = sqrt(2 * log((double)(n < 1 ? 1 : n) / 0.01));

	return z * (1 + (z * z + 1) / (4 * 18));
}

static double mean_of(const struct diff_sum *s)
{
	return s->ops > 0 ? s->time / s->ops : 0;
}

struct diff_row diff_row_of(const struct diff *d, const char *name, const struct diff_cell *c, double limit)
{
	const struct diff_sum *base = &c->side[DIFF_BASE], *incident = &c->side[DIFF_INCIDENT];
	struct diff_row r = { .name = name, .error = diff_error(d, c) };
	double change, least;

	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		r.value[side] = diff_rate(d, side, c->side[side].value);
		r.ops[side] = diff_rate(d, side, c->side[side].ops);
		r.mean_ns[side] = mean_of(&c->side[side]);
	}
	change = fabs(r.value[1] - r.value[0]);
	least = SHARE_LEAST * fmax(diff_rate(d, DIFF_BASE, d->total[DIFF_BASE].value), diff_rate(d, DIFF_INCIDENT, d->total[DIFF_INCIDENT].value));
	r.beyond_noise = change > limit * r.error && change > least;
	r.appeared = r.beyond_noise && base->value <= 0 && base->ops <= 0;
	r.gone = r.beyond_noise && incident->value <= 0 && incident->ops <= 0;
	return r;
}

struct ranked {
	struct diff_row row;
	double key, depth;
};

static double change_of(const struct diff_row *r)
{
	return fabs(r->value[DIFF_INCIDENT] - r->value[DIFF_BASE]);
}

// Functions of one chain of calls change by the same: among changes that are about equal (within 5%) the one nearest to
// the leaf says most, and the leaf itself and the root say least.
static int compare(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->row.beyond_noise != y->row.beyond_noise)
		return x->row.beyond_noise ? -1 : 1;
	if (x->key != y->key)
		return x->key > y->key ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	if (change_of(&x->row) != change_of(&y->row))
		return change_of(&x->row) > change_of(&y->row) ? -1 : 1;
	return strcmp(x->row.name, y->row.name);
}

static double depth_of(const struct diff_cell *c)
{
	if (c->root)
		return 2e9;
	if (c->leaf)
		return 1e9;
	return c->weight > 0 ? c->depth / c->weight : 1e8;
}

int diff_rows(struct diff *d, enum diff_by by, struct diff_row **ret, size_t *ret_n)
{
	const struct diff_group *g = &d->groups[by];
	double limit = diff_limit(g->keys.n);
	struct ranked *ranked = calloc((size_t)g->keys.n + 1, sizeof(*ranked));
	struct diff_row *rows = calloc((size_t)g->keys.n + 1, sizeof(*rows));
	size_t n = 0;

	if (!ranked || !rows) {
		free(ranked);
		free(rows);
		return -ENOMEM;
	}
	for (uint32_t id = 1; id <= g->keys.n; id++) {
		const struct diff_cell *c = &g->cells[id];
		struct ranked *k = &ranked[n];

		k->row = diff_row_of(d, intern_key(&g->keys, id), c, limit);
		if (k->row.value[DIFF_BASE] == 0 && k->row.value[DIFF_INCIDENT] == 0)
			continue;
		k->key = change_of(&k->row);
		if (by == DIFF_BY_FUNCTION) {
			k->key = k->key > 0 ? round(log(k->key) / log(1.05)) : -1e9;
			k->depth = depth_of(c);
		}
		n++;
	}
	qsort(ranked, n, sizeof(*ranked), compare);
	for (size_t i = 0; i < n; i++)
		rows[i] = ranked[i].row;
	free(ranked);
	*ret = rows;
	*ret_n = n;
	return 0;
}

struct diff_row diff_total(const struct diff *d)
{
	struct diff_cell c = { 0 };

	c.side[DIFF_BASE] = d->total[DIFF_BASE];
	c.side[DIFF_INCIDENT] = d->total[DIFF_INCIDENT];
	return diff_row_of(d, "total", &c, diff_limit(1));
}
