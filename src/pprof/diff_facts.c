// SPDX-License-Identifier: Apache-2.0
// What profiles of ours say of themselves in their comments: windows, samples taken, how much the load varied.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/diff_internal.h"

#define WINDOWS_MAX 100000
#define BUCKETS_MAX 4096
// How much two windows of an equal load differ by at least, of their value: where the profiles say how their load varied,
// and where they do not.
#define FLOOR_SERIES 0.02
#define FLOOR_UNKNOWN 0.10

struct window {
	const char *node;
	size_t len;
	uint64_t start, end;
	double windows; // that it stands for
};

// The text behind " KEY=", up to a blank; NULL when there is none.
static const char *field(const char *comment, const char *key, size_t *ret_len)
{
	size_t n = strlen(key);

	for (const char *at = strchr(comment, ' '); at; at = strchr(at + 1, ' ')) {
		if (strncmp(at + 1, key, n) || at[1 + n] != '=')
			continue;
		at += n + 2;
		*ret_len = strcspn(at, " ");
		return at;
	}
	return NULL;
}

static double number(const char *comment, const char *key)
{
	size_t len;
	const char *at = field(comment, key, &len);
	double v = at ? strtod(at, NULL) : 0;

	return v > 0 && v < 1e19 ? v : 0;
}

static int by_node_and_start(const void *a, const void *b)
{
	const struct window *x = a, *y = b;
	size_t len = x->len < y->len ? x->len : y->len;
	int c = memcmp(x->node, y->node, len);

	if (!c && x->len != y->len)
		c = x->len < y->len ? -1 : 1;
	if (c)
		return c;
	return x->start < y->start ? -1 : x->start > y->start;
}

static bool same_node(const struct window *a, const struct window *b)
{
	return a->len == b->len && !memcmp(a->node, b->node, a->len);
}

// The union of each node's windows.
static void cover(struct window *w, size_t n, struct diff_coverage *c)
{
	uint64_t end = 0;
	double windows = 0;

	if (n)
		qsort(w, n, sizeof(*w), by_node_and_start);
	for (size_t i = 0; i < n; i++) {
		uint64_t from = w[i].start;

		windows += w[i].windows;
		if (!i || !same_node(&w[i - 1], &w[i])) {
			c->nodes++;
			end = 0;
		}
		if (from < end)
			from = end;
		if (w[i].end > from) {
			c->node_seconds += (double)(w[i].end - from) / 1e9;
			end = w[i].end;
		}
	}
	c->windows = windows < UINT32_MAX ? (unsigned)windows : UINT32_MAX;
}

static bool is(const char *comment, const char *kind)
{
	size_t n = strlen(kind);

	return !strncmp(comment, kind, n) && comment[n] == ' ';
}

static double total_ops(const struct profile *p)
{
	double sum = 0;

	if (!p->n_types || strcmp(profile_text(p, p->types[0].type), "io_ops"))
		return 0;
	for (uint32_t i = 0; i < p->samples.n; i++)
		sum += (double)p->values[(size_t)i * p->n_types];
	return sum;
}

int diff_read_facts(const struct profile *p, struct diff_facts *ret)
{
	struct diff_facts f = { .weight = 1, .cpu_period = 1e7 };
	struct window *w = calloc(p->n_comments + 1, sizeof(*w));
	double ops = total_ops(p);
	size_t n = 0, len;

	if (!w)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_comments; i++) {
		const char *c = profile_text(p, p->comments[i]);

		if (is(c, "window") && n < WINDOWS_MAX) {
			w[n].node = field(c, "node", &w[n].len);
			w[n].start = (uint64_t)number(c, "start");
			w[n].end = w[n].start + (uint64_t)number(c, "duration");
			w[n].windows = field(c, "windows", &len) ? number(c, "windows") : 1;
			n += w[n].node && w[n].end > w[n].start;
		} else if (is(c, "sampled")) {
			f.coverage.stacks += number(c, "stacks");
		} else if (is(c, "blkprof") && number(c, "cpu_hz") > 0) {
			f.cpu_period = 1e9 / number(c, "cpu_hz");
		} else if (is(c, "series")) {
			f.coverage.series = true;
		}
	}
	cover(w, n, &f.coverage);
	free(w);
	if (!n) {
		f.coverage.nodes = f.coverage.windows = 1;
		f.coverage.node_seconds = (double)p->duration_ns / 1e9;
	}
	if (f.coverage.node_seconds <= 0)
		return -ENODATA;
	if (f.coverage.stacks > 0 && ops > f.coverage.stacks)
		f.weight = ops / f.coverage.stacks;
	*ret = f;
	return 0;
}

// "1,2,3" appended to what is there.
static size_t read_buckets(const char *at, size_t len, double *to, size_t n)
{
	const char *end = at + len;
	char *next;

	while (at < end && n < BUCKETS_MAX) {
		double v = strtod(at, &next);

		if (next == at)
			break;
		to[n++] = v >= 0 && v < 1e19 ? v : 0;
		at = *next == ',' ? next + 1 : end;
	}
	return n;
}

// Variance of the sum of n buckets over `model`: at least 1. Neighbours that go together (a slow drift, a checkpoint of
// several seconds) make the sum vary more than buckets alone show.
static double spread_of(const double *v, size_t n, double model)
{
	double mean = 0, var = 0, lag = 0, r;

	for (size_t i = 0; i < n; i++)
		mean += v[i] / (double)n;
	for (size_t i = 0; i < n; i++) {
		var += (v[i] - mean) * (v[i] - mean);
		if (i)
			lag += (v[i] - mean) * (v[i - 1] - mean);
	}
	if (var <= 0 || model <= 0)
		return 1;
	r = lag / var;
	if (r < 0)
		r = 0;
	if (r > 0.8)
		r = 0.8;
	var = var / (double)(n - 1) * (double)n * (1 + r) / (1 - r);
	return var > model ? var / model : 1;
}

static int by_id(const void *a, const void *b)
{
	const struct diff_series_comment *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->comment < y->comment ? -1 : x->comment > y->comment;
}

// The (device, op) that a comment is about, as diff.c names it; 0 = of none of them.
static uint32_t series_of(const char *comment, const struct intern *names)
{
	size_t device_len, op_len;
	const char *device = field(comment, "device", &device_len), *op = field(comment, "op", &op_len);
	char name[400];

	if (!device || !op || device_len > 300 || op_len > 60)
		return 0;
	memcpy(name, device, device_len);
	name[device_len] = ' ';
	memcpy(name + device_len + 1, op, op_len);
	return intern_find(names, name, device_len + 1 + op_len);
}

int diff_find_series(const struct profile *p, const struct intern *names, struct diff_series *ret)
{
	struct diff_series s = { .of = calloc(p->n_comments + 1, sizeof(*s.of)) };

	if (!s.of)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_comments; i++) {
		const char *c = profile_text(p, p->comments[i]);
		uint32_t id = is(c, "series") ? series_of(c, names) : 0;

		if (id)
			s.of[s.n++] = (struct diff_series_comment){ id, (uint32_t)i };
	}
	if (s.n)
		qsort(s.of, s.n, sizeof(*s.of), by_id);
	*ret = s;
	return 0;
}

struct diff_spread diff_read_spread(const struct profile *p, struct diff_series *series, uint32_t id, const struct diff_sum *model)
{
	struct diff_spread spread = { 1, 1 };
	double *ops = NULL, *time = NULL, floor = FLOOR_UNKNOWN;
	size_t n_ops = 0, n_time = 0;

	for (; series->at < series->n && series->of[series->at].id == id; series->at++) {
		const char *c = profile_text(p, p->comments[series->of[series->at].comment]), *at;
		size_t len;

		if (!ops)
			ops = calloc(2 * BUCKETS_MAX, sizeof(*ops));
		if (!ops)
			continue;
		time = ops + BUCKETS_MAX;
		at = field(c, "ops", &len);
		if (at)
			n_ops = read_buckets(at, len, ops, n_ops);
		at = field(c, "time", &len);
		if (at)
			n_time = read_buckets(at, len, time, n_time);
	}
	if (n_ops >= 4 && n_time >= 4) {
		floor = FLOOR_SERIES;
		spread.ops = spread_of(ops, n_ops, model->var_ops);
		spread.time = spread_of(time, n_time, model->var_time);
	}
	free(ops);
	if (model->var_ops > 0)
		spread.ops += floor * floor * model->ops * model->ops / model->var_ops;
	if (model->var_time > 0)
		spread.time += floor * floor * model->time * model->time / model->var_time;
	return spread;
}
