// SPDX-License-Identifier: Apache-2.0
// How values went over time: for each bucket a query that adds up by a label instead of making a profile.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_query.h"

struct series {
	struct store_series_set *set;
	const char *by;
	bool by_node;
	struct idmap of_labels; // index + 1
	size_t at_node;		// with by_node: the node at hand's index
	const struct query_node *node;
	size_t bucket;
};

static int no_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "out of memory");
}

static bool has(const struct store_series_set *set, const char *name, size_t *ret)
{
	for (size_t i = 0; i < set->n; i++)
		if (!strcmp(set->series[i].name, name)) {
			*ret = i;
			return true;
		}
	return false;
}

// The series of that name, or the one for all others.
static int find(struct store_series_set *set, const char *name, size_t *ret, struct error *e)
{
	struct store_series *s;

	if (has(set, name, ret))
		return 0;
	if (set->n >= STORE_SERIES_MAX - 1) {
		name = "[other]";
		if (has(set, name, ret))
			return 0;
	}
	s = &set->series[set->n];
	s->name = strdup(name);
	s->point = calloc(set->buckets, sizeof(*s->point));
	*ret = set->n++;
	return s->name && s->point ? 0 : no_memory(e);
}

static int find_node(struct query *q, struct series *s, size_t *ret, struct error *e)
{
	int err = 0;

	if (s->node != q->at)
		err = find(s->set, q->at->name, &s->at_node, e);
	s->node = err ? NULL : q->at;
	*ret = s->at_node;
	return err;
}

static int find_label(struct query *q, struct series *s, uint32_t labels, size_t *ret, struct error *e)
{
	uint32_t *found = idmap_find(&s->of_labels, labels), n = 0;
	const struct profile_label *l = NULL;
	const char *name = "";
	int err = 0;

	if (found) {
		*ret = *found - 1;
		return 0;
	}
	if (s->by)
		err = bodies_labels(q->st.bodies, labels, &l, &n, e);
	for (uint32_t i = 0; i < n && !err; i++)
		if (l[i].text && !strcmp(profile_text(q->p, l[i].key), s->by))
			name = profile_text(q->p, l[i].text);
	if (!err)
		err = find(s->set, name, ret, e);
	if (!err && labels && idmap_put(&s->of_labels, labels, (uint32_t)*ret + 1))
		err = no_memory(e);
	return err;
}

static int take(struct query *q, uint32_t labels, const int64_t *value, struct error *e)
{
	struct series *s = q->take_context;
	struct store_point *p;
	size_t at;
	int err = s->by_node ? find_node(q, s, &at, e) : find_label(q, s, labels, &at, e);

	if (err)
		return err;
	p = &s->set->series[at].point[s->bucket];
	for (unsigned k = 0; k < PPROF_TYPES; k++)
		p->value[k] = saturating_add(p->value[k], value[k]);
	return 0;
}

static int one_bucket(struct query *q, struct series *s, const struct store_query *whole, uint64_t step, struct error *e)
{
	struct store_query part = *whole;
	int err;

	part.from = whole->from + s->bucket * step;
	part.to = whole->to - part.from > step ? part.from + step : whole->to;
	q->q = &part;
	s->node = NULL;
	err = query_each_node(q, e);
	for (size_t i = 0; i < q->n_nodes; i++)
		s->set->node_seconds_ns[s->bucket] += intervals_length(&q->node[i]->when);
	s->set->coverage.node_seconds_ns += s->set->node_seconds_ns[s->bucket];
	query_clear_nodes(q);
	q->q = whole;
	return err;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct store_series *)a)->name, ((const struct store_series *)b)->name);
}

static struct store_series_set *set_new(size_t buckets)
{
	struct store_series_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	set->buckets = buckets;
	set->node_seconds_ns = calloc(buckets, sizeof(*set->node_seconds_ns));
	if (set->node_seconds_ns)
		return set;
	store_series_free(set);
	return NULL;
}

void store_series_free(struct store_series_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->n; i++) {
		free(set->series[i].name);
		free(set->series[i].point);
	}
	free(set->node_seconds_ns);
	free(set);
}

static int check(const struct store_query *q, uint64_t step, size_t *ret_buckets, struct error *e)
{
	uint64_t buckets;

	if (!step || q->from >= q->to)
		return error_set(e, -EINVAL, "the window or the step is empty");
	buckets = (q->to - q->from - 1) / step + 1;
	if (buckets > STORE_BUCKETS_MAX)
		return error_set(e, -ERANGE, "that are %llu steps, at most %d are answered: take a longer step",
				 (unsigned long long)buckets, STORE_BUCKETS_MAX);
	*ret_buckets = buckets;
	return 0;
}

static int gather(struct query *q, struct series *s, struct store *store, const struct store_query *whole, uint64_t step,
		  struct error *e)
{
	int err = query_open(q, store, e);

	for (s->bucket = 0; s->bucket < s->set->buckets && !err; s->bucket++)
		err = one_bucket(q, s, whole, step, e);
	query_close(&q->st);
	return err;
}

int store_series(struct store *store, const struct store_query *whole, uint64_t step, const char *by, struct store_series_set **ret,
		 struct error *e)
{
	struct series s = { .by = by, .by_node = by && !strcmp(by, "node") };
	struct query q = { .q = whole, .n_stores = 1, .take = take, .take_context = &s };
	size_t buckets = 0;
	int err = check(whole, step, &buckets, e);

	if (err)
		return err;
	s.set = set_new(buckets);
	err = s.set ? query_start(&q, e) : no_memory(e);
	if (!err)
		err = gather(&q, &s, store, whole, step, e);
	if (!err && !q.coverage.windows)
		err = query_nothing(&store, 1, whole, e);
	err = watch_end(&q.watch, err, e);
	idmap_free(&s.of_labels);
	query_finish(&q);
	if (err) {
		store_series_free(s.set);
		return err;
	}
	q.coverage.node_seconds_ns = s.set->coverage.node_seconds_ns;
	s.set->coverage = q.coverage;
	if (s.set->n)
		qsort(s.set->series, s.set->n, sizeof(*s.set->series), compare);
	*ret = s.set;
	return 0;
}
