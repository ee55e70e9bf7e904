// SPDX-License-Identifier: Apache-2.0
#include "request/storm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define SUMS_MAX 512

struct key {
	uint32_t pid;
	int status_class;
	char method[16];
	char core[RECORD_NAME], handler[RECORD_NAME];
};

struct sum {
	UT_hash_handle hh;
	struct key key;
	struct request_record record;
};

struct storm {
	const struct breakdown_table *metrics;
	unsigned limit, n_slow, n_sample;
	struct request_record *slow;
	unsigned *heap; // of their places, the fastest of them first: they are too large to be moved about
	struct request_record *sample; // of those that are not slow
	uint64_t passed;	       // that came by the sample in this second
	struct sum *sums, *last; // last: the one that was added to last, most likely the next one's
	uint64_t summed, dropped;
	uint64_t random, serial;
};

struct storm *storm_new(const struct breakdown_table *metrics, unsigned limit)
{
	struct storm *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->metrics = metrics;
	s->limit = limit < 2 ? 1 : limit / 2;
	s->random = 0x9e3779b97f4a7c15ull;
	s->slow = calloc(s->limit, sizeof(*s->slow));
	s->heap = calloc(s->limit, sizeof(*s->heap));
	s->sample = calloc(s->limit, sizeof(*s->sample));
	if (s->slow && s->heap && s->sample)
		return s;
	storm_free(s);
	return NULL;
}

static void sums_free(struct storm *s)
{
	struct sum *sum, *next;

	s->last = NULL;
	HASH_ITER(hh, s->sums, sum, next) {
		HASH_DEL(s->sums, sum);
		record_free(&sum->record);
		free(sum);
	}
}

void storm_free(struct storm *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->n_slow; i++)
		record_free(&s->slow[i]);
	for (unsigned i = 0; i < s->n_sample; i++)
		record_free(&s->sample[i]);
	sums_free(s);
	free(s->slow);
	free(s->heap);
	free(s->sample);
	free(s);
}

static uint64_t next_random(struct storm *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random;
}

static uint64_t duration(const struct request_record *r)
{
	return r->times.value[METRIC_DURATION];
}

static void swap(struct request_record *a, struct request_record *b)
{
	struct request_record t = *a;

	*a = *b;
	*b = t;
}

static bool faster(const struct storm *s, unsigned a, unsigned b)
{
	return duration(&s->slow[s->heap[a]]) < duration(&s->slow[s->heap[b]]);
}

static void swap_places(struct storm *s, unsigned a, unsigned b)
{
	unsigned t = s->heap[a];

	s->heap[a] = s->heap[b];
	s->heap[b] = t;
}

static void sift_down(struct storm *s, unsigned i)
{
	for (;;) {
		unsigned least = i, left = 2 * i + 1;

		if (left < s->n_slow && faster(s, left, least))
			least = left;
		if (left + 1 < s->n_slow && faster(s, left + 1, least))
			least = left + 1;
		if (least == i)
			return;
		swap_places(s, i, least);
		i = least;
	}
}

static void sift_up(struct storm *s, unsigned i)
{
	for (; i && faster(s, i, (i - 1) / 2); i = (i - 1) / 2)
		swap_places(s, i, (i - 1) / 2);
}

static struct sum *sum_new(struct storm *s, const struct key *key)
{
	struct sum *sum = calloc(1, sizeof(*sum));

	if (!sum)
		return NULL;
	sum->key = *key;
	sum->record.kind = REQUEST_HANDLER;
	sum->record.ended = END_WINDOW;
	sum->record.pid = key->pid;
	sum->record.number = ++s->serial;
	sum->record.status = key->status_class * 100;
	memcpy(sum->record.method, key->method, sizeof(key->method));
	memcpy(sum->record.core, key->core, sizeof(key->core));
	memcpy(sum->record.handler, key->handler, sizeof(key->handler));
	HASH_ADD(hh, s->sums, key, sizeof(sum->key), sum);
	if (sum->hh.tbl)
		return sum;
	free(sum);
	return NULL;
}

static bool is_of(const struct key *key, const struct request_record *r)
{
	return key->pid == r->pid && key->status_class == r->status / 100 && !strcmp(key->handler, r->handler) && !strcmp(key->core, r->core) &&
	       !strcmp(key->method, r->method);
}

// What makes the key too many kinds goes under one.
static struct sum *sum_looked_up(struct storm *s, const struct request_record *r)
{
	struct key key;
	struct sum *sum;

	memset(&key, 0, sizeof(key));
	key.pid = r->pid;
	key.status_class = r->status / 100;
	snprintf(key.method, sizeof(key.method), "%s", r->method);
	snprintf(key.core, sizeof(key.core), "%s", r->core);
	snprintf(key.handler, sizeof(key.handler), "%s", r->handler);
	HASH_FIND(hh, s->sums, &key, sizeof(key), sum);
	if (sum || HASH_COUNT(s->sums) < SUMS_MAX)
		return sum ? sum : sum_new(s, &key);
	memset(&key, 0, sizeof(key));
	key.pid = r->pid;
	snprintf(key.handler, sizeof(key.handler), "(others)");
	HASH_FIND(hh, s->sums, &key, sizeof(key), sum);
	return sum ? sum : sum_new(s, &key);
}

static struct sum *sum_of(struct storm *s, const struct request_record *r)
{
	if (!s->last || !is_of(&s->last->key, r))
		s->last = sum_looked_up(s, r);
	return s->last;
}

static void add_to_sum(struct storm *s, struct request_record *r)
{
	struct sum *sum = sum_of(s, r);
	uint64_t total, first_bytes;

	if (!sum) {
		s->dropped++;
		record_free(r);
		return;
	}
	// These are spans and would not be added up: of a sum they are the sum.
	total = sum->record.times.value[METRIC_DURATION] + duration(r);
	first_bytes = sum->record.times.value[METRIC_TTFB] + r->times.value[METRIC_TTFB];
	if (breakdown_merge(&sum->record.times, s->metrics, &r->times))
		s->dropped++;
	breakdown_set(&sum->record.times, METRIC_DURATION, total);
	breakdown_set(&sum->record.times, METRIC_TTFB, first_bytes);
	breakdown_set(&sum->record.times, METRIC_REQUESTS, sum->record.times.parts);
	sum->record.incomplete |= r->incomplete;
	s->summed++;
	record_free(r);
}

static void offer_sample(struct storm *s, struct request_record *r)
{
	uint64_t at;

	s->passed++;
	if (s->n_sample < s->limit) {
		s->sample[s->n_sample++] = *r;
		return;
	}
	at = next_random(s) % s->passed;
	if (at < s->limit)
		swap(&s->sample[at], r);
	add_to_sum(s, r);
}

void storm_add(struct storm *s, struct request_record *r)
{
	if (s->n_slow < s->limit) {
		s->slow[s->n_slow] = *r;
		s->heap[s->n_slow] = s->n_slow;
		sift_up(s, s->n_slow++);
		return;
	}
	if (duration(r) > duration(&s->slow[s->heap[0]])) {
		swap(&s->slow[s->heap[0]], r);
		sift_down(s, 0);
	}
	offer_sample(s, r);
}

static int by_end(const void *a, const void *b)
{
	const struct request_record *x = a, *y = b;

	return x->end < y->end ? -1 : x->end > y->end;
}

static void tell_all(struct request_record *all, unsigned *n, storm_fn fn, void *context)
{
	if (*n)
		qsort(all, *n, sizeof(*all), by_end);
	for (unsigned i = 0; i < *n; i++) {
		fn(context, &all[i]);
		record_free(&all[i]);
	}
	*n = 0;
}

void storm_flush(struct storm *s, uint64_t start, uint64_t end, storm_fn fn, void *context)
{
	struct sum *sum, *next;

	tell_all(s->slow, &s->n_slow, fn, context);
	tell_all(s->sample, &s->n_sample, fn, context);
	HASH_ITER(hh, s->sums, sum, next) {
		sum->record.start = start;
		sum->record.end = end;
		fn(context, &sum->record);
	}
	sums_free(s);
	s->passed = 0;
}

uint64_t storm_summed(const struct storm *s)
{
	return s->summed;
}

uint64_t storm_dropped(const struct storm *s)
{
	return s->dropped;
}
