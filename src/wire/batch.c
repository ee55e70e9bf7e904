// SPDX-License-Identifier: Apache-2.0
#include "wire/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "pprof/wire.h"
#include "wire/batch_fields.h"
#include "wire/header.h"

static bool letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool batch_node_valid(const char *node)
{
	size_t n = 0;

	for (; node[n]; n++)
		if (n == BATCH_NODE_MAX || (!letter_or_digit(node[n]) && !strchr(".-_", node[n])))
			return false;
	return n && node[0] != '.' && node[0] != '-';
}

static bool label_name_valid(const char *name)
{
	size_t n = 0;

	for (; name[n]; n++)
		if (n == BATCH_LABEL_MAX || (!letter_or_digit(name[n]) && !strchr("._-/", name[n])))
			return false;
	return n;
}

// Text that may be shown: UTF-8 without control characters.
static bool text_valid(const char *text, size_t max)
{
	size_t n = strnlen(text, max + 1);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	return n <= max && text_is_utf8(text, n);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// One profile for each service and one value for each label: the reader's tables are keyed by them.
static int check_unique(const char **names, unsigned n, const char *what, struct error *e)
{
	qsort(names, n, sizeof(*names), compare_names);
	for (unsigned i = 1; i < n; i++)
		if (!strcmp(names[i - 1], names[i]))
			return error_set(e, -EINVAL, "there are two %s called '%.100s'", what, names[i]);
	return 0;
}

static int check_labels(const struct batch *b, struct error *e)
{
	const char *names[BATCH_LABELS_MAX];

	if (b->n_labels > BATCH_LABELS_MAX)
		return error_set(e, -EINVAL, "%u labels are more than %u", b->n_labels, BATCH_LABELS_MAX);
	for (unsigned i = 0; i < b->n_labels; i++) {
		if (!label_name_valid(b->labels[i].name))
			return error_set(e, -EINVAL, "label %u has a name that is empty, too long or not of letters, digits and ._-/", i);
		if (!text_valid(b->labels[i].value, BATCH_LABEL_MAX))
			return error_set(e, -EINVAL, "the value of label '%.60s' is too long or not text", b->labels[i].name);
		names[i] = b->labels[i].name;
	}
	return check_unique(names, b->n_labels, "labels", e);
}

static int check_profiles(const struct batch *b, struct error *e)
{
	const char **names;
	int err = 0;

	if (b->n_profiles > BATCH_PROFILES_MAX)
		return error_set(e, -EINVAL, "%u profiles are more than %u", b->n_profiles, BATCH_PROFILES_MAX);
	if (!b->n_profiles)
		return 0;
	names = calloc(b->n_profiles, sizeof(*names));
	if (!names)
		return error_set(e, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < b->n_profiles && !err; i++) {
		names[i] = b->profiles[i].service;
		if (!names[i][0] || !text_valid(names[i], BATCH_SERVICE_MAX))
			err = error_set(e, -EINVAL, "profile %u has a service that is empty, too long or not text", i);
		else if (!b->profiles[i].size)
			err = error_set(e, -EINVAL, "the profile of service '%.100s' is empty", names[i]);
	}
	if (!err)
		err = check_unique(names, b->n_profiles, "profiles of a service", e);
	free(names);
	return err;
}

static int check_times(const struct batch *b, struct error *e)
{
	if (b->end > INT64_MAX)
		return error_set(e, -EINVAL, "the window ends after the year 2262");
	if (b->start > b->end || (b->kind == BATCH_WINDOW && b->start == b->end))
		return error_set(e, -EINVAL, "the window does not end after its start");
	return 0;
}

// What one kind has and another has not.
static int check_kind(const struct batch *b, struct error *e)
{
	switch (b->kind) {
	case BATCH_WINDOW:
		if (b->n_requests || b->gap_first || b->gap_bytes)
			return error_set(e, -EINVAL, "a window has requests or a gap");
		return 0;
	case BATCH_GAP:
		if (b->n_requests || b->n_profiles)
			return error_set(e, -EINVAL, "a gap has profiles or requests");
		if (!b->gap_first || b->gap_first > b->sequence)
			return error_set(e, -EINVAL, "a gap of batches %llu to %llu cannot be", (unsigned long long)b->gap_first,
					 (unsigned long long)b->sequence);
		return 0;
	case BATCH_REQUESTS:
		if (b->n_profiles || b->gap_first || b->gap_bytes)
			return error_set(e, -EINVAL, "a batch of requests has profiles or a gap");
		if (b->n_requests > BATCH_REQUESTS_MAX)
			return error_set(e, -EINVAL, "%u requests are more than %u", b->n_requests, BATCH_REQUESTS_MAX);
		for (unsigned i = 0; i < b->n_requests; i++)
			if (!b->requests[i].size || !text_is_utf8(b->requests[i].data, b->requests[i].size))
				return error_set(e, -EINVAL, "request %u is empty or not text", i);
		return 0;
	default:
		return error_set(e, -EINVAL, "there is no kind %u of batches", (unsigned)b->kind);
	}
}

int batch_check(const struct batch *b, struct error *e)
{
	static const uint8_t none[16];
	int err;

	if (!batch_node_valid(b->node))
		return error_set(e, -EINVAL, "the node's name is empty, longer than %u or not of letters, digits and .-_", BATCH_NODE_MAX);
	if (!memcmp(b->instance, none, sizeof(none)))
		return error_set(e, -EINVAL, "the instance is missing");
	if (!b->sequence || b->sequence > INT64_MAX)
		return error_set(e, -EINVAL, "the sequence is missing or too large");
	err = check_times(b, e);
	if (!err)
		err = check_kind(b, e);
	if (!err)
		err = check_labels(b, e);
	return err ? err : check_profiles(b, e);
}

// A message of two strings or byte fields, numbered 1 and 2; as everywhere, what is empty is not written.
static size_t field_size(size_t len)
{
	return len ? wire_bytes_size(len) : 0;
}

static uint8_t *put_field(uint8_t *p, unsigned number, const void *data, size_t len)
{
	return len ? wire_put_bytes(p, number, data, len) : p;
}

static size_t label_size(const struct batch_label *l)
{
	return field_size(strlen(l->name)) + field_size(strlen(l->value));
}

static size_t profile_size(const struct batch_profile *p)
{
	return field_size(strlen(p->service)) + field_size(p->size);
}

static size_t message_size(const struct batch *b)
{
	size_t size = wire_scalar_size(b->kind) + field_size(strlen(b->node)) + wire_bytes_size(16) +
		      wire_scalar_size(b->sequence) + wire_scalar_size(b->start) + wire_scalar_size(b->end) +
		      wire_scalar_size(b->gap_first) + wire_scalar_size(b->gap_bytes);

	for (unsigned i = 0; i < b->n_labels; i++)
		size += wire_bytes_size(label_size(&b->labels[i]));
	for (unsigned i = 0; i < b->n_profiles; i++)
		size += wire_bytes_size(profile_size(&b->profiles[i]));
	for (unsigned i = 0; i < b->n_requests; i++)
		size += wire_bytes_size(b->requests[i].size);
	return size;
}

static uint8_t *put_message(uint8_t *p, const struct batch *b)
{
	p = wire_put_scalar(p, BATCH_FIELD_KIND, b->kind);
	p = put_field(p, BATCH_FIELD_NODE, b->node, strlen(b->node));
	p = wire_put_bytes(p, BATCH_FIELD_INSTANCE, b->instance, 16);
	p = wire_put_scalar(p, BATCH_FIELD_SEQUENCE, b->sequence);
	p = wire_put_scalar(p, BATCH_FIELD_START, b->start);
	p = wire_put_scalar(p, BATCH_FIELD_END, b->end);
	for (unsigned i = 0; i < b->n_labels; i++) {
		p = wire_put_length(p, BATCH_FIELD_LABEL, label_size(&b->labels[i]));
		p = put_field(p, LABEL_FIELD_NAME, b->labels[i].name, strlen(b->labels[i].name));
		p = put_field(p, LABEL_FIELD_VALUE, b->labels[i].value, strlen(b->labels[i].value));
	}
	for (unsigned i = 0; i < b->n_profiles; i++) {
		p = wire_put_length(p, BATCH_FIELD_PROFILE, profile_size(&b->profiles[i]));
		p = put_field(p, PROFILE_FIELD_SERVICE, b->profiles[i].service, strlen(b->profiles[i].service));
		p = put_field(p, PROFILE_FIELD_DATA, b->profiles[i].data, b->profiles[i].size);
	}
	p = wire_put_scalar(p, BATCH_FIELD_GAP_FIRST, b->gap_first);
	p = wire_put_scalar(p, BATCH_FIELD_GAP_BYTES, b->gap_bytes);
	for (unsigned i = 0; i < b->n_requests; i++)
		p = wire_put_bytes(p, BATCH_FIELD_REQUEST, b->requests[i].data, b->requests[i].size);
	return p;
}

int batch_encode(const struct batch *b, struct buf *ret)
{
	size_t size;
	uint8_t *to;
	int err = batch_check(b, NULL);

	if (err)
		return err;
	size = MESSAGE_HEADER_SIZE + message_size(b);
	if (size > BATCH_BYTES_MAX)
		return -EFBIG;
	to = buf_reserve(ret, size);
	if (!to)
		return ret->error;
	message_header_put(to, MESSAGE_BATCH, 0);
	put_message(to + MESSAGE_HEADER_SIZE, b);
	ret->len += size;
	return 0;
}
