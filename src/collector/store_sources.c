// SPDX-License-Identifier: Apache-2.0
#include "collector/store_sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/intern.h"
#include "pprof/wire.h"

void sources_free(struct sources *s)
{
	free(s->source);
	memset(s, 0, sizeof(*s));
}

int sources_append(struct sources *s, struct source w)
{
	if (memory_grow(NULL, &s->source, &s->cap, s->n + 1, sizeof(w)))
		return -ENOMEM;
	s->source[s->n++] = w;
	return 0;
}

void intervals_free(struct intervals *s)
{
	free(s->v);
	memset(s, 0, sizeof(*s));
}

int intervals_add(struct intervals *s, uint64_t start, uint64_t end)
{
	if (start >= end)
		return 0;
	if (s->n && s->v[s->n - 1].end == start) {
		s->v[s->n - 1].end = end;
		return 0;
	}
	if (memory_grow(NULL, &s->v, &s->cap, s->n + 1, sizeof(*s->v)))
		return -ENOMEM;
	s->v[s->n++] = (struct interval){ start, end };
	return 0;
}

static int compare_intervals(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

void intervals_unite(struct intervals *s)
{
	size_t out = 0;

	if (!s->n)
		return;
	qsort(s->v, s->n, sizeof(*s->v), compare_intervals);
	for (size_t i = 1; i < s->n; i++) {
		if (s->v[i].start > s->v[out].end)
			s->v[++out] = s->v[i];
		else if (s->v[i].end > s->v[out].end)
			s->v[out].end = s->v[i].end;
	}
	s->n = out + 1;
}

uint64_t intervals_length(struct intervals *s)
{
	uint64_t sum = 0;

	intervals_unite(s);
	for (size_t i = 0; i < s->n; i++)
		sum += s->v[i].end - s->v[i].start;
	return sum;
}

static void put(struct buf *b, uint64_t v)
{
	uint8_t *o = buf_reserve(b, WIRE_VARINT_MAX);

	if (o)
		b->len += (size_t)(wire_put_varint(o, v) - o);
}

static int compare_sources(const void *a, const void *b)
{
	const struct source *x = a, *y = b;

	if (x->agent != y->agent)
		return x->agent < y->agent ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

int sources_pack(const struct sources *s, struct intervals *when, struct buf *out)
{
	uint64_t at = 0;

	if (s->n)
		qsort(s->source, s->n, sizeof(*s->source), compare_sources);
	intervals_unite(when);
	put(out, s->n);
	for (size_t i = 0; i < s->n; i++) {
		put(out, (uint64_t)s->source[i].agent);
		put(out, s->source[i].first);
		put(out, s->source[i].last - s->source[i].first);
	}
	put(out, when->n);
	for (size_t i = 0; i < when->n; i++) {
		put(out, when->v[i].start - at);
		put(out, when->v[i].end - when->v[i].start);
		at = when->v[i].end;
	}
	return out->error;
}

int sources_unpack(const void *data, size_t len, struct sources *s, struct intervals *when)
{
	const uint8_t *p = data, *end = p + len;
	uint64_t n, a, b, c, at = 0;

	if (!p || wire_get_varint(&p, end, &n))
		return -EBADMSG;
	for (; n; n--) {
		if (wire_get_varint(&p, end, &a) || wire_get_varint(&p, end, &b) || wire_get_varint(&p, end, &c) ||
		    a > INT64_MAX || b > INT64_MAX || c > INT64_MAX - b)
			return -EBADMSG;
		if (sources_append(s, (struct source){ (int64_t)a, b, b + c }))
			return -ENOMEM;
	}
	if (wire_get_varint(&p, end, &n))
		return -EBADMSG;
	for (; n; n--) {
		if (wire_get_varint(&p, end, &a) || wire_get_varint(&p, end, &b) || a > INT64_MAX - at || b > INT64_MAX - at - a)
			return -EBADMSG;
		if (intervals_add(when, at + a, at + a + b))
			return -ENOMEM;
		at += a + b;
	}
	return p == end ? 0 : -EBADMSG;
}
