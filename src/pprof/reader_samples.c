// SPDX-License-Identifier: Apache-2.0
// Second pass over a file: its samples, each mapped into the merged profile at once.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "pprof/decode_internal.h"

static int map_locations(struct pprof_reader *r, struct tables *t, struct raw_sample *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct hot_location *l = &t->hot[s->locations[i]];
		int err = l->merged ? 0 : map_location(r, t, s->locations[i], &l->merged);

		if (err)
			return err;
		s->locations[i] = l->merged;
	}
	return 0;
}

static int map_label(struct pprof_reader *r, struct tables *t, struct profile_label *l, uint32_t *ret_rank)
{
	uint32_t *const texts[] = { &l->key, &l->text, &l->unit };
	int err = 0;

	for (unsigned i = 0; i < 3 && !err; i++) {
		uint32_t merged = t->strings[*texts[i]].merged;

		if (merged)
			*texts[i] = merged - 1;
		else
			err = map_string(r, t, *texts[i], texts[i]);
	}
	return err ? err : intern_put(&r->label_keys, &l->key, sizeof(l->key), ret_rank, NULL);
}

static int map_labels(struct pprof_reader *r, struct tables *t, struct raw_sample *s)
{
	int err = memory_grow(&r->profile->budget, &r->ranks, &r->ranks_cap, s->n_labels, sizeof(*r->ranks));

	for (size_t i = 0; i < s->n_labels && !err; i++) {
		uint32_t rank = 0;

		err = map_label(r, t, &s->labels[i], &rank);
		r->ranks[i] = (uint64_t)rank << 32 | i;
	}
	return err;
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
		r->sorted[i] = s->labels[(uint32_t)r->ranks[i]];
	other = s->labels;
	s->labels = r->sorted;
	r->sorted = other;
	i = s->labels_cap;
	s->labels_cap = r->sorted_cap;
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
		int64_t v = s->values[r->column[i]];

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

static int add_sample(void *reader, struct raw_sample *s, struct error *e)
{
	struct pprof_reader *r = reader;
	struct profile *p = r->profile;
	struct pprof_sample out = { 0 };
	bool any = false, negative = false;
	int err;

	err = map_locations(r, &r->tables, s);
	if (!err)
		err = map_labels(r, &r->tables, s);
	if (!err)
		err = sort_labels(r, s);
	if (err)
		return decode_memory(&p->budget, err, e);
	pick_values(r, s, &any, &negative);
	if (!any)
		return 0;
	out.base = is_base(p, s->labels, s->n_labels);
	if ((negative || out.base) && !r->allow_diff)
		return error_set(e, -EINVAL,
				 "byte %llu: it is a difference of two profiles (%s); widths cannot be negative: take the two "
				 "profiles themselves, or show it with `go tool pprof`",
				 (unsigned long long)s->at, out.base ? "label pprof::base" : "a value below zero");
	if (r->fn) {
		out.locations = s->locations;
		out.labels = s->labels;
		out.values = r->picked;
		out.n = (uint32_t)s->n;
		out.n_labels = (uint32_t)s->n_labels;
		return r->fn(r->context, p, &out, e);
	}
	err = batch_add(&r->batch, p, s->locations, (uint32_t)s->n, s->labels, (uint32_t)s->n_labels, r->picked);
	return err ? decode_memory(&p->budget, err, e) : 0;
}

int read_samples(struct pprof_reader *r, struct tables *t, struct stream *s, struct error *e)
{
	int err = memory_grow(&r->profile->budget, &r->picked, &r->picked_cap, r->profile->n_types, sizeof(*r->picked));
	if (err)
		return decode_memory(&r->profile->budget, err, e);
	r->sample.frames_max = r->limits.frames;
	err = raw_samples(t, s, &r->sample, add_sample, r, e);
	if (err)
		return err;
	err = batch_flush(&r->batch, r->profile);
	return err ? decode_memory(&r->profile->budget, err, e) : 0;
}
