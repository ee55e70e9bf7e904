// SPDX-License-Identifier: Apache-2.0
// What is not a sample: types, units, times, comments.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/decode_internal.h"
#include "pprof/units.h"

static int64_t saturating_multiply(int64_t a, int64_t b)
{
	int64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
	return product;
}

static int map_type(struct pprof_reader *r, struct tables *t, const struct raw_type *from, struct profile_type *to)
{
	int err = map_string(r, t, from->type, &to->type);

	return err ? err : map_string(r, t, from->unit, &to->unit);
}

static int room_for_columns(struct pprof_reader *r, size_t n)
{
	int err = memory_grow(&r->profile->budget, &r->column, &r->column_cap, n, sizeof(*r->column));

	return err ? err : memory_grow(&r->profile->budget, &r->factor, &r->factor_cap, n, sizeof(*r->factor));
}

static int first_types(struct pprof_reader *r, struct tables *t, struct error *e)
{
	struct profile_type types[256] = { { 0 } };
	int err = 0;

	for (size_t i = 0; i < t->n_types && !err; i++) {
		err = map_type(r, t, &t->types[i], &types[i]);
		// Names that differ in bytes that cannot be shown have become one.
		for (size_t j = 0; j < i && !err; j++)
			if (types[j].type == types[i].type)
				err = error_set(e, -EBADMSG, "the names of sample types %zu and %zu differ only in bytes that cannot be shown", j, i);
		r->column[i] = (uint32_t)i;
		r->factor[i] = 1;
	}
	return err ? err : profile_set_types(r->profile, types, t->n_types);
}

// Keeps only the types of keep[0 … n-1], indexes in ascending order.
static void drop_columns(struct profile *p, const uint32_t *keep, size_t n)
{
	if (n == p->n_types)
		return;
	for (size_t s = 0; s < p->samples.n; s++)
		for (size_t i = 0; i < n; i++)
			p->values[s * n + i] = p->values[s * p->n_types + keep[i]];
	for (size_t i = 0; i < n; i++)
		p->types[i] = p->types[keep[i]];
	p->n_types = n;
}

static void scale_column(struct profile *p, size_t column, int64_t factor)
{
	for (size_t s = 0; s < p->samples.n; s++) {
		int64_t *v = &p->values[s * p->n_types + column];

		*v = saturating_multiply(*v, factor);
	}
}

// Both in the finer of their units.
static int match_units(struct pprof_reader *r, size_t column, uint32_t unit, struct error *e)
{
	struct profile *p = r->profile;
	struct profile_type *mine = &p->types[column];
	int64_t have, add;
	enum unit_family a, b;

	r->factor[column] = 1;
	if (mine->unit == unit)
		return 0;
	a = unit_parse(profile_text(p, mine->unit), &have);
	b = unit_parse(profile_text(p, unit), &add);
	if (a == UNIT_OTHER || a != b)
		return error_set(e, -EINVAL, "cannot be merged: its %.60s is in '%.40s', that of the files before in '%.40s'",
				 profile_text(p, mine->type), profile_text(p, unit), profile_text(p, mine->unit));
	if (add >= have) {
		r->factor[column] = add / have;
		return 0;
	}
	scale_column(p, column, have / add);
	mine->unit = unit;
	return 0;
}

static int later_types(struct pprof_reader *r, struct tables *t, struct error *e)
{
	struct profile *p = r->profile;
	struct profile_type type;
	uint32_t keep[256], units[256];
	size_t n = 0;
	int err;

	for (size_t i = 0; i < p->n_types; i++)
		for (size_t j = 0; j < t->n_types; j++) {
			err = map_type(r, t, &t->types[j], &type);
			if (err)
				return decode_memory(&p->budget, err, e);
			if (type.type != p->types[i].type)
				continue;
			keep[n] = (uint32_t)i;
			units[n] = type.unit;
			r->column[n++] = (uint32_t)j;
			break;
		}
	if (!n)
		return error_set(e, -EINVAL, "cannot be merged: it has none of the sample types of the files before it");
	drop_columns(p, keep, n);
	for (size_t i = 0; i < n; i++) {
		err = match_units(r, i, units[i], e);
		if (err)
			return err;
	}
	return 0;
}

static int check_period(struct pprof_reader *r, struct tables *t, struct error *e)
{
	struct profile *p = r->profile;
	struct profile_type period;
	int err = map_type(r, t, &t->period_type, &period);

	if (err)
		return decode_memory(&p->budget, err, e);
	if (r->files && (period.type != p->period_type.type || period.unit != p->period_type.unit))
		return error_set(e, -EINVAL, "cannot be merged: it samples '%.40s/%.40s', the files before it '%.40s/%.40s'",
				 profile_text(p, period.type), profile_text(p, period.unit),
				 profile_text(p, p->period_type.type), profile_text(p, p->period_type.unit));
	p->period_type = period;
	if (t->period > p->period)
		p->period = t->period;
	return 0;
}

static int merge_time(struct pprof_reader *r, const struct tables *t)
{
	struct profile *p = r->profile;
	struct window w = { t->time_ns, saturating_add(t->time_ns, t->duration_ns) };
	int err;

	if (t->time_ns && (!p->time_ns || t->time_ns < p->time_ns))
		p->time_ns = t->time_ns;
	r->duration_sum = saturating_add(r->duration_sum, t->duration_ns);
	if (t->time_ns <= 0 || t->duration_ns <= 0) {
		r->no_windows |= t->duration_ns != 0;
		return 0;
	}
	err = memory_grow(&p->budget, &r->windows, &r->windows_cap, r->n_windows + 1, sizeof(w));
	if (!err)
		r->windows[r->n_windows++] = w;
	return err;
}

static int merge_comments(struct pprof_reader *r, struct tables *t)
{
	struct profile *p = r->profile;
	struct intern seen;
	uint32_t text, id;
	bool added;
	int err = 0;

	intern_init(&seen, &p->budget);
	for (size_t i = 0; i < p->n_comments && !err; i++)
		err = intern_put(&seen, &p->comments[i], sizeof(*p->comments), &id, NULL);
	for (size_t i = 0; i < t->n_comments && !err; i++) {
		err = map_string(r, t, t->comments[i], &text);
		if (!err)
			err = intern_put(&seen, &text, sizeof(text), &id, &added);
		if (!err && added)
			err = profile_comment(p, text);
	}
	intern_free(&seen);
	return err;
}

static int merge_texts(struct pprof_reader *r, struct tables *t)
{
	struct profile *p = r->profile;
	int err = 0;

	if (!p->default_type)
		err = map_string(r, t, t->default_type, &p->default_type);
	if (!err && !p->doc_url)
		err = map_string(r, t, t->doc_url, &p->doc_url);
	if (!err && !r->files)
		err = map_string(r, t, t->drop_frames, &p->drop_frames);
	if (!err && !r->files)
		err = map_string(r, t, t->keep_frames, &p->keep_frames);
	return err ? err : merge_comments(r, t);
}

// A default that is no type any more is the first one, as in pprof.
static void check_default(struct profile *p)
{
	for (size_t i = 0; i < p->n_types; i++)
		if (p->types[i].type == p->default_type)
			return;
	if (p->default_type)
		p->default_type = p->types[0].type;
}

int merge_header(struct pprof_reader *r, struct tables *t, struct error *e)
{
	struct memory_budget *budget = &r->profile->budget;
	uint32_t id;
	int err = room_for_columns(r, t->n_types > r->profile->n_types ? t->n_types : r->profile->n_types);

	if (!err && !r->files)
		err = first_types(r, t, e);
	if (err == -EBADMSG)
		return err;
	if (err)
		return decode_memory(budget, err, e);
	err = check_period(r, t, e);
	if (!err && r->files)
		err = later_types(r, t, e);
	if (err)
		return err;
	err = merge_texts(r, t);
	if (!err)
		err = merge_time(r, t);
	// The first mapping is the main program: readers take title and file name from it.
	if (!err && !r->profile->mappings.n && t->n_mappings)
		err = map_mapping(r, t, 0, &id);
	if (err)
		return decode_memory(budget, err, e);
	if (r->files)
		check_default(r->profile);
	return 0;
}
