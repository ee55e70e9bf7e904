// SPDX-License-Identifier: Apache-2.0
#include "pprof/top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/decode_internal.h"
#include "pprof/top_internal.h"
#include "pprof/units.h"

struct top *top_new(const struct top_options *options)
{
	struct top *t = calloc(1, sizeof(*t));

	if (t)
		t->options = *options;
	return t;
}

void top_free(struct top *t)
{
	if (!t)
		return;
	if (t->ready) {
		intern_free(&t->nodes);
		intern_free(&t->stacks);
		intern_free(&t->labels);
	}
	for (size_t i = 0; i < t->names_cap; i++)
		free(t->names[i]);
	free(t->names);
	free(t->type_totals);
	free(t->node);
	free(t->locations);
	free(t->node_ids);
	free(t->stack_sums);
	free(t->stack);
	free(t->label_sums);
	pprof_reader_free(t->reader);
	free(t);
}

// With the first sample: only now the types are known.
static int get_ready(struct top *t, const struct profile *p, struct error *e)
{
	int64_t scale;
	int err;

	t->profile = p;
	t->budget = pprof_reader_budget(t->reader);
	err = profile_type_index(p, t->options.type, &t->type, e);
	if (err)
		return err;
	t->has_events = t->type && !strcmp(profile_text(p, p->types[0].unit), "count");
	t->time = unit_parse(profile_text(p, p->types[t->type].unit), &scale) == UNIT_TIME;
	t->type_totals = calloc(p->n_types, sizeof(*t->type_totals));
	if (!t->type_totals)
		return error_set(e, -ENOMEM, "out of memory");
	intern_init(&t->nodes, t->budget);
	intern_init(&t->stacks, t->budget);
	intern_init(&t->labels, t->budget);
	t->ready = true;
	return 0;
}

static int add_node(struct top *t, const struct node_key *key, uint32_t *ret)
{
	bool added;
	int err = intern_put(&t->nodes, key, sizeof(*key), ret, &added);

	if (!err)
		err = memory_grow(t->budget, &t->node, &t->node_cap, (size_t)t->nodes.n + 1, sizeof(*t->node));
	if (!err && added)
		memset(&t->node[*ret], 0, sizeof(*t->node));
	return err;
}

static struct node_key line_key(const struct profile *p, const struct profile_location *l, uint32_t line)
{
	const struct profile_function *f =
		line < l->n_lines ? intern_key(&p->functions, l->lines[line].function) : NULL;
	struct node_key key = { .name = f ? f->name : 0 };

	if (!key.name && l->mapping)
		key.file = ((const struct profile_mapping *)intern_key(&p->mappings, l->mapping))->file;
	if (!key.name && f)
		key.start_line = f->start_line;
	return key;
}

// The nodes of a location, made on its first use.
static int location_nodes(struct top *t, uint32_t id, struct location_nodes *ret)
{
	const struct profile_location *l;
	struct location_nodes *n;
	struct node_key key;
	uint32_t lines;
	int err;

	if (id >= t->n_locations) {
		err = memory_grow(t->budget, &t->locations, &t->locations_cap, (size_t)id + 1, sizeof(*t->locations));
		if (err)
			return err;
		memset(&t->locations[t->n_locations], 0, (id + 1 - t->n_locations) * sizeof(*t->locations));
		t->n_locations = (size_t)id + 1;
	}
	n = &t->locations[id];
	if (!n->n) {
		l = intern_key(&t->profile->locations, id);
		lines = l->n_lines ? l->n_lines : 1;
		err = memory_grow(t->budget, &t->node_ids, &t->node_ids_cap, t->n_node_ids + lines, sizeof(*t->node_ids));
		for (uint32_t i = 0; i < lines && !err; i++) {
			key = line_key(t->profile, l, i);
			err = add_node(t, &key, &t->node_ids[t->n_node_ids + i]);
		}
		if (err)
			return err;
		n->first = t->n_node_ids;
		n->n = lines;
		t->n_node_ids += lines;
	}
	*ret = *n;
	return 0;
}

static void add(int64_t *sum, int64_t v)
{
	*sum = saturating_add(*sum, v);
}

// Adds v to every function of the stack once, and leaves its nodes in t->stack, leaf first.
static int add_functions(struct top *t, const struct pprof_sample *s, int64_t v, int64_t events, uint32_t *ret_n)
{
	struct location_nodes l;
	size_t n = 0;
	int err;

	for (uint32_t i = 0; i < s->n; i++) {
		err = location_nodes(t, s->locations[i], &l);
		if (!err)
			err = memory_grow(t->budget, &t->stack, &t->stack_cap, n + l.n, sizeof(*t->stack));
		if (err)
			return err;
		for (uint32_t j = 0; j < l.n; j++) {
			uint32_t id = t->node_ids[l.first + j];
			struct node *node = &t->node[id];

			t->stack[n++] = id;
			node->inlined |= j + 1 < l.n;
			node->called |= j + 1 == l.n;
			if (node->seen == t->samples)
				continue;
			node->seen = t->samples;
			add(&node->cum, v);
			add(&node->cum_events, events);
		}
	}
	if (n) {
		add(&t->node[t->stack[0]].flat, v);
		add(&t->node[t->stack[0]].flat_events, events);
	}
	*ret_n = (uint32_t)n;
	return 0;
}

static int add_sum(struct top *t, struct intern *keys, struct sum **sums, size_t *cap, const void *key, size_t len, int64_t v,
		   int64_t events)
{
	uint32_t id;
	bool added;
	int err = intern_put(keys, key, len, &id, &added);

	if (!err)
		err = memory_grow(t->budget, sums, cap, (size_t)keys->n + 1, sizeof(**sums));
	if (err)
		return err;
	if (added)
		(*sums)[id] = (struct sum){ 0 };
	add(&(*sums)[id].value, v);
	add(&(*sums)[id].events, events);
	return 0;
}

// Functions are worth more than stacks: what takes the memory is let go, and the report says so.
static int add_stack(struct top *t, uint32_t n, int64_t v, int64_t events)
{
	int err = add_sum(t, &t->stacks, &t->stack_sums, &t->stack_sums_cap, t->stack, n * sizeof(*t->stack), v, events);

	if (err != -E2BIG || !(t->options.what & TOP_FUNCTIONS))
		return err;
	intern_free(&t->stacks);
	intern_init(&t->stacks, t->budget);
	memory_give(t->budget, t->stack_sums_cap * sizeof(*t->stack_sums));
	free(t->stack_sums);
	t->stack_sums = NULL;
	t->stack_sums_cap = 0;
	t->options.what &= ~(unsigned)TOP_STACKS;
	t->no_stacks = true;
	return 0;
}

static int add_label(struct top *t, const struct pprof_sample *s, int64_t v, int64_t events)
{
	struct label_key key = { 0 };
	bool found = false;
	int err = 0;

	for (uint32_t i = 0; i < s->n_labels && !err; i++) {
		const struct profile_label *l = &s->labels[i];

		if (strcmp(profile_text(t->profile, l->key), t->options.label))
			continue;
		key = (struct label_key){ l->text, l->unit, l->number, 1 };
		found = true;
		err = add_sum(t, &t->labels, &t->label_sums, &t->label_sums_cap, &key, sizeof(key), v, events);
	}
	if (!found)
		err = add_sum(t, &t->labels, &t->label_sums, &t->label_sums_cap, &key, sizeof(key), v, events);
	return err;
}

static void add_totals(struct top *t, const struct pprof_sample *s, int64_t v, int64_t events)
{
	int64_t size = v == INT64_MIN ? INT64_MAX : v < 0 ? -v : v;

	for (size_t i = 0; i < t->profile->n_types; i++) {
		add(&t->type_totals[i], s->values[i]);
		t->diff |= s->values[i] < 0;
	}
	t->diff |= s->base;
	add(&t->total, size);
	add(&t->events, events);
	if (s->base) {
		add(&t->base_total, size);
		add(&t->base_events, events);
	}
}

static int on_sample(void *context, const struct profile *p, const struct pprof_sample *s, struct error *e)
{
	struct top *t = context;
	int64_t v, events;
	uint32_t n = 0;
	int err = t->ready ? 0 : get_ready(t, p, e);

	if (err)
		return err;
	v = s->values[t->type];
	// Time counts all operations, as pprof's -mean does; bytes read are no property of a write.
	events = t->has_events && (v || t->time) ? s->values[0] : 0;
	t->samples++;
	add_totals(t, s, v, events);
	if (!v)
		return 0;
	if (t->options.what & (TOP_FUNCTIONS | TOP_STACKS))
		err = add_functions(t, s, v, events, &n);
	if (!err && t->options.what & TOP_STACKS)
		err = add_stack(t, n, v, events);
	if (!err && t->options.what & TOP_LABEL)
		err = add_label(t, s, v, events);
	return err ? decode_memory(t->budget, err, e) : 0;
}

// The samples of a profile that is in memory.
static int replay(struct top *t, struct error *e)
{
	const struct profile *p = t->profile;
	int err = 0;

	for (uint32_t id = 1; id <= p->samples.n && !err; id++) {
		const struct profile_sample *k = intern_key(&p->samples, id);
		struct pprof_sample s = {
			.locations = intern_key(&p->stacks, k->stack),
			.n = intern_len(&p->stacks, k->stack) / sizeof(uint32_t),
			.labels = intern_key(&p->label_sets, k->labels),
			.n_labels = intern_len(&p->label_sets, k->labels) / sizeof(struct profile_label),
			.values = p->values + (size_t)(id - 1) * p->n_types,
		};

		for (uint32_t i = 0; i < s.n_labels; i++)
			s.base |= s.labels[i].text && !strcmp(profile_text(p, s.labels[i].key), "pprof::base") &&
				  !strcmp(profile_text(p, s.labels[i].text), "true");
		err = on_sample(t, p, &s, e);
	}
	return err;
}

int top_read(struct top *t, const struct pprof_source *sources, const char *const *names, size_t n,
	     const struct pprof_limits *limits, struct error *e)
{
	int err = 0;

	t->reader = pprof_reader_new(limits);
	if (!t->reader)
		return error_set(e, -ENOMEM, "out of memory");
	pprof_reader_allow_diff(t->reader);
	if (n == 1)
		pprof_reader_on_sample(t->reader, on_sample, t);
	for (size_t i = 0; i < n; i++) {
		err = pprof_reader_add(t->reader, &sources[i], e);
		if (err)
			return error_prefix(e, err, "%.200s", names[i]);
	}
	t->profile = pprof_reader_finish(t->reader);
	if (n > 1)
		err = replay(t, e);
	return !err && !t->ready ? get_ready(t, t->profile, e) : err;
}

const struct profile *top_profile(const struct top *t)
{
	return t->profile;
}

size_t top_type(const struct top *t)
{
	return t->type;
}

int64_t top_total(const struct top *t)
{
	return t->base_total > 0 ? t->base_total : t->total;
}

int64_t top_events(const struct top *t)
{
	return t->base_total > 0 ? t->base_events : t->events;
}

bool top_has_events(const struct top *t)
{
	return t->has_events;
}

int64_t top_type_total(const struct top *t, size_t type)
{
	return t->type_totals[type];
}

uint64_t top_samples(const struct top *t)
{
	return t->samples;
}

bool top_is_diff(const struct top *t)
{
	return t->diff;
}
