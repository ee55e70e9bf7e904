// SPDX-License-Identifier: Apache-2.0
#include "pprof/batch.h"

#include <stdlib.h>
#include <string.h>

static int room(struct batch *b, struct profile *p, uint32_t n, uint32_t n_labels)
{
	int err = memory_grow(&p->budget, &b->stacks, &b->stacks_cap, b->n_stacks + n + 1, sizeof(*b->stacks));

	if (!err)
		err = memory_grow(&p->budget, &b->labels, &b->labels_cap, b->n_labels + n_labels + 1, sizeof(*b->labels));
	return err ? err : memory_grow(&p->budget, &b->values, &b->values_cap, BATCH * p->n_types, sizeof(*b->values));
}

int batch_add(struct batch *b, struct profile *p, const uint32_t *locations, uint32_t n, const struct profile_label *labels,
	      uint32_t n_labels, const int64_t *values)
{
	struct batch_entry *e = &b->entries[b->n];
	int err = room(b, p, n, n_labels);

	if (err)
		return err;
	*e = (struct batch_entry){ .stack = b->n_stacks, .labels = b->n_labels, .n = n, .n_labels = n_labels };
	if (n)
		memcpy(b->stacks + b->n_stacks, locations, n * sizeof(*locations));
	if (n_labels)
		memcpy(b->labels + b->n_labels, labels, n_labels * sizeof(*labels));
	memcpy(b->values + b->n * p->n_types, values, p->n_types * sizeof(*values));
	b->n_stacks += n;
	b->n_labels += n_labels;
	e->stack_hash = intern_hash(&p->stacks, locations, n * sizeof(*locations));
	e->labels_hash = intern_hash(&p->label_sets, labels, n_labels * sizeof(*labels));
	intern_ask_slot(&p->stacks, e->stack_hash);
	intern_ask_slot(&p->label_sets, e->labels_hash);
	return ++b->n == BATCH ? batch_flush(b, p) : 0;
}

static void ask_keys(const struct batch *b, const struct profile *p)
{
	for (size_t i = 0; i < b->n; i++) {
		intern_ask_entry(&p->stacks, b->entries[i].stack_hash);
		intern_ask_entry(&p->label_sets, b->entries[i].labels_hash);
	}
	for (size_t i = 0; i < b->n; i++) {
		intern_ask_key(&p->stacks, b->entries[i].stack_hash);
		intern_ask_key(&p->label_sets, b->entries[i].labels_hash);
	}
}

static int find_keys(struct batch *b, struct profile *p)
{
	int err = 0;

	for (size_t i = 0; i < b->n && !err; i++) {
		struct batch_entry *e = &b->entries[i];

		err = intern_put_hashed(&p->stacks, b->stacks + e->stack, e->n * sizeof(*b->stacks), e->stack_hash, &e->key.stack,
					NULL);
		if (!err)
			err = intern_put_hashed(&p->label_sets, b->labels + e->labels, e->n_labels * sizeof(*b->labels),
						e->labels_hash, &e->key.labels, NULL);
		e->sample_hash = intern_hash(&p->samples, &e->key, sizeof(e->key));
		intern_ask_slot(&p->samples, e->sample_hash);
	}
	return err;
}

int batch_flush(struct batch *b, struct profile *p)
{
	int err;

	ask_keys(b, p);
	err = find_keys(b, p);
	for (size_t i = 0; i < b->n && !err; i++)
		intern_ask_entry(&p->samples, b->entries[i].sample_hash);
	for (size_t i = 0; i < b->n && !err; i++)
		intern_ask_key(&p->samples, b->entries[i].sample_hash);
	for (size_t i = 0; i < b->n && !err; i++)
		err = profile_add_values(p, b->entries[i].key, b->values + i * p->n_types);
	b->n = b->n_stacks = b->n_labels = 0;
	return err;
}

void sample_batch_free(struct batch *b)
{
	free(b->stacks);
	free(b->labels);
	free(b->values);
}
