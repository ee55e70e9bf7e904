// SPDX-License-Identifier: Apache-2.0
#include "streams.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	US = 1000,
	MS = 1000 * US,
	S = 1000 * MS,
};

// A source puts the events of one batch that begins at `now` and returns when its next one begins.
struct source {
	uint64_t (*batch)(struct stream *s, const struct source *self, uint64_t now);
	uint32_t stack;
	double rate; // of poisson
	uint64_t next;
};

struct load {
	const char *name;
	struct stack stacks[STREAM_STACKS];
	struct source sources[STREAM_STACKS];
};

struct stream {
	const struct load *load;
	struct source sources[STREAM_STACKS];
	uint64_t duration, random;
	struct event *heap; // owned; the earliest first
	size_t count, cap;
	uint32_t order;
};

static double uniform(struct stream *s)
{
	uint64_t z = s->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static uint64_t exponential(struct stream *s, double rate)
{
	return (uint64_t)(-log(1.0 - uniform(s)) / rate * S);
}

static bool before(const struct event *a, const struct event *b)
{
	return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void swap(struct event *a, struct event *b)
{
	struct event t = *a;

	*a = *b;
	*b = t;
}

static void put(struct stream *s, uint64_t due, uint32_t stack)
{
	size_t i = s->count;

	if (i == s->cap)
		return; // no batch is larger than the room that stream_next made
	s->heap[i] = (struct event){due, stack, s->order++};
	s->count++;
	for (; i > 0 && before(&s->heap[i], &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&s->heap[i], &s->heap[(i - 1) / 2]);
}

static struct event take(struct stream *s)
{
	struct event first = s->heap[0];

	s->heap[0] = s->heap[--s->count];
	for (size_t i = 0, child; (child = 2 * i + 1) < s->count; i = child) {
		if (child + 1 < s->count && before(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!before(&s->heap[child], &s->heap[i]))
			break;
		swap(&s->heap[child], &s->heap[i]);
	}
	return first;
}

static uint64_t batch_burst(struct stream *s, const struct source *self, uint64_t now)
{
	put(s, now, 0);
	for (unsigned i = 1; i <= 100; i++)
		put(s, now + i * 5 * US, 1);
	return now + 5 * MS;
}

static uint64_t batch_readahead(struct stream *s, const struct source *self, uint64_t now)
{
	put(s, now, 0);
	for (unsigned i = 0; i < 50; i++)
		put(s, now + (uint64_t)(uniform(s) * MS), 1);
	return now + exponential(s, 1000);
}

static uint64_t batch_poisson(struct stream *s, const struct source *self, uint64_t now)
{
	put(s, now, self->stack);
	return now + exponential(s, self->rate);
}

static uint64_t batch_on_off(struct stream *s, const struct source *self, uint64_t now)
{
	for (unsigned i = 0; i < 2000; i++)
		put(s, now + i * 10 * US, self->stack);
	return now + S;
}

// A quiet stack: at a fixed rate, each a little late.
static uint64_t batch_quiet(struct stream *s, const struct source *self, uint64_t now)
{
	put(s, now + (uint64_t)(uniform(s) * MS), self->stack);
	return now + (uint64_t)(S / self->rate);
}

static uint64_t batch_steady(struct stream *s, const struct source *self, uint64_t now)
{
	put(s, now, self->stack);
	return now + 10 * US;
}

static uint64_t batch_flood(struct stream *s, const struct source *self, uint64_t now)
{
	put(s, now, self->stack);
	return now < s->duration / 6 ? now + 10 * US : UINT64_MAX;
}

static uint64_t batch_after_flood(struct stream *s, const struct source *self, uint64_t now)
{
	if (now < s->duration / 6)
		return s->duration / 6;
	return batch_quiet(s, self, now);
}

#define STACK(name) #name, "load_" #name, load_##name
#define PAGES(n) ((n) * 4096)

static const struct load loads[] = {
	{"burst",
		{{STACK(journal), .writes = true, .size = PAGES(1)}, {STACK(data), .writes = true, .size = PAGES(1)}},
		{{.batch = batch_burst}}},
	{"readahead",
		{{STACK(readahead), .size = PAGES(256)}, {STACK(journal), .writes = true, .size = PAGES(1)}},
		{{.batch = batch_readahead}}},
	{"poisson",
		{{STACK(stack0), .size = PAGES(1)}, {STACK(stack1), .size = PAGES(9)}, {STACK(stack2), .size = PAGES(17)},
			{STACK(stack3), .size = PAGES(25)}, {STACK(stack4), .size = PAGES(33)}},
		{{.batch = batch_poisson, .stack = 0, .rate = 50000}, {.batch = batch_poisson, .stack = 1, .rate = 20000},
			{.batch = batch_poisson, .stack = 2, .rate = 5000}, {.batch = batch_poisson, .stack = 3, .rate = 1000},
			{.batch = batch_poisson, .stack = 4, .rate = 200}}},
	{"on-off",
		{{STACK(flusher), .writes = true, .size = PAGES(1)}, {STACK(commit), .writes = true, .size = PAGES(1)}},
		{{.batch = batch_on_off, .stack = 0}, {.batch = batch_quiet, .stack = 1, .rate = 50}}},
	{"then-quiet",
		{{STACK(scan), .size = PAGES(1)}, {STACK(lookup), .size = PAGES(1)}},
		{{.batch = batch_flood, .stack = 0}, {.batch = batch_after_flood, .stack = 1, .rate = 20}}},
	{"two-devices",
		{{STACK(swap), .device = 1, .writes = true, .size = PAGES(1)},
			{STACK(fsync), .writes = true, .syncs = true, .size = PAGES(1)}},
		{{.batch = batch_steady, .stack = 0}, {.batch = batch_quiet, .stack = 1, .rate = 50}}},
};

enum {
	LOADS = sizeof(loads) / sizeof(loads[0]),
	BATCH_MAX = 4096,
};

const char *stream_name(unsigned index)
{
	return index < LOADS ? loads[index].name : NULL;
}

struct stream *stream_new(const char *name, uint64_t duration, uint64_t seed)
{
	struct stream *s = calloc(1, sizeof(*s));

	for (unsigned i = 0; s && i < LOADS; i++) {
		if (strcmp(loads[i].name, name) == 0)
			s->load = &loads[i];
	}
	if (!s || !s->load) {
		free(s);
		return NULL;
	}
	memcpy(s->sources, s->load->sources, sizeof(s->sources));
	s->duration = duration;
	s->random = seed;
	return s;
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	free(s->heap);
	free(s);
}

const struct stack *stream_stacks(const struct stream *s, unsigned *ret_count)
{
	unsigned n = 0;

	while (n < STREAM_STACKS && s->load->stacks[n].name)
		n++;
	*ret_count = n;
	return s->load->stacks;
}

static bool make_room(struct stream *s)
{
	struct event *grown;
	size_t cap = s->cap ? s->cap * 2 : 2 * BATCH_MAX;

	if (s->cap - s->count >= BATCH_MAX)
		return true;
	grown = reallocarray(s->heap, cap, sizeof(*grown));
	if (!grown)
		return false;
	s->heap = grown;
	s->cap = cap;
	return true;
}

static struct source *earliest(struct stream *s)
{
	struct source *first = NULL;

	for (unsigned i = 0; i < STREAM_STACKS && s->sources[i].batch; i++) {
		if (s->sources[i].next < s->duration && (!first || s->sources[i].next < first->next))
			first = &s->sources[i];
	}
	return first;
}

bool stream_next(struct stream *s, struct event *ret)
{
	struct source *source = earliest(s);

	while (source && (s->count == 0 || source->next <= s->heap[0].due)) {
		if (!make_room(s))
			return false;
		source->next = source->batch(s, source, source->next);
		source = earliest(s);
	}
	if (s->count == 0)
		return false;
	*ret = take(s);
	return true;
}
