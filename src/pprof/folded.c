// SPDX-License-Identifier: Apache-2.0
#include "pprof/folded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/decode_internal.h"
#include "pprof/top_internal.h"
#include "pprof/units.h"

// Frames of a location: ids[first … first + n - 1], innermost first.
struct span {
	size_t first;
	uint32_t n;
};

struct folding {
	struct folded *f;
	const struct folded_options *o;
	char *roots;			    // the list of keys, cut at the commas
	const char *root[FOLDED_ROOTS_MAX];
	size_t n_roots;
	struct span *spans; // by location id
	uint32_t *ids;
	size_t spans_cap, n_ids, ids_cap;
	uint32_t *stack;
	size_t stack_cap;
};

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static enum frame_kind kind_of(const struct profile *p, const struct profile_location *l, const char *name)
{
	const struct profile_mapping *m = l->mapping ? intern_key(&p->mappings, l->mapping) : NULL;
	const char *file = m ? profile_text(p, m->file) : "", *dot = strrchr(file, '.');

	if (starts_with(file, "[kernel") || starts_with(file, "[guest.kernel") || strstr(file, "vmlinux") ||
	    (dot && starts_with(dot, ".ko")))
		return FRAME_KERNEL;
	if (starts_with(file, "[node ") || starts_with(file, "[service ") || (*name == '[' && !l->address))
		return FRAME_SYNTHETIC;
	return FRAME_USER;
}

static int add_text(struct folded *f, const char *text, uint32_t *ret)
{
	return intern_put(&f->names, text, strlen(text), ret, NULL);
}

static int add_frame(struct folded *f, const char *name, const char *file, enum frame_kind kind, uint32_t *ret)
{
	struct frame frame = { .kind = kind };
	int err = add_text(f, name, &frame.name);

	if (!err && *file)
		err = add_text(f, file, &frame.file);
	return err ? err : intern_put(&f->frames, &frame, sizeof(frame), ret, NULL);
}

// As pprof shows code without a name: by the file of its mapping.
static int add_nameless(struct folding *g, const struct profile_location *l, uint32_t *ret)
{
	const struct profile *p = g->f->profile;
	const struct profile_mapping *m = l->mapping ? intern_key(&p->mappings, l->mapping) : NULL;
	const char *file = m ? profile_text(p, m->file) : "", *slash = strrchr(file, '/');
	char *name;
	int err;

	if (!*file)
		return add_frame(g->f, "<unknown>", "", FRAME_SYNTHETIC, ret);
	if (asprintf(&name, "[%s]", slash ? slash + 1 : file) < 0)
		return -ENOMEM;
	err = add_frame(g->f, name, "", kind_of(p, l, ""), ret);
	free(name);
	return err;
}

static int add_line(struct folding *g, const struct profile_location *l, uint32_t line, uint32_t *ret)
{
	const struct profile *p = g->f->profile;
	const struct profile_function *fn = line < l->n_lines ? intern_key(&p->functions, l->lines[line].function) : NULL;

	if (!fn || !fn->name)
		return add_nameless(g, l, ret);
	return add_frame(g->f, profile_text(p, fn->name), g->o->files ? profile_text(p, fn->file) : "",
			 kind_of(p, l, profile_text(p, fn->name)), ret);
}

static int frames_of(struct folding *g, uint32_t location, struct span *ret)
{
	const struct profile_location *l = intern_key(&g->f->profile->locations, location);
	struct span *s = &g->spans[location];
	uint32_t n = l->n_lines ? l->n_lines : 1;
	int err = 0;

	if (!s->n) {
		err = memory_grow(g->f->budget, &g->ids, &g->ids_cap, g->n_ids + n, sizeof(*g->ids));
		for (uint32_t i = 0; i < n && !err; i++)
			err = add_line(g, l, i, &g->ids[g->n_ids + i]);
		if (err)
			return err;
		*s = (struct span){ .first = g->n_ids, .n = n };
		g->n_ids += n;
	}
	*ret = *s;
	return 0;
}

// "device=nvme0n1"; the key makes it different from a function of that name.
static int add_root(struct folding *g, const char *key, const struct profile_label *labels, size_t n, uint32_t *ret)
{
	const struct profile *p = g->f->profile;
	char number[96] = "", *name;
	const char *text = "(none)";
	int64_t scale;
	int err;

	for (size_t i = 0; i < n; i++) {
		const char *unit = profile_text(p, labels[i].unit);

		if (strcmp(profile_text(p, labels[i].key), key))
			continue;
		if (labels[i].text)
			text = profile_text(p, labels[i].text);
		else if (unit_parse(unit, &scale) == UNIT_OTHER)
			snprintf(number, sizeof(number), "%" PRId64 "%s%.40s", labels[i].number, *unit ? " " : "", unit);
		else
			top_format(number, sizeof(number), labels[i].number, unit);
		if (*number)
			text = number;
		break;
	}
	if (asprintf(&name, "%s=%s", key, text) < 0)
		return -ENOMEM;
	err = add_frame(g->f, name, "", FRAME_SYNTHETIC, ret);
	free(name);
	return err;
}

static int add_roots(struct folding *g, const struct profile_sample *k, size_t at)
{
	const struct profile *p = g->f->profile;
	const struct profile_label *labels = intern_key(&p->label_sets, k->labels);
	size_t n = intern_len(&p->label_sets, k->labels) / sizeof(*labels);
	int err = 0;

	for (size_t i = 0; i < g->n_roots && !err; i++)
		err = add_root(g, g->root[i], labels, n, &g->stack[at + i]);
	return err;
}

static int push_locations(struct folding *g, const struct profile_sample *k, size_t *ret_n)
{
	const struct profile *p = g->f->profile;
	const uint32_t *locations = intern_key(&p->stacks, k->stack);
	size_t i = intern_len(&p->stacks, k->stack) / sizeof(*locations), n = 0;
	struct span s;

	while (i--) {
		int err = frames_of(g, locations[i], &s);

		if (!err)
			err = memory_grow(g->f->budget, &g->stack, &g->stack_cap, n + s.n + FOLDED_ROOTS_MAX, sizeof(*g->stack));
		if (err)
			return err;
		for (uint32_t j = s.n; j--;)
			g->stack[n++] = g->ids[s.first + j];
	}
	*ret_n = n;
	return memory_grow(g->f->budget, &g->stack, &g->stack_cap, n + FOLDED_ROOTS_MAX, sizeof(*g->stack));
}

// Labels stand below the frame of the process where there is one, else on top.
static int fold_sample(struct folding *g, uint32_t id)
{
	struct folded *f = g->f;
	const struct profile *p = f->profile;
	const struct profile_sample *k = intern_key(&p->samples, id);
	const int64_t *values = p->values + (size_t)(id - 1) * p->n_types;
	size_t n, at;
	uint32_t stack;
	bool added;
	int err = push_locations(g, k, &n);

	if (err)
		return err;
	if (!n) {
		err = add_frame(f, "[no stack]", "", FRAME_SYNTHETIC, &g->stack[n++]);
		if (err)
			return err;
	}
	at = folded_frame(f, g->stack[0])->kind == FRAME_SYNTHETIC ? 1 : 0;
	if (g->n_roots) {
		memmove(g->stack + at + g->n_roots, g->stack + at, (n - at) * sizeof(*g->stack));
		err = add_roots(g, k, at);
		n += g->n_roots;
	}
	if (!err)
		err = intern_put(&f->stacks, g->stack, n * sizeof(*g->stack), &stack, &added);
	if (!err)
		err = memory_grow(f->budget, &f->values, &f->values_cap, (size_t)f->stacks.n * p->n_types, sizeof(*f->values));
	if (err)
		return err;
	for (size_t i = 0; i < p->n_types; i++) {
		int64_t *sum = &f->values[(size_t)(stack - 1) * p->n_types + i];

		*sum = added ? values[i] : saturating_add(*sum, values[i]);
	}
	return 0;
}

static int parse_roots(struct folding *g, struct error *e)
{
	char *save, *key;

	if (!g->o->root)
		return 0;
	g->roots = strdup(g->o->root);
	if (!g->roots)
		return error_set(e, -ENOMEM, "out of memory");
	for (key = strtok_r(g->roots, ",", &save); key; key = strtok_r(NULL, ",", &save)) {
		if (g->n_roots == FOLDED_ROOTS_MAX)
			return error_set(e, -EINVAL, "more than %d labels as frames", FOLDED_ROOTS_MAX);
		g->root[g->n_roots++] = key;
	}
	return g->n_roots ? 0 : error_set(e, -EINVAL, "the list of labels is empty");
}

static int fold(struct folding *g, struct error *e)
{
	const struct profile *p = g->f->profile;
	int err = memory_grow(g->f->budget, &g->spans, &g->spans_cap, (size_t)p->locations.n + 1, sizeof(*g->spans));

	if (err)
		return decode_memory(g->f->budget, err, e);
	memset(g->spans, 0, g->spans_cap * sizeof(*g->spans));
	for (uint32_t id = 1; id <= p->samples.n && !err; id++)
		err = fold_sample(g, id);
	return err ? decode_memory(g->f->budget, err, e) : 0;
}

int folded_make(struct folded *f, const struct profile *p, struct memory_budget *budget, const struct folded_options *o,
		struct error *e)
{
	struct folding g = { .f = f, .o = o };
	int err;

	memset(f, 0, sizeof(*f));
	f->profile = p;
	f->budget = budget;
	intern_init(&f->names, budget);
	intern_init(&f->frames, budget);
	intern_init(&f->stacks, budget);
	err = parse_roots(&g, e);
	if (!err)
		err = fold(&g, e);
	memory_give(budget, g.spans_cap * sizeof(*g.spans) + (g.ids_cap + g.stack_cap) * sizeof(*g.ids));
	free(g.spans);
	free(g.ids);
	free(g.stack);
	free(g.roots);
	return err;
}

void folded_free(struct folded *f)
{
	intern_free(&f->names);
	intern_free(&f->frames);
	intern_free(&f->stacks);
	memory_give(f->budget, f->values_cap * sizeof(*f->values));
	free(f->values);
	memset(f, 0, sizeof(*f));
}
