// SPDX-License-Identifier: Apache-2.0
// Samples taken apart.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/decode_internal.h"

static int broken(const struct raw_sample *s, struct error *e, const char *what)
{
	return error_set(e, -EBADMSG, "byte %llu: %s of a sample is cut off or has more than 64 bits", (unsigned long long)s->at,
			 what);
}

static int too_deep(const struct raw_sample *s, struct error *e)
{
	return error_set(e, -E2BIG, "byte %llu: its stacks have more than the limit of %llu frames", (unsigned long long)s->at,
			 (unsigned long long)s->frames_max);
}

static int grow(struct tables *t, void *block, size_t *cap, size_t need, size_t size, struct error *e)
{
	int err = memory_grow(t->budget, block, cap, need, size);

	return err ? decode_memory(t->budget, err, e) : 0;
}

static int find_location(const struct tables *t, const struct raw_sample *s, uint64_t id, size_t *ret, struct error *e)
{
	int64_t index = id_map_find(&t->location_ids, id);

	if (index < 0)
		return error_set(e, -EBADMSG, "byte %llu: a sample names location %llu, which is not there",
				 (unsigned long long)s->at, (unsigned long long)id);
	*ret = (size_t)index;
	return 0;
}

static inline int add_location(struct tables *t, struct raw_sample *s, uint64_t id, struct error *e)
{
	size_t index = (size_t)id - 1;
	int err;

	if (!t->dense || index >= t->n_locations) {
		err = find_location(t, s, id, &index, e);
		if (err)
			return err;
	}
	s->frames += t->hot[index].frames;
	if (s->frames > s->frames_max)
		return too_deep(s, e);
	if (s->n == s->locations_cap) {
		err = grow(t, &s->locations, &s->locations_cap, s->n + 1, sizeof(*s->locations), e);
		if (err)
			return err;
	}
	s->locations[s->n++] = (uint32_t)index;
	return 0;
}

static inline int add_value(struct tables *t, struct raw_sample *s, uint64_t v, struct error *e)
{
	int err;

	if (s->n_values == s->values_cap) {
		err = grow(t, &s->values, &s->values_cap, s->n_values + 1, sizeof(*s->values), e);
		if (err)
			return err;
	}
	s->values[s->n_values++] = (int64_t)v;
	return 0;
}

static int locations(struct tables *t, struct raw_sample *s, const struct field *f, struct error *e)
{
	const uint8_t *p = f->data, *end;
	uint64_t v;
	int err;

	if (f->type == WIRE_VARINT)
		return add_location(t, s, f->value, e);
	err = field_bytes(f, "list of locations", e);
	if (err)
		return err;
	for (end = p + f->len; p < end && !err;)
		err = wire_get_varint(&p, end, &v) ? broken(s, e, "a location") : add_location(t, s, v, e);
	return err;
}

static int values(struct tables *t, struct raw_sample *s, const struct field *f, struct error *e)
{
	const uint8_t *p = f->data, *end;
	uint64_t v;
	int err;

	if (f->type == WIRE_VARINT)
		return add_value(t, s, f->value, e);
	err = field_bytes(f, "list of values", e);
	if (err)
		return err;
	for (end = p + f->len; p < end && !err;)
		err = wire_get_varint(&p, end, &v) ? broken(s, e, "a value") : add_value(t, s, v, e);
	return err;
}

static int label_string(const struct tables *t, const struct raw_sample *s, uint64_t index, uint32_t *ret, struct error *e)
{
	if (index >= t->n_strings)
		return error_set(e, -EBADMSG, "byte %llu: string index %lld of a label is out of range: there are %zu strings",
				 (unsigned long long)s->at, (long long)index, t->n_strings);
	*ret = t->strings[index].len ? (uint32_t)index : 0;
	return 0;
}

static int label(struct tables *t, struct raw_sample *s, const struct field *f, struct error *e)
{
	struct cursor c = field_cursor(f);
	struct profile_label l = { 0 };
	uint64_t v[5] = { 0 };
	struct field in;
	int more, err = field_bytes(f, "label", e);

	if (err)
		return err;
	while ((more = cursor_next(&c, "label", &in, e)) > 0) {
		if (in.number > 4)
			continue;
		err = field_varint(&in, "field of a label", &v[in.number], e);
		if (err)
			return err;
	}
	if (more)
		return more;
	err = label_string(t, s, v[1], &l.key, e);
	if (!err)
		err = label_string(t, s, v[2], &l.text, e);
	if (!err)
		err = label_string(t, s, v[4], &l.unit, e);
	if (err)
		return err;
	l.number = (int64_t)v[3];
	// As pprof: a text wins over a number, and a number 0 without a unit is no label.
	if (l.text)
		l.number = l.unit = 0;
	else if (!l.number && !l.unit)
		return 0;
	err = grow(t, &s->labels, &s->labels_cap, s->n_labels + 1, sizeof(l), e);
	if (!err)
		s->labels[s->n_labels++] = l;
	return err;
}

static int sample(struct tables *t, struct raw_sample *s, const struct field *f, struct error *e)
{
	struct cursor c = field_cursor(f);
	struct field in;
	int more, err = field_bytes(f, "sample", e);

	if (err)
		return err;
	s->at = f->at;
	s->n = s->n_values = s->n_labels = 0;
	while ((more = cursor_next(&c, "sample", &in, e)) > 0) {
		err = in.number == 1 ? locations(t, s, &in, e) :
		      in.number == 2 ? values(t, s, &in, e) :
		      in.number == 3 ? label(t, s, &in, e) :
				       0;
		if (err)
			return err;
	}
	if (!more && s->n_values != t->n_types)
		return error_set(e, -EBADMSG, "byte %llu: a sample has %zu values for %zu sample types", (unsigned long long)s->at,
				 s->n_values, t->n_types);
	return more;
}

int raw_samples(struct tables *t, struct stream *s, struct raw_sample *scratch, raw_sample_fn *fn, void *context, struct error *e)
{
	struct field f;
	int more, err;

	if (t->samples_to)
		stream_narrow(s, t->samples_from, t->samples_to);
	while ((more = stream_next(s, 1u << 2, &f, e)) > 0) {
		err = sample(t, scratch, &f, e);
		if (!err)
			err = fn(context, scratch, e);
		if (err)
			return err;
	}
	return more;
}

void raw_sample_free(struct raw_sample *s)
{
	free(s->locations);
	free(s->values);
	free(s->labels);
}
