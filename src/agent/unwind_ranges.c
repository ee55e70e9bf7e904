// SPDX-License-Identifier: Apache-2.0
#include "agent/unwind_ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int insert(struct unwind_ranges *r, unsigned at, uint64_t start, uint64_t limit, unsigned source)
{
	if (r->n == r->max)
		return -ENOSPC;
	if (r->n == r->capacity) {
		unsigned capacity = r->capacity ? 2 * r->capacity : 64;
		struct unwind_range *items = reallocarray(r->items, capacity, sizeof(*items));

		if (!items)
			return -ENOMEM;
		r->items = items;
		r->capacity = capacity;
	}
	memmove(r->items + at + 1, r->items + at, (r->n - at) * sizeof(*r->items));
	r->items[at] = (struct unwind_range){ start, limit, source };
	r->n++;
	return 0;
}

// The first range that ends behind the address.
static unsigned find(const struct unwind_ranges *r, uint64_t address)
{
	unsigned low = 0, high = r->n;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (r->items[middle].limit <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int unwind_ranges_add(struct unwind_ranges *r, uint64_t start, uint64_t limit, unsigned source)
{
	unsigned at = find(r, start);
	int err;

	// The vsyscall page: the kernel side's search takes a difference of addresses for a signed number.
	if (start >> 47)
		return 0;
	while (start < limit) {
		uint64_t end = at < r->n && r->items[at].start < limit ? r->items[at].start : limit;

		if (start < end) {
			err = insert(r, at, start, end, source);
			if (err)
				return err;
			at++;
		}
		if (end == limit)
			break;
		start = r->items[at].limit;
		at++;
	}
	return 0;
}
