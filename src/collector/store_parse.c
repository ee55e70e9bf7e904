// SPDX-License-Identifier: Apache-2.0
#include "collector/store_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_dict.h"
#include "collector/store_columns.h"

static int check_types(const struct profile *p, struct error *e)
{
	static const char *const types[PPROF_TYPES][2] = {
		{ "io_ops", "count" }, { "io_time", "nanoseconds" }, { "read_bytes", "bytes" }, { "write_bytes", "bytes" },
		{ "cpu", "nanoseconds" },
	};

	if (p->n_types != PPROF_TYPES)
		return error_set(e, -EINVAL, "it has %zu sample types, not the five of an agent's profile", p->n_types);
	for (unsigned i = 0; i < PPROF_TYPES; i++)
		if (strcmp(profile_text(p, p->types[i].type), types[i][0]) || strcmp(profile_text(p, p->types[i].unit), types[i][1]))
			return error_set(e, -EINVAL, "its sample type %u is %.40s/%.40s, not %s/%s as in an agent's profile", i,
					 profile_text(p, p->types[i].type), profile_text(p, p->types[i].unit), types[i][0], types[i][1]);
	return 0;
}

static uint32_t find_pseudo(const struct profile *p)
{
	const struct profile_mapping *m = p->mappings.n ? intern_key(&p->mappings, 1) : NULL;
	const char *name = m ? profile_text(p, m->file) : "";

	return m && !m->start && !m->limit && (!strncmp(name, "[node ", 6) || !strncmp(name, "[service ", 9));
}

uint64_t parsed_offset(const struct profile *p, const struct profile_location *l)
{
	const struct profile_mapping *m = l->mapping ? intern_key(&p->mappings, l->mapping) : NULL;

	return m && l->address >= m->start && l->address < m->limit ? l->address - m->start : 0;
}

static void hash_texts(struct parsed *r, const struct hash_secret *s)
{
	for (uint32_t i = 0; i < r->p->strings.n; i++) {
		struct hash128 h = hash128_start(s, DICT_TEXT);

		hash128_add_bytes(&h, s, profile_text(r->p, i), profile_text_len(r->p, i));
		r->texts[i] = hash128_end(h, s);
	}
}

// The same mapping lies elsewhere in each process: size, offset and build-id (else the file) are what it is.
static void hash_mappings(struct parsed *r, const struct hash_secret *s)
{
	for (uint32_t i = 0; i < r->p->mappings.n; i++) {
		const struct profile_mapping *m = intern_key(&r->p->mappings, i + 1);
		struct hash128 h = hash128_start(s, DICT_MAPPING);

		hash128_add(&h, s, (m->limit - m->start + 4095) & ~(uint64_t)4095);
		hash128_add(&h, s, m->offset);
		hash128_add_hash(&h, s, r->texts[m->build_id ? m->build_id : m->file]);
		r->mappings[i] = hash128_end(h, s);
	}
}

static void hash_line(struct parsed *r, const struct hash_secret *s, const struct profile_line *l, struct hash128 *h)
{
	const struct profile_function *f = intern_key(&r->p->functions, l->function);

	hash128_add_hash(h, s, r->texts[f->name]);
	hash128_add_hash(h, s, r->texts[f->system_name]);
	hash128_add_hash(h, s, r->texts[f->file]);
	hash128_add(h, s, (uint64_t)f->start_line);
	hash128_add(h, s, (uint64_t)l->line);
	hash128_add(h, s, (uint64_t)l->column);
}

static void hash_locations(struct parsed *r, const struct hash_secret *s)
{
	for (uint32_t i = 0; i < r->p->locations.n; i++) {
		const struct profile_location *l = intern_key(&r->p->locations, i + 1);
		struct hash128 h = hash128_start(s, DICT_LOCATION);

		if (l->mapping && l->mapping != r->pseudo)
			hash128_add_hash(&h, s, r->mappings[l->mapping - 1]);
		hash128_add(&h, s, !l->mapping ? 0 : l->mapping == r->pseudo ? 1 : 2);
		hash128_add(&h, s, parsed_offset(r->p, l));
		hash128_add(&h, s, (uint64_t)l->n_lines << 1 | (l->folded != 0));
		for (uint32_t k = 0; k < l->n_lines; k++)
			hash_line(r, s, &l->lines[k], &h);
		r->locations[i] = hash128_end(h, s);
	}
}

static void hash_stacks(struct parsed *r, const struct hash_secret *s)
{
	for (uint32_t i = 0; i < r->p->stacks.n; i++) {
		const uint32_t *l = intern_key(&r->p->stacks, i + 1);
		size_t n = intern_len(&r->p->stacks, i + 1) / sizeof(*l);
		struct hash128 h = hash128_start(s, DICT_STACK);

		hash128_add(&h, s, n);
		for (size_t k = 0; k < n; k++)
			hash128_add_hash(&h, s, r->locations[l[k] - 1]);
		r->stacks[i] = hash128_end(h, s);
	}
}

// The order of the contract, whatever the order in which a profile first used the keys; keys that it does not know last.
static unsigned rank(const struct profile *p, const struct profile_label *l)
{
	static const char *const keys[] = { "comm", "device", "op", "service", "pid", "bytes", "latency" };
	unsigned i;

	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (!strcmp(profile_text(p, l->key), keys[i]))
			break;
	return i;
}

static void sort_labels(const struct profile *p, struct profile_label *l, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t k = i; k; k--) {
			struct profile_label swap = l[k];
			unsigned a = rank(p, &l[k - 1]), b = rank(p, &l[k]);

			if (a < b || (a == b && strcmp(profile_text(p, l[k - 1].key), profile_text(p, l[k].key)) <= 0))
				break;
			l[k] = l[k - 1];
			l[k - 1] = swap;
		}
}

static bool is_pid(const struct profile *p, const struct profile_label *l)
{
	return !l->text && !l->unit && l->number > 0 && l->number <= UINT32_MAX && !strcmp(profile_text(p, l->key), "pid");
}

static void take_labels(struct parsed *r, const struct hash_secret *s, struct parsed_labels *to, const struct profile_label *from,
			uint32_t n)
{
	struct profile_label *l = r->label + to->first;
	struct hash128 h = hash128_start(s, DICT_LABELS);

	for (uint32_t i = 0; i < n; i++) {
		if (is_pid(r->p, &from[i]) && !to->pid)
			to->pid = (uint32_t)from[i].number;
		else
			l[to->n++] = from[i];
	}
	sort_labels(r->p, l, to->n);
	hash128_add(&h, s, to->n);
	for (uint32_t i = 0; i < to->n; i++) {
		hash128_add_hash(&h, s, r->texts[l[i].key]);
		hash128_add(&h, s, l[i].text != 0);
		hash128_add_hash(&h, s, r->texts[l[i].text ? l[i].text : l[i].unit]);
		hash128_add(&h, s, (uint64_t)l[i].number);
	}
	to->hash = hash128_end(h, s);
}

#define LABELS_PER_SAMPLE 32

static int hash_labels(struct parsed *r, const struct hash_secret *s, struct error *e)
{
	const struct intern *sets = &r->p->label_sets;
	uint32_t used = 0;

	for (uint32_t i = 0; i < sets->n; i++) {
		uint32_t n = (uint32_t)(intern_len(sets, i + 1) / sizeof(struct profile_label));

		if (n > LABELS_PER_SAMPLE)
			return error_set(e, -EINVAL, "a sample has %u labels, more than the limit of %d", n, LABELS_PER_SAMPLE);
		r->labels[i].first = used;
		take_labels(r, s, &r->labels[i], intern_key(sets, i + 1), n);
		used += n;
	}
	return 0;
}

static int room(struct parsed *r)
{
	const struct profile *p = r->p;
	size_t hashes = (size_t)p->strings.n + p->mappings.n + p->locations.n + p->stacks.n + 1;
	size_t labels = p->label_sets.len / sizeof(*r->label) + 1;
	int err = memory_grow(NULL, &r->texts, &r->hashes_cap, hashes, sizeof(*r->texts));

	if (!err)
		err = memory_grow(NULL, &r->labels, &r->labels_cap, (size_t)p->label_sets.n + 1, sizeof(*r->labels));
	if (!err)
		err = memory_grow(NULL, &r->label, &r->label_cap, labels, sizeof(*r->label));
	if (err)
		return err;
	memset(r->labels, 0, ((size_t)p->label_sets.n + 1) * sizeof(*r->labels));
	r->mappings = r->texts + p->strings.n;
	r->locations = r->mappings + p->mappings.n;
	r->stacks = r->locations + p->locations.n;
	return 0;
}

static int start(struct parsed *r, size_t memory, struct error *e)
{
	struct pprof_limits limits = { .message = 64u << 20, .memory = memory, .frames = 1u << 26 };

	if (r->reader && pprof_reader_reuse(r->reader, &limits)) {
		pprof_reader_free(r->reader);
		r->reader = NULL;
	}
	if (r->reader)
		return 0;
	r->reader = pprof_reader_new(&limits);
	return r->reader && !pprof_reader_reuse(r->reader, &limits) ? 0 : error_set(e, -ENOMEM, "out of memory");
}

int parsed_read(struct parsed *r, const struct hash_secret *secret, const void *data, size_t size, size_t memory,
		struct error *e)
{
	struct pprof_source source = { .fd = -1, .data = data, .len = size };
	int err = start(r, memory, e);

	r->p = NULL;
	r->memory = r->pseudo = 0;
	if (!err)
		err = pprof_reader_add(r->reader, &source, e);
	if (err)
		return err;
	r->p = pprof_reader_finish(r->reader);
	r->memory = r->p->budget.used;
	err = check_types(r->p, e);
	if (err)
		return err;
	if (room(r))
		return error_set(e, -ENOMEM, "out of memory");
	r->pseudo = find_pseudo(r->p);
	hash_texts(r, secret);
	hash_mappings(r, secret);
	hash_locations(r, secret);
	hash_stacks(r, secret);
	return hash_labels(r, secret, e);
}

void parsed_free(struct parsed *r)
{
	pprof_reader_free(r->reader);
	free(r->texts);
	free(r->labels);
	free(r->label);
	memset(r, 0, sizeof(*r));
}

#define REUSE_MAX ((size_t)2 << 20)

void parsed_reuse(struct parsed *r)
{
	size_t hashes = r->hashes_cap * sizeof(*r->texts);

	r->p = NULL;
	if (hashes > REUSE_MAX || !r->reader || pprof_reader_budget(r->reader)->used > REUSE_MAX)
		parsed_free(r);
}
