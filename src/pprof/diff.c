// SPDX-License-Identifier: Apache-2.0
#include "pprof/diff.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/decode.h"
#include "pprof/diff_internal.h"

#define NAME_MAX_KEPT 65536
#define MEMORY_DEFAULT ((size_t)256 << 20)

// A sample as the diff sees it.
struct seen {
	const char *device, *op, *service;
	int64_t bytes, latency;
	struct diff_sum sum;
	bool io;
};

static void sum_add(struct diff_sum *to, const struct diff_sum *s)
{
	to->ops += s->ops;
	to->time += s->time;
	to->bytes += s->bytes;
	to->value += s->value;
	to->var_ops += s->var_ops;
	to->var_time += s->var_time;
	to->var_value += s->var_value;
}

static int group_add(struct diff *d, struct diff_group *g, const void *key, size_t len, enum diff_side side, const struct diff_sum *s,
		     uint32_t *ret_id)
{
	uint32_t id;
	bool added;
	int err = intern_put(&g->keys, key, len, &id, &added);

	if (!err)
		err = memory_grow(&d->budget, &g->cells, &g->cap, (size_t)g->keys.n + 1, sizeof(*g->cells));
	if (err)
		return err;
	if (added)
		g->cells[id] = (struct diff_cell){ .leaf = true, .root = true };
	sum_add(&g->cells[id].side[side], s);
	*ret_id = id;
	return 0;
}

static double value_of(const int64_t *values, int index)
{
	return index < 0 ? 0 : (double)values[index];
}

// A sampled operation stands for `weight` of them: what n operations add up to varies as n / weight independent ones do.
static void sample_sum(const struct diff *d, enum diff_side side, const int64_t *values, struct diff_sum *s)
{
	const struct diff_facts *f = &d->facts[side];
	double n;

	s->ops = value_of(values, d->ops_index[side]);
	s->time = value_of(values, d->time_index[side]);
	s->bytes = value_of(values, d->read_index[side]) + value_of(values, d->write_index[side]);
	s->value = value_of(values, (int)d->type_index[side]);
	n = s->ops / f->weight;
	if (n < 1)
		n = 1;
	s->var_ops = s->ops * f->weight;
	s->var_time = s->time * s->time / n;
	if (s->ops > 0 || s->time > 0)
		s->var_value = s->value * s->value / n;
	else
		s->var_value = s->value * f->cpu_period;
}

static void read_sample(const struct diff *d, enum diff_side side, uint32_t id, struct seen *ret)
{
	const struct profile *p = d->profile[side];
	const struct profile_sample *k = intern_key(&p->samples, id);
	const struct profile_label *labels = intern_key(&p->label_sets, k->labels);
	uint32_t n = intern_len(&p->label_sets, k->labels) / sizeof(*labels);

	*ret = (struct seen){ .bytes = -1, .latency = -1 };
	for (uint32_t i = 0; i < n; i++) {
		const char *key = profile_text(p, labels[i].key);

		if (labels[i].text && !strcmp(key, "device"))
			ret->device = profile_text(p, labels[i].text);
		else if (labels[i].text && !strcmp(key, "op"))
			ret->op = profile_text(p, labels[i].text);
		else if (labels[i].text && !strcmp(key, "service"))
			ret->service = profile_text(p, labels[i].text);
		else if (!labels[i].text && !strcmp(key, "bytes"))
			ret->bytes = labels[i].number;
		else if (!labels[i].text && !strcmp(key, "latency"))
			ret->latency = labels[i].number;
	}
	ret->io = ret->device && ret->op;
	sample_sum(d, side, p->values + (size_t)(id - 1) * p->n_types, &ret->sum);
}

static int add_device_op(struct diff *d, enum diff_side side, const struct seen *s, uint32_t *ret_id)
{
	char name[400];
	int len = snprintf(name, sizeof(name), "%.300s %.60s", s->device, s->op);

	return group_add(d, &d->groups[DIFF_BY_DEVICE], name, (size_t)len, side, &s->sum, ret_id);
}

static int add_class(struct diff *d, struct diff_group *g, enum diff_side side, const struct seen *s, uint32_t device_op,
		     int64_t class)
{
	struct diff_class key = { .device_op = device_op, .class = class };
	uint32_t id;

	return class < 0 ? 0 : group_add(d, g, &key, sizeof(key), side, &s->sum, &id);
}

// The name of a function as both sides share it: what has no symbol is its library where the two are different builds,
// since the offsets of one say nothing in the other.
static size_t function_name(const struct profile *p, const struct profile_location *l, uint32_t line, bool upgraded, char *out,
			    size_t cap)
{
	const struct profile_function *f = line < l->n_lines ? intern_key(&p->functions, l->lines[line].function) : NULL;
	const char *name = f ? profile_text(p, f->name) : "", *plus;
	size_t len = strlen(name);

	if (!*name && l->mapping) {
		const struct profile_mapping *m = intern_key(&p->mappings, l->mapping);

		return (size_t)snprintf(out, cap, "[%.200s]", profile_text(p, m->file));
	}
	plus = upgraded ? strstr(name, "+0x") : NULL;
	if (plus)
		len = (size_t)(plus - name);
	if (len >= cap)
		len = cap - 1;
	memcpy(out, name, len);
	return len;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

// The file of a mapping, without its folder; with its build-id behind it when that is asked for.
static int mapping_name(const struct profile *p, uint32_t mapping, bool build_id, struct buf *to)
{
	const struct profile_mapping *m = intern_key(&p->mappings, mapping);
	const char *file = base_name(profile_text(p, m->file));

	to->len = 0;
	buf_append(to, file, strlen(file) + 1);
	if (build_id)
		buf_append(to, profile_text(p, m->build_id), profile_text_len(p, m->build_id));
	return to->error;
}

// The files of a profile that have a build-id, alone and with it.
static int name_builds(const struct profile *p, struct intern *builds, struct buf *name)
{
	int err = 0;

	for (uint32_t i = 1; i <= p->mappings.n && !err; i++) {
		const struct profile_mapping *m = intern_key(&p->mappings, i);
		uint32_t unused;

		for (unsigned build_id = 0; m->build_id && build_id < 2 && !err; build_id++) {
			err = mapping_name(p, i, build_id, name);
			if (!err)
				err = intern_put(builds, name->data, name->len, &unused, NULL);
		}
	}
	return err;
}

// Which mappings' files are there under another build-id on the other side, and not under this one?
static int find_upgraded(struct diff *d, enum diff_side side, bool *ret)
{
	const struct profile *p = d->profile[side];
	struct buf name = { 0 };
	struct intern builds;
	int err;

	intern_init(&builds, &d->budget);
	err = name_builds(d->profile[!side], &builds, &name);
	for (uint32_t i = 1; i <= p->mappings.n && !err; i++) {
		const struct profile_mapping *m = intern_key(&p->mappings, i);

		if (!m->build_id)
			continue;
		err = mapping_name(p, i, false, &name);
		ret[i] = !err && intern_find(&builds, name.data, name.len);
		if (!err)
			err = mapping_name(p, i, true, &name);
		ret[i] &= !err && !intern_find(&builds, name.data, name.len);
	}
	intern_free(&builds);
	buf_free(&name);
	return err;
}

struct frames {
	uint64_t *stamp; // by function: number of the sample that it was added for
	size_t stamps, n_stamps;
	uint64_t sample;
	char *text; // of NAME_MAX_KEPT bytes
	struct buf stack;
	bool *upgraded; // by mapping
};

static int add_function(struct diff *d, struct frames *f, enum diff_side side, const struct diff_sum *s, size_t len, bool leaf,
			bool root, double depth)
{
	static const struct diff_sum nothing;
	struct diff_group *g = &d->groups[DIFF_BY_FUNCTION];
	struct diff_cell *c;
	uint32_t id;
	int err = group_add(d, g, f->text, len, side, &nothing, &id);

	if (!err)
		err = memory_grow(&d->budget, &f->stamp, &f->stamps, (size_t)g->keys.n + 1, sizeof(*f->stamp));
	if (err)
		return err;
	while (f->n_stamps <= g->keys.n)
		f->stamp[f->n_stamps++] = 0;
	c = &g->cells[id];
	c->leaf &= leaf;
	c->root &= root;
	if (f->stamp[id] == f->sample)
		return 0;
	f->stamp[id] = f->sample;
	c->depth += depth * s->value;
	c->weight += s->value;
	return group_add(d, g, f->text, len, side, s, &id);
}

// Adds a sample to its functions, each once, and to its stack.
static int add_stack(struct diff *d, struct frames *f, enum diff_side side, uint32_t stack, const struct diff_sum *s)
{
	const struct profile *p = d->profile[side];
	const uint32_t *locations = intern_key(&p->stacks, stack);
	uint32_t n = intern_len(&p->stacks, stack) / sizeof(*locations), id;
	int err = 0;

	f->sample++;
	f->stack.len = 0;
	for (uint32_t i = n; i-- && !err;) {
		const struct profile_location *l = intern_key(&p->locations, locations[i]);
		uint32_t lines = l->n_lines ? l->n_lines : 1;

		for (uint32_t j = lines; j-- && !err;) {
			size_t len = function_name(p, l, j, f->upgraded[l->mapping], f->text, NAME_MAX_KEPT);

			err = add_function(d, f, side, s, len, !i && !j, i + 1 == n && j + 1 == lines, i);
			if (f->stack.len)
				buf_byte(&f->stack, ';');
			buf_append(&f->stack, f->text, len);
		}
	}
	if (!err)
		err = f->stack.error;
	if (!err)
		err = group_add(d, &d->groups[DIFF_BY_STACK], f->stack.data ? (const char *)f->stack.data : "", f->stack.len, side, s, &id);
	return err;
}

static void widen(struct diff_sum *s, const struct diff_spread *spread, bool time)
{
	s->var_ops *= spread->ops;
	s->var_time *= spread->time;
	s->var_value *= time ? spread->time : spread->ops;
}

// Everything but the devices, whose sums tell how wide the errors of all others are.
static int read_side(struct diff *d, enum diff_side side, struct frames *f)
{
	const struct profile *p = d->profile[side];
	const bool time = d->time_index[side] == (int)d->type_index[side];
	static const struct diff_sum nothing;
	int err = 0;

	for (uint32_t id = 1; id <= p->samples.n && !err; id++) {
		const struct profile_sample *k = intern_key(&p->samples, id);
		struct seen s, none;
		uint32_t device = 0, ignored;

		read_sample(d, side, id, &s);
		if (s.io) {
			none = s;
			none.sum = nothing;
			err = add_device_op(d, side, &none, &device);
			if (!err)
				widen(&s.sum, &d->spreads[side][device], time);
		}
		sum_add(&d->total[side], &s.sum);
		if (!err && s.io)
			err = add_class(d, &d->sizes, side, &s, device, s.bytes);
		if (!err && s.io)
			err = add_class(d, &d->latencies, side, &s, device, s.latency);
		if (!err && s.service)
			err = group_add(d, &d->groups[DIFF_BY_SERVICE], s.service, strlen(s.service), side, &s.sum, &ignored);
		if (!err)
			err = add_stack(d, f, side, k->stack, &s.sum);
	}
	return err;
}

static int read_devices(struct diff *d, enum diff_side side)
{
	const struct profile *p = d->profile[side];
	uint32_t ignored;
	int err = 0;

	for (uint32_t id = 1; id <= p->samples.n && !err; id++) {
		struct seen s;

		read_sample(d, side, id, &s);
		s.sum.var_ops = s.sum.ops; // these are counted, not sampled
		if (s.io)
			err = add_device_op(d, side, &s, &ignored);
	}
	return err;
}

static int read_spreads(struct diff *d)
{
	struct diff_group *g = &d->groups[DIFF_BY_DEVICE];
	int err;

	d->spreads_n = (size_t)g->keys.n + 1;
	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		const bool time = d->time_index[side] == (int)d->type_index[side];
		struct diff_series series = { 0 };

		d->spreads[side] = calloc(d->spreads_n, sizeof(*d->spreads[side]));
		if (!d->spreads[side])
			return -ENOMEM;
		err = diff_find_series(d->profile[side], &g->keys, &series);
		for (uint32_t id = 1; id <= g->keys.n && !err; id++) {
			struct diff_sum *s = &g->cells[id].side[side];

			d->spreads[side][id] = diff_read_spread(d->profile[side], &series, id, s);
			widen(s, &d->spreads[side][id], time);
		}
		free(series.of);
		if (err)
			return err;
	}
	return 0;
}

static int index_of(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->n_types; i++)
		if (!strcmp(profile_text(p, p->types[i].type), name))
			return (int)i;
	return -1;
}

static int read_types(struct diff *d, const char *type, struct error *e)
{
	const struct profile *p = d->profile[DIFF_INCIDENT];
	int err = profile_type_index(p, type, &d->type_index[DIFF_INCIDENT], e);

	if (err)
		return err;
	d->type = strdup(profile_text(p, p->types[d->type_index[DIFF_INCIDENT]].type));
	d->unit = strdup(profile_text(p, p->types[d->type_index[DIFF_INCIDENT]].unit));
	if (!d->type || !d->unit)
		return error_set(e, -ENOMEM, "out of memory");
	err = profile_type_index(d->profile[DIFF_BASE], d->type, &d->type_index[DIFF_BASE], e);
	if (err)
		return error_prefix(e, err, "the base");
	p = d->profile[DIFF_BASE];
	if (strcmp(profile_text(p, p->types[d->type_index[DIFF_BASE]].unit), d->unit))
		return error_set(e, -EINVAL, "%.60s is in %.40s in the base and in %.40s in the incident; compare profiles of one program",
				 d->type, profile_text(p, p->types[d->type_index[DIFF_BASE]].unit), d->unit);
	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		d->ops_index[side] = index_of(d->profile[side], "io_ops");
		d->time_index[side] = index_of(d->profile[side], "io_time");
		d->read_index[side] = index_of(d->profile[side], "read_bytes");
		d->write_index[side] = index_of(d->profile[side], "write_bytes");
	}
	return 0;
}

static int read_side_frames(struct diff *d, enum diff_side side, struct frames *f)
{
	const struct profile *p = d->profile[side];
	int err;

	free(f->upgraded);
	f->upgraded = calloc((size_t)p->mappings.n + 1, sizeof(*f->upgraded));
	if (!f->upgraded)
		return -ENOMEM;
	err = find_upgraded(d, side, f->upgraded);
	return err ? err : read_side(d, side, f);
}

static int read_both(struct diff *d)
{
	struct frames f = { .text = malloc(NAME_MAX_KEPT) };
	int err = f.text ? 0 : -ENOMEM;

	for (unsigned side = 0; side < DIFF_SIDES && !err; side++)
		err = read_devices(d, side);
	if (!err)
		err = read_spreads(d);
	for (unsigned side = 0; side < DIFF_SIDES && !err; side++)
		err = read_side_frames(d, side, &f);
	free(f.stamp);
	free(f.text);
	free(f.upgraded);
	buf_free(&f.stack);
	return err;
}

int diff_new(const struct profile *base, const struct profile *incident, const struct diff_options *options, struct diff **ret,
	     struct error *e)
{
	struct diff *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return error_set(e, -ENOMEM, "out of memory");
	d->profile[DIFF_BASE] = base;
	d->profile[DIFF_INCIDENT] = incident;
	d->budget.limit = options->memory ? options->memory : MEMORY_DEFAULT;
	for (unsigned by = 0; by < DIFF_BYS; by++)
		intern_init(&d->groups[by].keys, &d->budget);
	intern_init(&d->sizes.keys, &d->budget);
	intern_init(&d->latencies.keys, &d->budget);
	err = read_types(d, options->type, e);
	for (unsigned side = 0; side < DIFF_SIDES && !err; side++) {
		err = diff_read_facts(d->profile[side], &d->facts[side]);
		if (err == -ENODATA)
			error_set(e, err, "the %s does not say how long it took (duration_nanos is 0): its rates are not known",
				  side == DIFF_BASE ? "base" : "incident");
		else if (err)
			error_set(e, err, "out of memory");
	}
	if (!err) {
		err = read_both(d);
		if (err)
			error_set(e, err, err == -E2BIG ? "the comparison takes more than the limit of memory" : "out of memory");
	}
	if (err) {
		diff_free(d);
		return err;
	}
	diff_judge(d);
	*ret = d;
	return 0;
}

void diff_free(struct diff *d)
{
	if (!d)
		return;
	for (unsigned by = 0; by < DIFF_BYS; by++) {
		intern_free(&d->groups[by].keys);
		free(d->groups[by].cells);
	}
	intern_free(&d->sizes.keys);
	free(d->sizes.cells);
	intern_free(&d->latencies.keys);
	free(d->latencies.cells);
	free(d->spreads[DIFF_BASE]);
	free(d->spreads[DIFF_INCIDENT]);
	free(d->type);
	free(d->unit);
	free(d);
}

const struct diff_coverage *diff_get_coverage(const struct diff *d, enum diff_side side)
{
	return &d->facts[side].coverage;
}

const struct diff_verdict *diff_get_verdict(const struct diff *d)
{
	return &d->verdict;
}

const char *diff_type(const struct diff *d)
{
	return d->type;
}

const char *diff_unit(const struct diff *d)
{
	return d->unit;
}
