// SPDX-License-Identifier: Apache-2.0
#include "collector/solr_batch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void solr_batch_clear(struct solr_batch *b)
{
	for (unsigned i = 0; i < b->n; i++)
		free(b->document[i].refused);
	b->n = b->n_refused = 0;
	b->bytes.len = 0;
	b->bytes.error = 0;
}

void solr_batch_free(struct solr_batch *b)
{
	solr_batch_clear(b);
	buf_free(&b->bytes);
	free(b->document);
	*b = (struct solr_batch){ 0 };
}

static int refuse(struct solr_batch *b, struct solr_document *d, const char *why)
{
	d->refused = strdup(why);
	b->n_refused += d->refused != NULL;
	return d->refused ? 0 : -ENOMEM;
}

int solr_batch_add(struct solr_batch *b, const char *node, const void *document, size_t size, const char *refused)
{
	struct solr_document *d;

	if (b->n == b->cap) {
		unsigned cap = b->cap ? 2 * b->cap : 1024;
		struct solr_document *more = realloc(b->document, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		b->document = more;
		b->cap = cap;
	}
	d = &b->document[b->n];
	*d = (struct solr_document){ .offset = b->bytes.len, .size = size };
	snprintf(d->node, sizeof(d->node), "%s", node);
	buf_append(&b->bytes, document, size);
	if (b->bytes.error)
		return b->bytes.error;
	b->n++;
	return refused ? refuse(b, d, refused) : 0;
}

struct sending {
	struct solr_batch *batch;
	solr_send_fn send;
	void *context;
	struct buf json;
	struct error *e;
};

// Documents [from, to) that are not refused.
static unsigned make_json(struct sending *s, unsigned from, unsigned to)
{
	unsigned n = 0;

	s->json.len = 0;
	for (unsigned i = from; i < to; i++) {
		const struct solr_document *d = &s->batch->document[i];

		if (d->refused)
			continue;
		buf_byte(&s->json, n++ ? ',' : '[');
		buf_append(&s->json, s->batch->bytes.data + d->offset, d->size);
	}
	buf_byte(&s->json, ']');
	return n;
}

// The other side names one of several that may be wrong, and not always that: halves until there is one.
static int send_range(struct sending *s, unsigned from, unsigned to)
{
	unsigned n = make_json(s, from, to), middle = from + (to - from) / 2;
	struct error why = { 0 };
	int err;

	if (s->json.error)
		return error_set(s->e, s->json.error, "out of memory");
	if (!n)
		return 0;
	err = s->send(s->context, s->json.data, s->json.len, n, &why);
	if (err != -EINVAL) {
		if (err && s->e)
			*s->e = why;
		return err;
	}
	if (to - from == 1)
		return refuse(s->batch, &s->batch->document[from], why.text) ? error_set(s->e, -ENOMEM, "out of memory") : 0;
	err = send_range(s, from, middle);
	return err ? err : send_range(s, middle, to);
}

// Marks of documents that were refused before stay.
static void forget(struct solr_batch *b, const bool *before)
{
	for (unsigned i = 0; i < b->n; i++)
		if (b->document[i].refused && !before[i]) {
			free(b->document[i].refused);
			b->document[i].refused = NULL;
			b->n_refused--;
		}
}

int solr_batch_send(struct solr_batch *b, solr_send_fn send, void *context, struct error *e)
{
	struct sending s = { b, send, context, { 0 }, e };
	bool *before = calloc(b->n + 1, sizeof(*before));
	int err;

	if (!before)
		return error_set(e, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < b->n; i++)
		before[i] = b->document[i].refused;
	err = send_range(&s, 0, b->n);
	if (err)
		forget(b, before);
	buf_free(&s.json);
	free(before);
	return err;
}
