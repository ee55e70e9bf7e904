// SPDX-License-Identifier: Apache-2.0
// The tables are hashed as they stand in the file, then each sample: that two of its stacks, names or samples are the same
// is found by their hashes, so nothing is merged here.
#include "collector/store_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_dict.h"

#define LABELS_PER_SAMPLE 32
#define FRAMES_MAX (1u << 26)

static int check_types(const struct tables *t, struct error *e)
{
	static const char *const types[PPROF_TYPES][2] = {
		{ "io_ops", "count" }, { "io_time", "nanoseconds" }, { "read_bytes", "bytes" }, { "write_bytes", "bytes" },
		{ "cpu", "nanoseconds" },
	};

	if (t->n_types != PPROF_TYPES)
		return error_set(e, -EINVAL, "it has %zu sample types, not the five of an agent's profile", t->n_types);
	for (unsigned i = 0; i < PPROF_TYPES; i++)
		if (strcmp(raw_text(t, t->types[i].type), types[i][0]) || strcmp(raw_text(t, t->types[i].unit), types[i][1]))
			return error_set(e, -EINVAL, "its sample type %u is %.40s/%.40s, not %s/%s as in an agent's profile", i,
					 raw_text(t, t->types[i].type), raw_text(t, t->types[i].unit), types[i][0], types[i][1]);
	return 0;
}

static uint32_t find_pseudo(const struct tables *t)
{
	const struct raw_mapping *m = t->n_mappings ? &t->mappings[0] : NULL;
	const char *name = m ? raw_text(t, m->file) : "";

	return m && !m->start && !m->limit && (!strncmp(name, "[node ", 6) || !strncmp(name, "[service ", 9));
}

uint64_t parsed_offset(const struct tables *t, const struct raw_location *l)
{
	const struct raw_mapping *m = l->mapping ? &t->mappings[l->mapping - 1] : NULL;

	return m && l->address >= m->start && l->address < m->limit ? l->address - m->start : 0;
}

static void hash_texts(struct parsed *r, const struct hash_secret *s)
{
	for (size_t i = 0; i < r->t->n_strings; i++) {
		struct hash128 h = hash128_start(s, DICT_TEXT);

		hash128_add_bytes(&h, s, raw_text(r->t, (uint32_t)i), r->t->strings[i].len);
		r->texts[i] = hash128_end(h, s);
	}
}

// The same mapping lies elsewhere in each process: size, offset and build-id (else the file) are what it is.
static void hash_mappings(struct parsed *r, const struct hash_secret *s)
{
	for (size_t i = 0; i < r->t->n_mappings; i++) {
		const struct raw_mapping *m = &r->t->mappings[i];
		struct hash128 h = hash128_start(s, DICT_MAPPING);

		hash128_add(&h, s, (m->limit - m->start + 4095) & ~(uint64_t)4095);
		hash128_add(&h, s, m->offset);
		hash128_add_hash(&h, s, r->texts[r->t->strings[m->build_id].len ? m->build_id : m->file]);
		r->mappings[i] = hash128_end(h, s);
	}
}

static void hash_line(struct parsed *r, const struct hash_secret *s, const struct raw_line *l, struct hash128 *h)
{
	const struct raw_function *f = &r->t->functions[l->function];

	hash128_add_hash(h, s, r->texts[f->name]);
	hash128_add_hash(h, s, r->texts[f->system_name]);
	hash128_add_hash(h, s, r->texts[f->file]);
	hash128_add(h, s, (uint64_t)f->start_line);
	hash128_add(h, s, (uint64_t)l->line);
	hash128_add(h, s, (uint64_t)l->column);
}

static void hash_locations(struct parsed *r, const struct hash_secret *s)
{
	for (size_t i = 0; i < r->t->n_locations; i++) {
		const struct raw_location *l = &r->t->locations[i];
		struct hash128 h = hash128_start(s, DICT_LOCATION);

		if (l->mapping && l->mapping != r->pseudo)
			hash128_add_hash(&h, s, r->mappings[l->mapping - 1]);
		hash128_add(&h, s, !l->mapping ? 0 : l->mapping == r->pseudo ? 1 : 2);
		hash128_add(&h, s, parsed_offset(r->t, l));
		hash128_add(&h, s, (uint64_t)l->n_lines << 1 | (l->folded != 0));
		for (uint32_t k = 0; k < l->n_lines; k++)
			hash_line(r, s, &r->t->lines[l->first_line + k], &h);
		r->locations[i] = hash128_end(h, s);
	}
}

// The order of the contract, whatever the order in which a profile has the keys; keys that it does not know last.
static unsigned rank(const struct tables *t, const struct profile_label *l)
{
	static const char *const keys[] = { "comm", "device", "op", "service", "pid", "bytes", "latency" };
	unsigned i;

	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (!strcmp(raw_text(t, l->key), keys[i]))
			break;
	return i;
}

static void sort_labels(const struct tables *t, struct profile_label *l, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t k = i; k; k--) {
			struct profile_label swap = l[k];
			unsigned a = rank(t, &l[k - 1]), b = rank(t, &l[k]);

			if (a < b || (a == b && strcmp(raw_text(t, l[k - 1].key), raw_text(t, l[k].key)) <= 0))
				break;
			l[k] = l[k - 1];
			l[k - 1] = swap;
		}
}

static bool is_pid(const struct tables *t, const struct profile_label *l)
{
	return !l->text && !l->unit && l->number > 0 && l->number <= UINT32_MAX && !strcmp(raw_text(t, l->key), "pid");
}

static void take_labels(struct parsed *r, struct parsed_labels *to, const struct profile_label *from, size_t n)
{
	const struct hash_secret *s = r->secret;
	struct profile_label *l = r->label + to->first;
	struct hash128 h = hash128_start(s, DICT_LABELS);

	for (size_t i = 0; i < n; i++) {
		if (is_pid(r->t, &from[i]) && !to->pid)
			to->pid = (uint32_t)from[i].number;
		else
			l[to->n++] = from[i];
	}
	sort_labels(r->t, l, to->n);
	hash128_add(&h, s, to->n);
	for (uint32_t i = 0; i < to->n; i++) {
		hash128_add_hash(&h, s, r->texts[l[i].key]);
		hash128_add(&h, s, l[i].text != 0);
		hash128_add_hash(&h, s, r->texts[l[i].text ? l[i].text : l[i].unit]);
		hash128_add(&h, s, (uint64_t)l[i].number);
	}
	to->hash = hash128_end(h, s);
}

static bool is_base(const struct tables *t, const struct raw_sample *s)
{
	for (size_t i = 0; i < s->n_labels; i++)
		if (s->labels[i].text && !strcmp(raw_text(t, s->labels[i].key), "pprof::base"))
			return true;
	return false;
}

static int add_set(struct parsed *r, const struct raw_sample *s, uint32_t *ret, struct error *e)
{
	struct parsed_labels *to;
	uint32_t id;
	bool added;
	int err;

	if (s->n_labels > LABELS_PER_SAMPLE)
		return error_set(e, -EINVAL, "a sample has %zu labels, more than the limit of %d", s->n_labels, LABELS_PER_SAMPLE);
	err = intern_put(&r->sets, s->labels, s->n_labels * sizeof(*s->labels), &id, &added);
	if (!err)
		*ret = id - 1;
	if (err || !added)
		return err;
	if (is_base(r->t, s))
		return error_set(e, -EINVAL, "it is a difference of two profiles: it has the label pprof::base");
	err = memory_grow(&r->budget, &r->labels, &r->labels_cap, id, sizeof(*r->labels));
	if (!err)
		err = memory_grow(&r->budget, &r->label, &r->label_cap, r->n_label + s->n_labels + 1, sizeof(*r->label));
	if (err)
		return err;
	to = &r->labels[id - 1];
	*to = (struct parsed_labels){ .first = (uint32_t)r->n_label };
	take_labels(r, to, s->labels, s->n_labels);
	r->n_label += to->n;
	return 0;
}

static struct hash128 hash_stack(const struct parsed *r, const struct raw_sample *s)
{
	struct hash128 h = hash128_start(r->secret, DICT_STACK);

	hash128_add(&h, r->secret, s->n);
	for (size_t k = 0; k < s->n; k++)
		hash128_add_hash(&h, r->secret, r->locations[s->locations[k]]);
	return hash128_end(h, r->secret);
}

static int no_room(const struct parsed *r, int err, struct error *e)
{
	if (err == -E2BIG)
		return error_set(e, err, "its samples need more than the limit of %zu bytes of memory", r->budget.limit);
	return err == -EINVAL ? err : error_set(e, err, "out of memory");
}

static int add_sample(void *parsed, struct raw_sample *s, struct error *e)
{
	struct parsed *r = parsed;
	struct parsed_sample *to;
	int64_t any = 0, negative = 0;
	int err;

	for (unsigned i = 0; i < PPROF_TYPES; i++) {
		any |= s->values[i];
		negative |= s->values[i] < 0;
	}
	if (negative)
		return error_set(e, -EINVAL, "byte %llu: a value is below zero: it is a difference of two profiles",
				 (unsigned long long)s->at);
	if (!any)
		return 0;
	err = memory_grow(&r->budget, &r->samples, &r->samples_cap, r->n_samples + 1, sizeof(*r->samples));
	if (!err)
		err = memory_grow(&r->budget, &r->frames, &r->frames_cap, r->n_frames + s->n + 1, sizeof(*r->frames));
	to = err ? NULL : &r->samples[r->n_samples];
	if (!err)
		err = add_set(r, s, &to->labels, e);
	if (err)
		return no_room(r, err, e);
	to->stack = hash_stack(r, s);
	to->first = r->n_frames;
	to->n = (uint32_t)s->n;
	memcpy(to->value, s->values, sizeof(to->value));
	if (s->n)
		memcpy(r->frames + r->n_frames, s->locations, s->n * sizeof(*r->frames));
	r->n_frames += s->n;
	r->n_samples++;
	return 0;
}

static int hash_tables(struct parsed *r, struct error *e)
{
	const struct tables *t = r->t;
	int err = memory_grow(&r->budget, &r->texts, &r->hashes_cap, t->n_strings + t->n_mappings + t->n_locations + 1, sizeof(*r->texts));

	if (err)
		return no_room(r, err, e);
	r->mappings = r->texts + t->n_strings;
	r->locations = r->mappings + t->n_mappings;
	r->pseudo = find_pseudo(t);
	hash_texts(r, r->secret);
	hash_mappings(r, r->secret);
	hash_locations(r, r->secret);
	return 0;
}

static int start(struct parsed *r, const struct hash_secret *secret, struct error *e)
{
	if (!r->raw) {
		r->raw = pprof_raw_new();
		intern_init(&r->sets, &r->budget);
	}
	if (!r->raw)
		return error_set(e, -ENOMEM, "out of memory");
	r->secret = secret;
	r->t = NULL;
	r->n_samples = r->n_frames = r->n_label = 0;
	r->memory = r->pseudo = 0;
	intern_clear(&r->sets);
	return 0;
}

// What was used before counts: it is small, or parsed_reuse had given it back.
int parsed_read(struct parsed *r, const struct hash_secret *secret, const void *data, size_t size, uint64_t message, size_t memory,
		struct error *e)
{
	struct pprof_source source = { .fd = -1, .data = data, .len = size };
	const struct tables *t;
	size_t used;
	int err = start(r, secret, e);

	if (!err && (size < 2 || memcmp(data, "\x1f\x8b", 2)))
		err = error_set(e, -EBADMSG, "it is no gzip file");
	if (!err)
		err = pprof_raw_open(r->raw, &source, message, memory, FRAMES_MAX, &t, e);
	if (!err)
		err = check_types(t, e);
	if (err)
		return err;
	used = pprof_raw_memory(r->raw);
	r->t = t;
	r->budget.limit = used < memory ? memory - used : 1;
	err = hash_tables(r, e);
	if (!err)
		err = pprof_raw_samples(r->raw, add_sample, r, e);
	r->memory = pprof_raw_memory(r->raw) + r->budget.used;
	r->inflated = pprof_raw_size(r->raw);
	return err;
}

void parsed_free(struct parsed *r)
{
	pprof_raw_free(r->raw);
	intern_free(&r->sets);
	free(r->texts);
	free(r->samples);
	free(r->frames);
	free(r->labels);
	free(r->label);
	memset(r, 0, sizeof(*r));
}

void parsed_moved(struct parsed *r)
{
	if (r->raw)
		r->sets.budget = &r->budget;
}

#define REUSE_MAX ((size_t)2 << 20)

void parsed_reuse(struct parsed *r)
{
	r->t = NULL;
	if (!r->raw || pprof_raw_memory(r->raw) + r->budget.used > REUSE_MAX)
		parsed_free(r);
}
