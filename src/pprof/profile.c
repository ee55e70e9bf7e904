// SPDX-License-Identifier: Apache-2.0
#include "pprof/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct profile *profile_new(size_t memory_limit)
{
	struct profile *p = calloc(1, sizeof(*p));
	struct intern *const tables[] = { &p->strings, &p->mappings, &p->functions, &p->locations,
					  &p->stacks, &p->label_sets, &p->samples };
	uint32_t empty;

	if (!p)
		return NULL;
	p->budget.limit = memory_limit;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		intern_init(tables[i], &p->budget);
	if (profile_string(p, "", 0, &empty)) {
		profile_free(p);
		return NULL;
	}
	return p;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	intern_free(&p->strings);
	intern_free(&p->mappings);
	intern_free(&p->functions);
	intern_free(&p->locations);
	intern_free(&p->stacks);
	intern_free(&p->label_sets);
	intern_free(&p->samples);
	free(p->values);
	free(p->types);
	free(p->comments);
	free(p);
}

int profile_string(struct profile *p, const void *text, size_t len, uint32_t *ret)
{
	uint32_t id;
	int err = intern_put(&p->strings, text, len, &id, NULL);

	if (!err)
		*ret = id - 1;
	return err;
}

int profile_mapping(struct profile *p, const struct profile_mapping *m, uint32_t *ret)
{
	return intern_put(&p->mappings, m, sizeof(*m), ret, NULL);
}

int profile_function(struct profile *p, const struct profile_function *f, uint32_t *ret)
{
	return intern_put(&p->functions, f, sizeof(*f), ret, NULL);
}

int profile_location(struct profile *p, const struct profile_location *l, uint32_t *ret)
{
	return intern_put(&p->locations, l, sizeof(*l) + l->n_lines * sizeof(l->lines[0]), ret, NULL);
}

int profile_add_values(struct profile *p, struct profile_sample key, const int64_t *values)
{
	size_t n = p->n_types;
	int64_t *sum;
	bool added;
	uint32_t id;
	int err;

	err = memory_grow(&p->budget, &p->values, &p->values_cap, ((size_t)p->samples.n + 1) * n, sizeof(*values));
	if (!err)
		err = intern_put(&p->samples, &key, sizeof(key), &id, &added);
	if (err)
		return err;
	sum = p->values + (size_t)(id - 1) * n;
	if (added)
		memset(sum, 0, n * sizeof(*sum));
	for (size_t i = 0; i < n; i++)
		sum[i] = saturating_add(sum[i], values[i]);
	return 0;
}

int profile_sample(struct profile *p, const uint32_t *locations, uint32_t n, const struct profile_label *labels,
		   uint32_t n_labels, const int64_t *values)
{
	struct profile_sample key;
	int err = intern_put(&p->stacks, locations, n * sizeof(*locations), &key.stack, NULL);

	if (!err)
		err = intern_put(&p->label_sets, labels, n_labels * sizeof(*labels), &key.labels, NULL);
	return err ? err : profile_add_values(p, key, values);
}

int profile_comment(struct profile *p, uint32_t text)
{
	int err = memory_grow(&p->budget, &p->comments, &p->comments_cap, p->n_comments + 1, sizeof(*p->comments));

	if (!err)
		p->comments[p->n_comments++] = text;
	return err;
}

int profile_set_types(struct profile *p, const struct profile_type *types, size_t n)
{
	size_t bytes;
	void *copy;

	if (__builtin_mul_overflow(n, sizeof(*types), &bytes))
		return -ENOMEM;
	copy = malloc(bytes ? bytes : 1);
	if (!copy)
		return -ENOMEM;
	if (bytes)
		memcpy(copy, types, bytes);
	free(p->types);
	p->types = copy;
	p->n_types = n;
	return 0;
}
