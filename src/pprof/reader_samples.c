// SPDX-License-Identifier: Apache-2.0
// Second pass over a file: its samples, each mapped into the merged profile at once.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "pprof/decode_internal.h"

// One sample as it is taken apart.
struct raw_sample {
	size_t n, n_values, n_labels;
	uint64_t at;
};

static int broken(const struct raw_sample *s, struct error *e, const char *what)
{
	return error_set(e, -EBADMSG, "byte %llu: %s of a sample is cut off or has more than 64 bits", (unsigned long long)s->at,
			 what);
}

static int find_location(struct pprof_reader *r, struct tables *t, const struct raw_sample *s, uint64_t id, size_t *ret,
			 struct error *e)
{
	int64_t index = id_map_find(&t->location_ids, id);

	if (index < 0)
		return error_set(e, -EBADMSG, "byte %llu: a sample names location %llu, which is not there",
				 (unsigned long long)s->at, (unsigned long long)id);
	*ret = (size_t)index;
	return 0;
}

static int add_location(struct pprof_reader *r, struct tables *t, struct raw_sample *s, uint64_t id, struct error *e)
{
	size_t index = (size_t)id - 1;
	struct hot_location *l;
	int err = 0;

	if (!t->dense || index >= t->n_locations) {
		err = find_location(r, t, s, id, &index, e);
		if (err)
			return err;
	}
	l = &t->hot[index];
	r->frames += l->frames;
	if (r->frames > r->limits.frames)
		return error_set(e, -E2BIG, "byte %llu: its stacks have more than the limit of %llu frames",
				 (unsigned long long)s->at, (unsigned long long)r->limits.frames);
	if (s->n == r->stack_cap)
		err = memory_grow(&r->profile->budget, &r->stack, &r->stack_cap, s->n + 1, sizeof(*r->stack));
	if (!err && !l->merged)
		err = map_location(r, t, index, &l->merged);
	if (err)
		return decode_memory(&r->profile->budget, err, e);
	r->stack[s->n++] = l->merged;
	return 0;
}

static int add_value(struct pprof_reader *r, struct raw_sample *s, uint64_t v, struct error *e)
{
	int err;

	if (s->n_values == r->values_cap) {
		err = memory_grow(&r->profile->budget, &r->values, &r->values_cap, s->n_values + 1, sizeof(*r->values));
		if (err)
			return decode_memory(&r->profile->budget, err, e);
	}
	r->values[s->n_values++] = (int64_t)v;
	return 0;
}

static int locations(struct pprof_reader *r, struct tables *t, struct raw_sample *s, const struct field *f, struct error *e)
{
	const uint8_t *p = f->data, *end;
	uint64_t v;
	int err = 0;

	if (f->type == WIRE_VARINT)
		return add_location(r, t, s, f->value, e);
	err = field_bytes(f, "list of locations", e);
	if (err)
		return err;
	for (end = p + f->len; p < end && !err;)
		err = wire_get_varint(&p, end, &v) ? broken(s, e, "a location") : add_location(r, t, s, v, e);
	return err;
}

static int values(struct pprof_reader *r, struct raw_sample *s, const struct field *f, struct error *e)
{
	const uint8_t *p = f->data, *end;
	uint64_t v;
	int err = 0;

	if (f->type == WIRE_VARINT)
		return add_value(r, s, f->value, e);
	err = field_bytes(f, "list of values", e);
	if (err)
		return err;
	for (end = p + f->len; p < end && !err;)
		err = wire_get_varint(&p, end, &v) ? broken(s, e, "a value") : add_value(r, s, v, e);
	return err;
}

static int label_string(struct pprof_reader *r, struct tables *t, const struct raw_sample *s, uint64_t index, uint32_t *ret,
			struct error *e)
{
	int err;

	if (index >= t->n_strings)
		return error_set(e, -EBADMSG, "byte %llu: string index %lld of a label is out of range: there are %zu strings",
				 (unsigned long long)s->at, (long long)index, t->n_strings);
	*ret = t->strings[index].merged - 1;
	if (t->strings[index].merged)
		return 0;
	err = map_string(r, t, (uint32_t)index, ret);
	return err ? decode_memory(&r->profile->budget, err, e) : 0;
}

static int label(struct pprof_reader *r, struct tables *t, struct raw_sample *s, const struct field *f, struct error *e)
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
	err = label_string(r, t, s, v[1], &l.key, e);
	if (!err)
		err = label_string(r, t, s, v[2], &l.text, e);
	if (!err)
		err = label_string(r, t, s, v[4], &l.unit, e);
	if (err)
		return err;
	l.number = (int64_t)v[3];
	// As pprof: a text wins over a number, and a number 0 without a unit is no label.
	if (l.text)
		l.number = l.unit = 0;
	else if (!l.number && !l.unit)
		return 0;
	err = memory_grow(&r->profile->budget, &r->labels, &r->labels_cap, s->n_labels + 1, sizeof(l));
	if (!err)
		err = memory_grow(&r->profile->budget, &r->ranks, &r->ranks_cap, s->n_labels + 1, sizeof(*r->ranks));
	if (!err)
		err = intern_put(&r->label_keys, &l.key, sizeof(l.key), &l.pad, NULL);
	if (err)
		return decode_memory(&r->profile->budget, err, e);
	r->ranks[s->n_labels] = (uint64_t)l.pad << 32 | s->n_labels;
	l.pad = 0;
	r->labels[s->n_labels++] = l;
	return 0;
}

static int compare_ranks(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

// Labels in the order in which their keys were first used, so that equal sets are equal bytes.
static int sort_labels(struct pprof_reader *r, struct raw_sample *s)
{
	struct profile_label *other;
	size_t n = s->n_labels, i;
	int err;

	for (i = 1; i < n && r->ranks[i - 1] <= r->ranks[i]; i++)
		;
	if (i >= n)
		return 0;
	err = memory_grow(&r->profile->budget, &r->sorted, &r->sorted_cap, n, sizeof(*r->sorted));
	if (err)
		return err;
	qsort(r->ranks, n, sizeof(*r->ranks), compare_ranks);
	for (i = 0; i < n; i++)
		r->sorted[i] = r->labels[(uint32_t)r->ranks[i]];
	other = r->labels;
	r->labels = r->sorted;
	r->sorted = other;
	i = r->labels_cap;
	r->labels_cap = r->sorted_cap;
	r->sorted_cap = i;
	return 0;
}

static bool is_base(const struct profile *p, const struct profile_label *labels, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (labels[i].text && !strcmp(profile_text(p, labels[i].key), "pprof::base") &&
		    !strcmp(profile_text(p, labels[i].text), "true"))
			return true;
	return false;
}

static int pick_values(struct pprof_reader *r, const struct raw_sample *s, bool *ret_any, bool *ret_negative)
{
	int64_t product;

	for (size_t i = 0; i < r->profile->n_types; i++) {
		int64_t v = r->values[r->column[i]];

		if (r->factor[i] != 1 && __builtin_mul_overflow(v, r->factor[i], &product))
			v = v < 0 ? INT64_MIN : INT64_MAX;
		else if (r->factor[i] != 1)
			v = product;
		*ret_any |= v != 0;
		*ret_negative |= v < 0;
		r->picked[i] = v;
	}
	return 0;
}

static int finish_sample(struct pprof_reader *r, struct tables *t, struct raw_sample *s, struct error *e)
{
	struct profile *p = r->profile;
	struct pprof_sample out = { 0 };
	bool any = false, negative = false;
	int err;

	if (s->n_values != t->n_types)
		return error_set(e, -EBADMSG, "byte %llu: a sample has %zu values for %zu sample types", (unsigned long long)s->at,
				 s->n_values, t->n_types);
	err = sort_labels(r, s);
	if (err)
		return decode_memory(&p->budget, err, e);
	pick_values(r, s, &any, &negative);
	if (!any)
		return 0;
	out.base = is_base(p, r->labels, s->n_labels);
	if ((negative || out.base) && !r->allow_diff)
		return error_set(e, -EINVAL,
				 "byte %llu: it is a difference of two profiles (%s); widths cannot be negative: take the two "
				 "profiles themselves, or show it with `go tool pprof`",
				 (unsigned long long)s->at, out.base ? "label pprof::base" : "a value below zero");
	if (r->fn) {
		out.locations = r->stack;
		out.labels = r->labels;
		out.values = r->picked;
		out.n = (uint32_t)s->n;
		out.n_labels = (uint32_t)s->n_labels;
		return r->fn(r->context, p, &out, e);
	}
	err = batch_add(&r->batch, p, r->stack, (uint32_t)s->n, r->labels, (uint32_t)s->n_labels, r->picked);
	return err ? decode_memory(&p->budget, err, e) : 0;
}

static int sample(struct pprof_reader *r, struct tables *t, const struct field *f, struct error *e)
{
	struct cursor c = field_cursor(f);
	struct raw_sample s = { .at = f->at };
	struct field in;
	int more, err = field_bytes(f, "sample", e);

	if (err)
		return err;
	while ((more = cursor_next(&c, "sample", &in, e)) > 0) {
		err = in.number == 1 ? locations(r, t, &s, &in, e) :
		      in.number == 2 ? values(r, &s, &in, e) :
		      in.number == 3 ? label(r, t, &s, &in, e) :
				       0;
		if (err)
			return err;
	}
	return more ? more : finish_sample(r, t, &s, e);
}

int read_samples(struct pprof_reader *r, struct tables *t, struct stream *s, struct error *e)
{
	struct field f;
	int more, err;

	err = memory_grow(&r->profile->budget, &r->picked, &r->picked_cap, r->profile->n_types, sizeof(*r->picked));
	if (err)
		return decode_memory(&r->profile->budget, err, e);
	while ((more = stream_next(s, 1u << 2, &f, e)) > 0) {
		err = sample(r, t, &f, e);
		if (err)
			return err;
	}
	if (more)
		return more;
	err = batch_flush(&r->batch, r->profile);
	return err ? decode_memory(&r->profile->budget, err, e) : 0;
}
