// SPDX-License-Identifier: Apache-2.0
#include "timeline/order.h"

#include <errno.h>
#include <stdlib.h>

struct item {
	struct event event;
	uint64_t number;
};

struct order {
	struct item *heap;
	size_t n, cap, max;
	uint64_t window, newest, taken, number, late;
};

struct order *order_new(uint64_t window_ns, size_t max)
{
	struct order *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->window = window_ns;
	o->max = max ? max : 1;
	return o;
}

void order_free(struct order *o)
{
	if (!o)
		return;
	free(o->heap);
	free(o);
}

static bool before(const struct item *a, const struct item *b)
{
	return a->event.time != b->event.time ? a->event.time < b->event.time : a->number < b->number;
}

static int grow(struct order *o)
{
	size_t cap = o->cap ? 2 * o->cap : 256;
	struct item *heap = realloc(o->heap, cap * sizeof(*heap));

	if (!heap)
		return -ENOMEM;
	o->heap = heap;
	o->cap = cap;
	return 0;
}

// Losses and ends that nobody saw have the time at which user space found out: records of before may still be on their way.
static bool is_of_ring(const struct event *e)
{
	return e->type != EVENT_LOST && !(e->type == EVENT_END && e->flags & EVENT_UNSEEN);
}

static bool may_have_earlier(const struct order *o)
{
	uint64_t first = o->heap[0].event.time;

	return o->n <= o->max && (o->newest < first || o->newest - first < o->window);
}

int order_add(struct order *o, const struct event *e)
{
	struct item item = { .event = *e, .number = o->number++ };
	size_t at;

	if (o->n == o->cap && grow(o))
		return -ENOMEM;
	if (e->time < o->taken) {
		o->late++;
		item.event.time = o->taken;
	}
	if (is_of_ring(e) && item.event.time > o->newest)
		o->newest = item.event.time;
	for (at = o->n++; at && before(&item, &o->heap[(at - 1) / 2]); at = (at - 1) / 2)
		o->heap[at] = o->heap[(at - 1) / 2];
	o->heap[at] = item;
	return 0;
}

static void remove_first(struct order *o)
{
	struct item last = o->heap[--o->n];
	size_t at = 0, child;

	for (; (child = 2 * at + 1) < o->n; at = child) {
		if (child + 1 < o->n && before(&o->heap[child + 1], &o->heap[child]))
			child++;
		if (!before(&o->heap[child], &last))
			break;
		o->heap[at] = o->heap[child];
	}
	o->heap[at] = last;
}

bool order_take(struct order *o, bool all, struct event *ret)
{
	if (!o->n || (!all && may_have_earlier(o)))
		return false;
	*ret = o->heap[0].event;
	o->taken = ret->time;
	remove_first(o);
	return true;
}

uint64_t order_late(const struct order *o)
{
	return o->late;
}

size_t order_held(const struct order *o)
{
	return o->n;
}
