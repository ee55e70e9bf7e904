// SPDX-License-Identifier: Apache-2.0
// What an answer is gathered in: the largest by a key, and sums by the values of fields.
#ifndef BLKPROF_COLLECTOR_STORE_REQUESTS_SUMS_H
#define BLKPROF_COLLECTOR_STORE_REQUESTS_SUMS_H

#include "collector/store_requests.h"

struct largest {
	unsigned n, limit;
	struct requests_record *record; // a heap, the smallest on top
	size_t bytes;
};

// 0 or -ENOMEM.
int largest_new(struct largest *l, unsigned limit);
int largest_add(struct largest *l, double key, const void *document, size_t size);
bool largest_wants(const struct largest *l, double key);
void largest_sort(struct largest *l);
void largest_free(struct largest *l);

struct facet_sums;

struct facet_sums *facet_sums_new(void);
void facet_sums_free(struct facet_sums *s);
int facet_sums_add(struct facet_sums *s, const struct document_field *f, const struct requests_sum *sum); // f: NULL = it has none
size_t facet_sums_bytes(const struct facet_sums *s);
int facet_sums_give(struct facet_sums *s, struct requests_facet *ret); // sorted; s is empty then

void requests_sum_add(struct requests_sum *to, const struct requests_sum *more);

#endif
