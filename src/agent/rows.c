// SPDX-License-Identifier: Apache-2.0
#include "agent/rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/series.h"
#include "common/hash.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes(key, len, 0))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct entry {
	struct row row;
	UT_hash_handle hh;
};

struct exact {
	uint64_t ops, bytes;
	double again_ops, again_bytes;
	double lost_ops, sampled_ops;
};

struct rows {
	struct rows_info info;
	struct entry *table;
	struct entry **sorted; // after rows_scale
	unsigned n;
	struct exact exact[AGGREGATE_DISKS][OP_CLASSES];
	struct series series;
};

struct rows *rows_new(uint32_t window, uint64_t start)
{
	struct rows *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->info.window = window;
	r->info.start = start;
	series_start(&r->series, start);
	return r;
}

void rows_end(struct rows *r, uint64_t end)
{
	r->info.end = end;
}

void rows_free(struct rows *r)
{
	struct entry *e, *next;

	if (!r)
		return;
	HASH_ITER(hh, r->table, e, next) {
		HASH_DEL(r->table, e);
		free(e);
	}
	free(r->sorted);
	series_free(&r->series);
	free(r);
}

const struct series *rows_series(const struct rows *r)
{
	return &r->series;
}

void rows_went(struct rows *r, uint16_t disk, uint8_t op, uint64_t at, double ops, double time_ns)
{
	series_add(&r->series, disk, op, at, ops, time_ns);
}

const struct rows_info *rows_get_info(const struct rows *r)
{
	return &r->info;
}

unsigned rows_count(const struct rows *r)
{
	return r->n;
}

const struct row *rows_get(const struct rows *r, unsigned i)
{
	return &r->sorted[i]->row;
}

unsigned rows_size(const struct rows *r)
{
	return HASH_COUNT(r->table);
}

static struct row *find_or_add(struct rows *r, const struct row_key *key)
{
	struct entry *e;

	HASH_FIND(hh, r->table, key, sizeof(*key), e);
	if (e)
		return &e->row;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->row.key = *key;
	HASH_ADD(hh, r->table, row.key, sizeof(e->row.key), e);
	if (!e->hh.tbl) {
		free(e);
		return NULL;
	}
	return &e->row;
}

struct row *rows_find_or_add(struct rows *r, const struct row_key *key, unsigned max_rows, bool *ret_folded)
{
	struct row_key folded;
	struct entry *e;

	*ret_folded = false;
	if (HASH_COUNT(r->table) < max_rows)
		return find_or_add(r, key);
	HASH_FIND(hh, r->table, key, sizeof(*key), e);
	if (e)
		return &e->row;
	// Room for these is not limited: there are few processes, disks and operations beside stacks and classes.
	*ret_folded = true;
	folded = *key;
	folded.who.stack = 0;
	folded.who.comm = 0;
	folded.who.tgid = 0;
	folded.bytes = 0;
	folded.latency = 0;
	return find_or_add(r, &folded);
}

void rows_each_who(const struct rows *r, aggregate_who_fn fn, void *context)
{
	for (const struct entry *e = r->table; e; e = e->hh.next)
		fn(&e->row.key.who, context);
}

static void row_add(struct row *into, const struct row *from)
{
	into->ops += from->ops;
	into->bytes += from->bytes;
	into->time_ns += from->time_ns;
	into->cpu += from->cpu;
	into->samples += from->samples;
}

uint64_t rows_fold_pids(struct rows *r, bool (*gone)(uint32_t tgid, void *context), void *context)
{
	struct entry *e, *next;
	uint64_t samples = 0;

	HASH_ITER(hh, r->table, e, next) {
		struct row_key key = e->row.key;
		struct row *into;

		if (!key.who.tgid || !gone(key.who.tgid, context))
			continue;
		key.who.tgid = 0;
		into = find_or_add(r, &key);
		if (!into)
			break;
		row_add(into, &e->row);
		samples += e->row.samples;
		HASH_DEL(r->table, e);
		free(e);
	}
	return samples;
}

int rows_merge(struct rows *into, const struct rows *from)
{
	for (const struct entry *e = from->table; e; e = e->hh.next) {
		struct row *row = find_or_add(into, &e->row.key);

		if (!row)
			return -ENOMEM;
		row_add(row, &e->row);
	}
	for (unsigned disk = 0; disk < AGGREGATE_DISKS; disk++) {
		for (unsigned op = 0; op < OP_CLASSES; op++) {
			const struct exact *x = &from->exact[disk][op];
			struct exact *y = &into->exact[disk][op];

			y->ops += x->ops;
			y->bytes += x->bytes;
			y->again_ops += x->again_ops;
			y->again_bytes += x->again_bytes;
			y->lost_ops += x->lost_ops;
			y->sampled_ops += x->sampled_ops;
		}
	}
	series_merge(&into->series, &from->series);
	into->info.end = from->info.end;
	return 0;
}

static struct exact *exact_of(struct rows *r, uint16_t disk, uint8_t op)
{
	return &r->exact[disk < AGGREGATE_DISKS ? disk : AGGREGATE_DISKS - 1][op < OP_CLASSES ? op : OP_OTHER];
}

void rows_exact(struct rows *r, uint16_t disk, uint8_t op, uint64_t ops, uint64_t bytes)
{
	struct exact *x = exact_of(r, disk, op);

	x->ops += ops;
	x->bytes += bytes;
}

void rows_retract(struct rows *r, uint16_t disk, uint8_t op, double weight, uint32_t size)
{
	struct exact *x = exact_of(r, disk, op);

	x->again_ops += weight;
	x->again_bytes += weight * size;
}

void rows_lost(struct rows *r, uint16_t disk, uint8_t op, double weight)
{
	exact_of(r, disk, op)->lost_ops += weight;
}

double rows_missed(const struct rows *r, uint16_t disk, uint8_t op)
{
	const struct exact *x = exact_of((struct rows *)r, disk, op);

	return x->sampled_ops > 0 ? x->lost_ops / x->sampled_ops : 0;
}

static uint64_t less(uint64_t n, double minus)
{
	uint64_t m = (uint64_t)llround(minus);

	return n > m ? n - m : 0;
}

uint64_t rows_exact_ops(const struct rows *r, uint16_t disk, uint8_t op)
{
	const struct exact *x = exact_of((struct rows *)r, disk, op);

	return less(x->ops, x->again_ops);
}

uint64_t rows_exact_bytes(const struct rows *r, uint16_t disk, uint8_t op)
{
	const struct exact *x = exact_of((struct rows *)r, disk, op);

	return less(x->bytes, x->again_bytes);
}

static int compare_rows(const void *pa, const void *pb)
{
	const struct entry *const *a = pa, *const *b = pb;
	const struct row_key *x = &(*a)->row.key, *y = &(*b)->row.key;

	if (x->disk != y->disk)
		return x->disk < y->disk ? -1 : 1;
	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	return memcmp(x, y, sizeof(*x));
}

struct share {
	double *value;
	double remainder;
	unsigned order;
};

static int compare_shares(const void *pa, const void *pb)
{
	const struct share *a = pa, *b = pb;

	if (a->remainder != b->remainder)
		return a->remainder > b->remainder ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

// Makes the n values whole numbers that add up to `total`, each within one of its exact share.
static void apportion(struct share *shares, unsigned n, uint64_t total)
{
	double sum = 0, factor;
	uint64_t given = 0;

	for (unsigned i = 0; i < n; i++)
		sum += *shares[i].value;
	if (sum <= 0)
		return;
	factor = (double)total / sum;
	for (unsigned i = 0; i < n; i++) {
		double exact = *shares[i].value * factor, whole = floor(exact);

		// A product that should be whole may have come out a hair below.
		if (exact - whole > 1 - 1e-9 * (1 + exact))
			whole += 1;
		shares[i].remainder = exact - whole;
		*shares[i].value = whole;
		given += (uint64_t)whole;
	}
	qsort(shares, n, sizeof(*shares), compare_shares);
	for (unsigned i = 0; given < total; i = (i + 1) % n, given++)
		*shares[i].value += 1;
	for (unsigned i = n; given > total && i; i--) {
		if (*shares[i - 1].value >= 1) {
			*shares[i - 1].value -= 1;
			given--;
		}
	}
}

// Rows from..to-1 are those of one (disk, op).
static int scale_group(struct rows *r, unsigned from, unsigned to)
{
	const struct row_key *key = &r->sorted[from]->row.key;
	uint64_t ops = rows_exact_ops(r, key->disk, key->op), bytes = rows_exact_bytes(r, key->disk, key->op);
	struct share *shares = calloc(to - from, sizeof(*shares));
	double sampled = 0, timed;
	unsigned n = to - from;

	if (!shares)
		return -ENOMEM;
	for (unsigned i = from; i < to; i++)
		sampled += r->sorted[i]->row.ops;
	exact_of(r, key->disk, key->op)->sampled_ops = sampled;
	timed = sampled - exact_of(r, key->disk, key->op)->lost_ops;
	for (unsigned i = 0; i < n; i++) {
		struct row *row = &r->sorted[from + i]->row;

		if (timed > 0)
			row->time_ns *= (double)ops / timed;
		shares[i] = (struct share){ .value = &row->ops, .order = i };
	}
	apportion(shares, n, ops);
	for (unsigned i = 0; i < n; i++)
		shares[i] = (struct share){ .value = &r->sorted[from + i]->row.bytes, .order = i };
	apportion(shares, n, bytes);
	free(shares);
	return 0;
}

static int add_not_sampled(struct rows *r)
{
	double sampled[AGGREGATE_DISKS][OP_CLASSES] = { { 0 } };
	struct entry *e, *next;
	bool folded;

	HASH_ITER(hh, r->table, e, next) {
		if (e->row.key.disk < AGGREGATE_DISKS)
			sampled[e->row.key.disk][e->row.key.op] += e->row.ops;
	}
	for (uint16_t disk = 0; disk < AGGREGATE_DISKS; disk++) {
		for (uint8_t op = 0; op < OP_CLASSES; op++) {
			struct row_key key = { .disk = disk, .op = op, .not_sampled = 1 };
			struct row *row;

			if (sampled[disk][op] > 0 || !rows_exact_ops(r, disk, op))
				continue;
			row = rows_find_or_add(r, &key, UINT32_MAX, &folded);
			if (!row)
				return -ENOMEM;
			row->ops = 1; // the whole group's share
			row->bytes = 1;
		}
	}
	return 0;
}

int rows_sort(struct rows *r)
{
	unsigned n = 0;

	free(r->sorted);
	r->n = 0;
	r->sorted = calloc(HASH_COUNT(r->table) + 1, sizeof(*r->sorted));
	if (!r->sorted)
		return -ENOMEM;
	for (struct entry *e = r->table; e; e = e->hh.next)
		r->sorted[n++] = e;
	r->n = n;
	if (n)
		qsort(r->sorted, n, sizeof(*r->sorted), compare_rows);
	return 0;
}

int rows_scale(struct rows *r)
{
	int err = add_not_sampled(r);
	unsigned n;

	if (!err)
		err = rows_sort(r);
	if (err)
		return err;
	n = r->n;
	for (unsigned from = 0, to; from < n; from = to) {
		const struct row_key *k = &r->sorted[from]->row.key;

		for (to = from + 1; to < n; to++)
			if (r->sorted[to]->row.key.disk != k->disk || r->sorted[to]->row.key.op != k->op)
				break;
		if (k->cpu)
			continue;
		err = scale_group(r, from, to);
		if (err)
			return err;
	}
	return 0;
}
