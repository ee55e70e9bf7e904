// SPDX-License-Identifier: Apache-2.0
#include "collector/store_requests_sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define VALUE_BYTES 256 // of a facet's value; longer ones are cut

void requests_sum_add(struct requests_sum *to, const struct requests_sum *more)
{
	if (__builtin_add_overflow(to->requests, more->requests, &to->requests))
		to->requests = UINT64_MAX;
	to->io += more->io;
	to->duration += more->duration;
	to->oncpu += more->oncpu;
	to->lock += more->lock;
	to->io_max = more->io_max > to->io_max ? more->io_max : to->io_max;
	to->duration_max = more->duration_max > to->duration_max ? more->duration_max : to->duration_max;
}

// ---- the largest -------------------------------------------------------------------------------------------------------

int largest_new(struct largest *l, unsigned limit)
{
	l->limit = limit;
	l->record = calloc(limit + 1, sizeof(*l->record));
	return l->record ? 0 : -ENOMEM;
}

bool largest_wants(const struct largest *l, double key)
{
	return l->limit && (l->n < l->limit || key > l->record[0].key);
}

static void swap(struct requests_record *a, struct requests_record *b)
{
	struct requests_record t = *a;

	*a = *b;
	*b = t;
}

static void sift_up(struct largest *l, unsigned i)
{
	for (; i && l->record[i].key < l->record[(i - 1) / 2].key; i = (i - 1) / 2)
		swap(&l->record[i], &l->record[(i - 1) / 2]);
}

static void sift_down(struct largest *l)
{
	unsigned i = 0, child;

	while ((child = 2 * i + 1) < l->n) {
		if (child + 1 < l->n && l->record[child + 1].key < l->record[child].key)
			child++;
		if (l->record[i].key <= l->record[child].key)
			return;
		swap(&l->record[i], &l->record[child]);
		i = child;
	}
}

int largest_add(struct largest *l, double key, const void *document, size_t size)
{
	char *copy;

	if (!largest_wants(l, key))
		return 0;
	copy = malloc(size + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, document, size);
	copy[size] = 0;
	l->bytes += size + sizeof(*l->record);
	if (l->n < l->limit) {
		l->record[l->n] = (struct requests_record){ key, copy, size };
		sift_up(l, l->n++);
		return 0;
	}
	l->bytes -= l->record[0].size + sizeof(*l->record);
	free(l->record[0].document);
	l->record[0] = (struct requests_record){ key, copy, size };
	sift_down(l);
	return 0;
}

static int by_key(const void *a, const void *b)
{
	const struct requests_record *x = a, *y = b;

	return x->key != y->key ? (x->key < y->key) - (x->key > y->key) : strcmp(x->document, y->document);
}

void largest_sort(struct largest *l)
{
	if (l->n)
		qsort(l->record, l->n, sizeof(*l->record), by_key);
}

void largest_free(struct largest *l)
{
	for (unsigned i = 0; i < l->n; i++)
		free(l->record[i].document);
	free(l->record);
	*l = (struct largest){ 0 };
}

// ---- sums by value -----------------------------------------------------------------------------------------------------

struct facet_entry {
	struct requests_sum sum;
	UT_hash_handle hh;
	char value[]; // the key
};

struct facet_sums {
	struct facet_entry *entries;
	unsigned n;
	size_t bytes;
};

struct facet_sums *facet_sums_new(void)
{
	return calloc(1, sizeof(struct facet_sums));
}

void facet_sums_free(struct facet_sums *s)
{
	struct facet_entry *entry, *next;

	if (!s)
		return;
	HASH_ITER(hh, s->entries, entry, next) {
		HASH_DEL(s->entries, entry);
		free(entry);
	}
	free(s);
}

size_t facet_sums_bytes(const struct facet_sums *s)
{
	return s->bytes;
}

static int add_value(struct facet_sums *s, const char *value, const struct requests_sum *sum)
{
	static const char other[] = "[other]";
	size_t len = strlen(value);
	struct facet_entry *entry;

	HASH_FIND(hh, s->entries, value, len, entry);
	if (!entry && s->n >= REQUESTS_FACET_VALUES && strcmp(value, other))
		return add_value(s, other, sum);
	if (!entry) {
		entry = calloc(1, sizeof(*entry) + len + 1);
		if (!entry)
			return -ENOMEM;
		memcpy(entry->value, value, len);
		HASH_ADD_KEYPTR(hh, s->entries, entry->value, len, entry);
		if (!entry->hh.tbl) {
			free(entry);
			return -ENOMEM;
		}
		s->n++;
		s->bytes += sizeof(*entry) + len;
	}
	requests_sum_add(&entry->sum, sum);
	return 0;
}

int facet_sums_add(struct facet_sums *s, const struct document_field *f, const struct requests_sum *sum)
{
	struct document_field one;
	const char *at = NULL;
	char text[VALUE_BYTES];
	int err = 0;

	if (!f)
		return add_value(s, "", sum);
	if (f->type == DOCUMENT_TEXTS) {
		while (!err && document_next_text(f, &at, &one)) {
			document_text(&one, text, sizeof(text));
			err = add_value(s, text, sum);
		}
		return err;
	}
	if (f->type == DOCUMENT_TEXT) {
		document_text(f, text, sizeof(text));
		return add_value(s, text, sum);
	}
	if (f->value_len >= sizeof(text))
		return 0;
	memcpy(text, f->value, f->value_len);
	text[f->value_len] = 0;
	return add_value(s, text, sum);
}

static int by_requests(const void *a, const void *b)
{
	const struct requests_facet_value *x = a, *y = b;

	return x->sum.requests != y->sum.requests ? (x->sum.requests < y->sum.requests) - (x->sum.requests > y->sum.requests) :
						    strcmp(x->value, y->value);
}

int facet_sums_give(struct facet_sums *s, struct requests_facet *ret)
{
	struct facet_entry *entry, *next;

	ret->value = calloc(s->n + 1, sizeof(*ret->value));
	if (!ret->value)
		return -ENOMEM;
	HASH_ITER(hh, s->entries, entry, next) {
		char *value = strdup(entry->value);

		if (!value)
			return -ENOMEM;
		ret->value[ret->n++] = (struct requests_facet_value){ value, entry->sum };
	}
	if (ret->n)
		qsort(ret->value, ret->n, sizeof(*ret->value), by_requests);
	return 0;
}
