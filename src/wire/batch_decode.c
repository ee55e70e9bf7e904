// SPDX-License-Identifier: Apache-2.0
// Two passes over the message: the first counts and adds up what is needed, the second fills one allocation whose size is
// bounded by the message's and the limits of batch.h.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/batch.h"
#include "wire/batch_fields.h"
#include "wire/fields.h"
#include "wire/header.h"

// A text that was not said: each is said once, so that the room for all of them is known.
static const char nothing[] = "";

struct decoded {
	struct batch batch;
	struct batch_profile *profiles, *requests;
	struct batch_label *labels;
	bool borrow; // data stays in the message
	char *bytes; // what is left of the allocation
};

static int open_message(const void *data, size_t size, struct fields *ret, struct error *e)
{
	struct message_header h;
	int err;

	if (size > BATCH_BYTES_MAX)
		return error_set(e, -EBADMSG, "a batch of %zu bytes is larger than the limit of %u", size, BATCH_BYTES_MAX);
	err = message_header_get(data, size, &h, e);
	if (err)
		return err;
	if (h.kind != MESSAGE_BATCH)
		return error_set(e, -EBADMSG, "the message is of kind %u, not a batch", h.kind);
	ret->at = (const uint8_t *)data + MESSAGE_HEADER_SIZE;
	ret->end = (const uint8_t *)data + size;
	return 0;
}

static int count_limit(unsigned *n, unsigned max, const char *what, struct error *e)
{
	if (*n == max)
		return error_set(e, -EBADMSG, "more than %u %s", max, what);
	(*n)++;
	return 0;
}

// *bytes: of what is kept besides data, at most.
static int count_field(const struct field *f, struct batch *counts, size_t *bytes, struct error *e)
{
	if (f->type == WIRE_BYTES && (f->number == BATCH_FIELD_LABEL || f->number == BATCH_FIELD_PROFILE))
		*bytes += f->number == BATCH_FIELD_LABEL || f->size < BATCH_SERVICE_MAX ? f->size : BATCH_SERVICE_MAX;
	switch (f->number) {
	case BATCH_FIELD_LABEL:
		return count_limit(&counts->n_labels, BATCH_LABELS_MAX, "labels", e);
	case BATCH_FIELD_PROFILE:
		return count_limit(&counts->n_profiles, BATCH_PROFILES_MAX, "profiles", e);
	case BATCH_FIELD_REQUEST:
		return count_limit(&counts->n_requests, BATCH_REQUESTS_MAX, "requests", e);
	default:
		return 0;
	}
}

static int count_fields(struct fields in, struct batch *counts, size_t *bytes, struct error *e)
{
	struct field f;
	int more;

	while ((more = fields_next(&in, &f, e)) > 0) {
		int err = count_field(&f, counts, bytes, e);

		if (err)
			return err;
	}
	return more;
}

// The arrays first, then bytes: those of the message and a NUL for each of its strings.
static struct decoded *allocate(const struct batch *counts, size_t bytes)
{
	size_t profiles = counts->n_profiles * sizeof(struct batch_profile), labels = counts->n_labels * sizeof(struct batch_label);
	size_t requests = counts->n_requests * sizeof(struct batch_profile);
	size_t strings = 2 * counts->n_labels + 2 * counts->n_profiles + counts->n_requests + BATCH_NODE_MAX + 1;
	struct decoded *d = calloc(1, sizeof(*d) + profiles + labels + requests + bytes + strings);

	if (!d)
		return NULL;
	d->profiles = (struct batch_profile *)(d + 1);
	d->requests = d->profiles + counts->n_profiles;
	d->labels = (struct batch_label *)(d->requests + counts->n_requests);
	d->bytes = (char *)(d->labels + counts->n_labels);
	d->batch.profiles = d->profiles;
	d->batch.requests = d->requests;
	d->batch.labels = d->labels;
	d->batch.node = nothing;
	return d;
}

static const char *keep(struct decoded *d, const struct field *f)
{
	char *at = d->bytes;

	memcpy(at, f->data, f->size);
	at[f->size] = 0;
	d->bytes += f->size + 1;
	return at;
}

static int keep_text(struct decoded *d, const struct field *f, size_t max, const char *name, const char **ret, struct error *e)
{
	int err = field_expect(f, WIRE_BYTES, name, e);

	if (err)
		return err;
	if (f->size > max)
		return error_set(e, -EBADMSG, "%s has %zu bytes, more than %zu", name, f->size, max);
	if (memchr(f->data, 0, f->size))
		return error_set(e, -EBADMSG, "%s contains a NUL", name);
	if (*ret != nothing)
		return error_set(e, -EBADMSG, "%s is said twice", name);
	*ret = keep(d, f);
	return 0;
}

static int get_number(const struct field *f, const char *name, uint64_t *ret, struct error *e)
{
	int err = field_expect(f, WIRE_VARINT, name, e);

	if (!err)
		*ret = f->value;
	return err;
}

static int get_instance(struct batch *b, const struct field *f, struct error *e)
{
	int err = field_expect(f, WIRE_BYTES, "the instance", e);

	if (err)
		return err;
	if (f->size != sizeof(b->instance))
		return error_set(e, -EBADMSG, "the instance has %zu bytes, not %zu", f->size, sizeof(b->instance));
	memcpy(b->instance, f->data, f->size);
	return 0;
}

static struct fields fields_of(const struct field *f)
{
	return (struct fields){ f->data, f->data + f->size };
}

static int get_label(struct decoded *d, const struct field *f, struct error *e)
{
	struct batch_label *l = &d->labels[d->batch.n_labels++];
	struct fields in;
	struct field part;
	int more, err = field_expect(f, WIRE_BYTES, "a label", e);

	l->name = l->value = nothing;
	if (err)
		return err;
	in = fields_of(f);
	while ((more = fields_next(&in, &part, e)) > 0) {
		if (part.number == LABEL_FIELD_NAME)
			err = keep_text(d, &part, BATCH_LABEL_MAX, "a label's name", &l->name, e);
		else if (part.number == LABEL_FIELD_VALUE)
			err = keep_text(d, &part, BATCH_LABEL_MAX, "a label's value", &l->value, e);
		if (err)
			return err;
	}
	return more;
}

static int get_data(struct decoded *d, const struct field *f, struct batch_profile *p, const char *name, struct error *e)
{
	int err = field_expect(f, WIRE_BYTES, name, e);

	if (err)
		return err;
	if (p->data)
		return error_set(e, -EBADMSG, "%s is said twice", name);
	p->data = d->borrow ? (const char *)f->data : keep(d, f);
	p->size = f->size;
	return 0;
}

static int get_profile(struct decoded *d, const struct field *f, struct error *e)
{
	struct batch_profile *p = &d->profiles[d->batch.n_profiles++];
	struct fields in;
	struct field part;
	int more, err = field_expect(f, WIRE_BYTES, "a profile", e);

	p->service = nothing;
	if (err)
		return err;
	in = fields_of(f);
	while ((more = fields_next(&in, &part, e)) > 0) {
		if (part.number == PROFILE_FIELD_SERVICE)
			err = keep_text(d, &part, BATCH_SERVICE_MAX, "a service", &p->service, e);
		else if (part.number == PROFILE_FIELD_DATA)
			err = get_data(d, &part, p, "a profile's data", e);
		if (err)
			return err;
	}
	return more;
}

static int get_field(struct decoded *d, const struct field *f, struct error *e)
{
	struct batch *b = &d->batch;
	uint64_t kind;
	int err;

	switch (f->number) {
	case BATCH_FIELD_KIND:
		err = get_number(f, "the kind", &kind, e);
		if (!err && kind > BATCH_REQUESTS)
			return error_set(e, -EBADMSG, "there is no kind %llu of batches", (unsigned long long)kind);
		if (!err)
			b->kind = (enum batch_kind)kind;
		return err;
	case BATCH_FIELD_NODE:
		return keep_text(d, f, BATCH_NODE_MAX, "the node's name", &b->node, e);
	case BATCH_FIELD_INSTANCE:
		return get_instance(b, f, e);
	case BATCH_FIELD_SEQUENCE:
		return get_number(f, "the sequence", &b->sequence, e);
	case BATCH_FIELD_START:
		return get_number(f, "the start", &b->start, e);
	case BATCH_FIELD_END:
		return get_number(f, "the end", &b->end, e);
	case BATCH_FIELD_LABEL:
		return get_label(d, f, e);
	case BATCH_FIELD_PROFILE:
		return get_profile(d, f, e);
	case BATCH_FIELD_GAP_FIRST:
		return get_number(f, "the gap's first batch", &b->gap_first, e);
	case BATCH_FIELD_GAP_BYTES:
		return get_number(f, "the gap's bytes", &b->gap_bytes, e);
	case BATCH_FIELD_REQUEST:
		return get_data(d, f, &d->requests[b->n_requests++], "a request", e);
	default:
		return 0;
	}
}

static int get_fields(struct decoded *d, struct fields in, struct error *e)
{
	struct field f;
	int more;

	while ((more = fields_next(&in, &f, e)) > 0) {
		int err = get_field(d, &f, e);

		if (err)
			return err;
	}
	return more;
}

static int decode(const void *data, size_t size, bool borrow, struct batch **ret, struct error *e)
{
	struct batch counts = { 0 };
	size_t bytes = 0;
	struct fields in;
	struct decoded *d;
	int err = open_message(data, size, &in, e);

	if (!err)
		err = count_fields(in, &counts, &bytes, e);
	if (err)
		return err;
	d = allocate(&counts, borrow ? bytes : size);
	if (!d)
		return error_set(e, -ENOMEM, "out of memory");
	d->borrow = borrow;
	err = get_fields(d, in, e);
	if (!err)
		err = batch_check(&d->batch, e);
	if (err) {
		batch_free(&d->batch);
		return err == -EINVAL ? -EBADMSG : err;
	}
	*ret = &d->batch;
	return 0;
}

int batch_decode(const void *data, size_t size, struct batch **ret, struct error *e)
{
	return decode(data, size, false, ret, e);
}

int batch_decode_borrow(const void *data, size_t size, struct batch **ret, struct error *e)
{
	return decode(data, size, true, ret, e);
}

int batch_identity(const void *data, size_t size, uint8_t ret_instance[16], uint64_t *ret_sequence, struct error *e)
{
	struct batch b = { 0 };
	struct fields in;
	struct field f;
	int more, err = open_message(data, size, &in, e);

	if (err)
		return err;
	while ((more = fields_next(&in, &f, e)) > 0) {
		if (f.number == BATCH_FIELD_INSTANCE)
			err = get_instance(&b, &f, e);
		else if (f.number == BATCH_FIELD_SEQUENCE)
			err = get_number(&f, "the sequence", &b.sequence, e);
		if (err)
			return err;
	}
	if (more)
		return more;
	memcpy(ret_instance, b.instance, sizeof(b.instance));
	*ret_sequence = b.sequence;
	return 0;
}

void batch_free(struct batch *b)
{
	if (b)
		free((struct decoded *)((char *)b - offsetof(struct decoded, batch)));
}
