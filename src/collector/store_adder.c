// SPDX-License-Identifier: Apache-2.0
#include "collector/store_adder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/profile.h"

#define AHEAD_ROWS 8

void adder_free(struct adder *a)
{
	sums_free(&a->sums);
	free(a->by_labels);
	free(a->used);
	memset(a, 0, sizeof(*a));
}

size_t adder_memory(const struct adder *a)
{
	return a->sums.cap * sizeof(*a->sums.sum) + a->sums.slots_cap * sizeof(*a->sums.slots) +
	       a->by_labels_cap * sizeof(*a->by_labels) + a->used_cap * sizeof(*a->used);
}

static int64_t up_to(int64_t v, uint64_t length, uint64_t t)
{
	return t >= length ? v : (int64_t)((__uint128_t)(uint64_t)v * t / length);
}

int64_t adder_share(int64_t v, uint64_t start, uint64_t end, uint64_t from, uint64_t to)
{
	uint64_t a = from > start ? from - start : 0, b = to > start ? to - start : 0;

	return up_to(v, end - start, b) - up_to(v, end - start, a);
}

static int add_total(struct adder *a, uint32_t labels, const int64_t *value)
{
	struct label_total *t;

	if (labels >= a->by_labels_cap) {
		size_t before = a->by_labels_cap;

		if (memory_grow(NULL, &a->by_labels, &a->by_labels_cap, (size_t)labels + 1, sizeof(*t)))
			return -ENOMEM;
		memset(a->by_labels + before, 0, (a->by_labels_cap - before) * sizeof(*t));
	}
	t = &a->by_labels[labels];
	if (!t->used) {
		if (memory_grow(NULL, &a->used, &a->used_cap, a->n_used + 1, sizeof(*a->used)))
			return -ENOMEM;
		a->used[a->n_used++] = labels;
		t->used = true;
	}
	t->ops = saturating_add(t->ops, value[PPROF_IO_OPS]);
	t->bytes = saturating_add(t->bytes, saturating_add(value[PPROF_READ_BYTES], value[PPROF_WRITE_BYTES]));
	return 0;
}

int adder_row(struct adder *a, struct row_id id, const int64_t value[PPROF_TYPES])
{
	int err = sums_add(&a->sums, id, value);

	return err ? err : add_total(a, id.labels, value);
}

int adder_merge(struct adder *to, struct adder *from)
{
	int err = 0;

	for (size_t i = 0; i < from->sums.n && !err; i++)
		err = sums_add(&to->sums, from->sums.sum[i].id, from->sums.sum[i].value);
	sums_clear(&from->sums);
	return err;
}

static struct row_id row_of(const struct columns *c, size_t i)
{
	return (struct row_id){ c->stack[i], c->labels[i], c->pid ? c->pid[i] : 0 };
}

static void ask_ahead(const struct sums *s, const struct columns *c, size_t i)
{
	if (i + 2 * AHEAD_ROWS < c->n)
		sums_ask_slot(s, row_of(c, i + 2 * AHEAD_ROWS));
	if (i + AHEAD_ROWS < c->n)
		sums_ask_sum(s, row_of(c, i + AHEAD_ROWS));
}

int adder_columns(struct adder *a, const struct columns *c, const struct adder_part *p)
{
	bool cut = p->start < p->from || p->end > p->to;
	int64_t value[PPROF_TYPES];
	int err = 0;

	for (size_t i = 0; i < c->n && !err; i++) {
		ask_ahead(&a->sums, c, i);
		for (unsigned k = 0; k < PPROF_TYPES; k++) {
			value[k] = c->value[k] ? c->value[k][i] : 0;
			if (cut)
				value[k] = adder_share(value[k], p->start, p->end, p->from, p->to);
		}
		err = adder_row(a, row_of(c, i), value);
	}
	return err;
}

int adder_blob(struct adder *a, struct unpacker *u, const struct adder_part *p, const void *data, size_t len, struct error *e)
{
	struct columns c;
	int err = columns_unpack(u, data, len, &c);

	if (!err)
		err = adder_columns(a, &c, p);
	if (err == -EBADMSG)
		return error_set(e, err, "the store is damaged: columns %lld are wrong; see 'blkprof collector --check'", (long long)p->id);
	return err ? error_set(e, err, "out of memory") : 0;
}
