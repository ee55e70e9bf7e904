// SPDX-License-Identifier: Apache-2.0
// A difference as one profile, for go tool pprof.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/diff_internal.h"

// Ids of one side in the profile that is made; 0 = not yet.
struct carry {
	const struct profile *from;
	struct profile *to;
	uint32_t *locations;
	double scale; // of the values
	bool base;
};

static int text(const struct carry *c, uint32_t string, uint32_t *ret)
{
	return profile_string(c->to, profile_text(c->from, string), profile_text_len(c->from, string), ret);
}

static int mapping(const struct carry *c, uint32_t id, uint32_t *ret)
{
	struct profile_mapping m;
	int err;

	*ret = 0;
	if (!id)
		return 0;
	m = *(const struct profile_mapping *)intern_key(&c->from->mappings, id);
	err = text(c, m.file, &m.file);
	if (!err)
		err = text(c, m.build_id, &m.build_id);
	return err ? err : profile_mapping(c->to, &m, ret);
}

static int function(const struct carry *c, uint32_t id, uint32_t *ret)
{
	struct profile_function f;
	int err;

	*ret = 0;
	if (!id)
		return 0;
	f = *(const struct profile_function *)intern_key(&c->from->functions, id);
	err = text(c, f.name, &f.name);
	if (!err)
		err = text(c, f.system_name, &f.system_name);
	if (!err)
		err = text(c, f.file, &f.file);
	return err ? err : profile_function(c->to, &f, ret);
}

static int location(struct carry *c, uint32_t id, uint32_t *ret)
{
	uint32_t len = intern_len(&c->from->locations, id);
	struct profile_location *l;
	int err;

	if (c->locations[id]) {
		*ret = c->locations[id];
		return 0;
	}
	l = malloc(len);
	if (!l)
		return -ENOMEM;
	memcpy(l, intern_key(&c->from->locations, id), len);
	err = mapping(c, l->mapping, &l->mapping);
	for (uint32_t i = 0; i < l->n_lines && !err; i++)
		err = function(c, l->lines[i].function, &l->lines[i].function);
	if (!err)
		err = profile_location(c->to, l, &c->locations[id]);
	*ret = c->locations[id];
	free(l);
	return err;
}

static int64_t scaled(int64_t v, double scale)
{
	double x = (double)v * scale;

	return scale == 1 ? v : x >= 9.2e18 ? INT64_MAX : x <= -9.2e18 ? INT64_MIN : llround(x);
}

static int labels(const struct carry *c, uint32_t set, struct profile_label **ret, uint32_t *ret_n)
{
	const struct profile_label *from = intern_key(&c->from->label_sets, set);
	uint32_t n = intern_len(&c->from->label_sets, set) / sizeof(*from);
	struct profile_label *l = calloc((size_t)n + 1, sizeof(*l));
	int err = l ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < n && !err; i++) {
		l[i] = from[i];
		err = text(c, from[i].key, &l[i].key);
		if (!err)
			err = text(c, from[i].unit, &l[i].unit);
		if (!err && from[i].text)
			err = text(c, from[i].text, &l[i].text);
	}
	if (!err && c->base) {
		err = profile_string(c->to, "pprof::base", 11, &l[n].key);
		if (!err)
			err = profile_string(c->to, "true", 4, &l[n].text);
		n++;
	}
	if (err) {
		free(l);
		return err;
	}
	*ret = l;
	*ret_n = n;
	return 0;
}

static int sample(struct carry *c, uint32_t id, const int *types)
{
	const struct profile_sample *k = intern_key(&c->from->samples, id);
	const uint32_t *from = intern_key(&c->from->stacks, k->stack);
	uint32_t n = intern_len(&c->from->stacks, k->stack) / sizeof(*from), n_labels = 0;
	uint32_t *locations = calloc((size_t)n + 1, sizeof(*locations));
	int64_t *values = calloc(c->to->n_types, sizeof(*values));
	struct profile_label *l = NULL;
	int err = locations && values ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < n && !err; i++)
		err = location(c, from[i], &locations[i]);
	for (size_t i = 0; i < c->to->n_types && !err; i++)
		values[i] = scaled(c->from->values[(size_t)(id - 1) * c->from->n_types + (size_t)types[i]], c->scale);
	if (!err)
		err = labels(c, k->labels, &l, &n_labels);
	if (!err)
		err = profile_sample(c->to, locations, n, l, n_labels, values);
	free(l);
	free(values);
	free(locations);
	return err;
}

static int type_in(const struct profile *p, const struct profile *of, const struct profile_type *t)
{
	for (size_t i = 0; i < p->n_types; i++)
		if (!strcmp(profile_text(p, p->types[i].type), profile_text(of, t->type)) &&
		    !strcmp(profile_text(p, p->types[i].unit), profile_text(of, t->unit)))
			return (int)i;
	return -1;
}

static int carry_side(struct carry *c)
{
	int *types = calloc(c->to->n_types, sizeof(*types));
	int err = types ? 0 : -ENOMEM;

	c->locations = calloc((size_t)c->from->locations.n + 1, sizeof(*c->locations));
	if (!c->locations)
		err = -ENOMEM;
	for (size_t i = 0; i < c->to->n_types && !err; i++)
		types[i] = type_in(c->from, c->to, &c->to->types[i]);
	for (uint32_t id = 1; id <= c->from->samples.n && !err; id++)
		err = sample(c, id, types);
	free(c->locations);
	free(types);
	return err;
}

// The types that both have, in the incident's order.
static int set_types(struct profile *to, const struct profile *base, const struct profile *incident, struct error *e)
{
	struct profile_type *t = calloc(incident->n_types + 1, sizeof(*t));
	const struct carry c = { .from = incident, .to = to };
	size_t n = 0;
	int err = t ? 0 : -ENOMEM;

	for (size_t i = 0; i < incident->n_types && !err; i++) {
		if (type_in(base, incident, &incident->types[i]) < 0)
			continue;
		err = text(&c, incident->types[i].type, &t[n].type);
		if (!err)
			err = text(&c, incident->types[i].unit, &t[n].unit);
		n++;
	}
	if (!err)
		err = n ? profile_set_types(to, t, n) : error_set(e, -EINVAL, "the two profiles have no sample type in common");
	free(t);
	return err;
}

static int set_heads(struct profile *to, const struct profile *incident)
{
	static const char note[] = "difference: incident less base, the base scaled to the incident's node-seconds";
	const struct carry c = { .from = incident, .to = to };
	uint32_t id;
	int err = text(&c, incident->default_type, &to->default_type);

	if (!err)
		err = text(&c, incident->period_type.type, &to->period_type.type);
	if (!err)
		err = text(&c, incident->period_type.unit, &to->period_type.unit);
	to->period = incident->period;
	to->time_ns = incident->time_ns;
	to->duration_ns = incident->duration_ns;
	// Readers take the title of a profile from its first mapping.
	if (!err && incident->mappings.n)
		err = mapping(&c, 1, &id);
	for (size_t i = 0; i < incident->n_comments && !err; i++) {
		err = text(&c, incident->comments[i], &id);
		if (!err)
			err = profile_comment(to, id);
	}
	if (!err)
		err = profile_string(to, note, sizeof(note) - 1, &id);
	return err ? err : profile_comment(to, id);
}

int diff_profile(const struct profile *base, const struct profile *incident, struct buf *out, struct error *e)
{
	struct diff_facts facts[DIFF_SIDES];
	struct profile *to = profile_new(0);
	int err = to ? 0 : -ENOMEM;

	if (!err)
		err = diff_read_facts(base, &facts[DIFF_BASE]);
	if (!err)
		err = diff_read_facts(incident, &facts[DIFF_INCIDENT]);
	if (!err)
		err = set_types(to, base, incident, e);
	if (!err)
		err = set_heads(to, incident);
	if (!err) {
		struct carry c = { .from = incident, .to = to, .scale = 1 };

		err = carry_side(&c);
	}
	if (!err) {
		struct carry c = { .from = base, .to = to, .base = true };

		c.scale = -facts[DIFF_INCIDENT].coverage.node_seconds / facts[DIFF_BASE].coverage.node_seconds;
		err = carry_side(&c);
	}
	if (!err)
		err = profile_encode(to, out);
	profile_free(to);
	if (err && err != -EINVAL)
		error_set(e, err, err == -ENODATA ? "one of the two does not say how long it took" : "out of memory");
	return err;
}
