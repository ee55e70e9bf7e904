// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "pprof/decode_internal.h"

struct pprof_reader *pprof_reader_new(const struct pprof_limits *limits)
{
	struct pprof_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->limits = limits ? *limits : (struct pprof_limits)PPROF_LIMITS_DEFAULT;
	r->profile = profile_new(r->limits.memory);
	if (!r->profile) {
		free(r);
		return NULL;
	}
	intern_init(&r->mapping_keys, &r->profile->budget);
	intern_init(&r->label_keys, &r->profile->budget);
	return r;
}

static void forget_file(struct pprof_reader *r)
{
	tables_free(&r->tables);
	stream_close(&r->stream);
	memset(&r->tables, 0, sizeof(r->tables));
}

void pprof_reader_free(struct pprof_reader *r)
{
	if (!r)
		return;
	forget_file(r);
	intern_free(&r->mapping_keys);
	intern_free(&r->label_keys);
	free(r->windows);
	free(r->column);
	free(r->factor);
	free(r->picked);
	raw_sample_free(&r->sample);
	free(r->sorted);
	free(r->ranks);
	sample_batch_free(&r->batch);
	buf_free(&r->bytes);
	profile_free(r->profile);
	free(r);
}

void pprof_reader_allow_diff(struct pprof_reader *r)
{
	r->allow_diff = true;
}

void pprof_reader_on_sample(struct pprof_reader *r, pprof_sample_fn *fn, void *context)
{
	r->fn = fn;
	r->context = context;
}

struct memory_budget *pprof_reader_budget(struct pprof_reader *r)
{
	return &r->profile->budget;
}

int pprof_reader_add(struct pprof_reader *r, const struct pprof_source *source, struct error *e)
{
	struct tables *t = &r->tables;
	struct stream *s = &r->stream;
	int err;

	if (r->fn && r->files)
		return error_set(e, -EINVAL, "samples are handed out for one file only");
	t->budget = &r->profile->budget;
	err = stream_open(s, source, r->limits.message, t->budget, e);
	if (!err)
		err = decode_detect(s, e);
	if (!err)
		err = tables_read(t, s, e);
	if (!err)
		err = merge_header(r, t, e);
	if (!err)
		err = stream_rewind(s, e);
	if (!err)
		err = read_samples(r, t, s, e);
	r->files++;
	forget_file(r);
	return err;
}

static int compare_windows(const void *a, const void *b)
{
	const struct window *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static int64_t union_of_windows(struct window *w, size_t n)
{
	int64_t sum = 0, until = INT64_MIN;

	if (n)
		qsort(w, n, sizeof(*w), compare_windows);
	for (size_t i = 0; i < n; i++) {
		int64_t from = w[i].from > until ? w[i].from : until;

		if (w[i].to <= from)
			continue;
		sum = saturating_add(sum, w[i].to - from);
		until = w[i].to;
	}
	return sum;
}

const struct profile *pprof_reader_finish(struct pprof_reader *r)
{
	r->profile->duration_ns = r->no_windows || !r->n_windows ? r->duration_sum : union_of_windows(r->windows, r->n_windows);
	return r->profile;
}

static void list_types(const struct profile *p, char *to, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_types && n + 1 < cap; i++)
		n += (size_t)snprintf(to + n, cap - n, "%s%.60s", i ? ", " : "", profile_text(p, p->types[i].type));
}

int profile_type_index(const struct profile *p, const char *name, size_t *ret, struct error *e)
{
	const char *plain = name && !strncmp(name, "inuse_", 6) ? name + 6 : name;
	char names[400] = "";
	uint64_t index;

	for (size_t i = 0; i < p->n_types; i++) {
		const char *type = profile_text(p, p->types[i].type);

		if (name ? !strcmp(type, name) || !strcmp(type, plain) : p->default_type && p->types[i].type == p->default_type) {
			*ret = i;
			return 0;
		}
	}
	if (!name) {
		*ret = p->n_types - 1;
		return 0;
	}
	if (!text_number(name, 0, p->n_types - 1, "", &index, NULL)) {
		*ret = (size_t)index;
		return 0;
	}
	list_types(p, names, sizeof(names));
	return error_set(e, -EINVAL, "there is no sample type '%.60s'; it has: %s", name, names);
}
