// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "pprof/decode_internal.h"

int map_string(struct pprof_reader *r, struct tables *t, uint32_t index, uint32_t *ret)
{
	struct raw_string *s = &t->strings[index];
	const uint8_t *text = t->text + s->offset;
	size_t len = s->len;
	uint32_t merged;
	int err;

	if (!s->merged) {
		err = clean_text(&text, &len, &r->bytes);
		if (!err)
			err = profile_string(r->profile, text, len, &merged);
		if (err)
			return err;
		s->merged = merged + 1;
	}
	*ret = s->merged - 1;
	return 0;
}

// What makes two mappings the same one in google/pprof's merge: the size in pages, the offset, the build-id or else the
// file. The address differs between processes.
struct mapping_key {
	uint64_t size, offset;
	uint32_t file, pad;
};

int map_mapping(struct pprof_reader *r, struct tables *t, size_t index, uint32_t *ret)
{
	struct raw_mapping *m = &t->mappings[index];
	struct profile_mapping to = { .start = m->start, .limit = m->limit, .offset = m->offset, .flags = m->flags };
	struct mapping_key key = { .size = (m->limit - m->start + 4095) & ~(uint64_t)4095, .offset = m->offset };
	uint32_t id;
	bool added;
	int err;

	if (!m->merged) {
		err = map_string(r, t, m->file, &to.file);
		if (!err)
			err = map_string(r, t, m->build_id, &to.build_id);
		key.file = to.build_id ? to.build_id : to.file;
		if (!err)
			err = intern_put(&r->mapping_keys, &key, sizeof(key), &m->merged, &added);
		if (!err && added)
			err = profile_mapping(r->profile, &to, &id);
		if (err)
			return err;
		m->moved = ((const struct profile_mapping *)intern_key(&r->profile->mappings, m->merged))->start - m->start;
	}
	*ret = m->merged;
	return 0;
}

static int map_function(struct pprof_reader *r, struct tables *t, size_t index, uint32_t *ret)
{
	struct raw_function *f = &t->functions[index];
	struct profile_function to = { .start_line = f->start_line };
	int err;

	if (!f->merged) {
		err = map_string(r, t, f->name, &to.name);
		if (!err)
			err = map_string(r, t, f->system_name, &to.system_name);
		if (!err)
			err = map_string(r, t, f->file, &to.file);
		if (!err)
			err = profile_function(r->profile, &to, &f->merged);
		if (err)
			return err;
	}
	*ret = f->merged;
	return 0;
}

int map_location(struct pprof_reader *r, struct tables *t, size_t index, uint32_t *ret)
{
	struct raw_location *l = &t->locations[index];
	size_t size = sizeof(struct profile_location) + l->n_lines * sizeof(struct profile_line);
	struct profile_location *to;
	uint32_t mapping = 0, unused;
	int err = 0;

	if (l->merged) {
		*ret = l->merged;
		return 0;
	}
	// Functions and mapping first: they use the scratch as well.
	for (uint32_t i = 0; i < l->n_lines && !err; i++)
		err = map_function(r, t, (size_t)t->lines[l->first_line + i].function, &unused);
	if (!err && l->mapping)
		err = map_mapping(r, t, (size_t)l->mapping - 1, &mapping);
	if (err)
		return err;
	r->bytes.len = 0;
	to = (struct profile_location *)buf_reserve(&r->bytes, size);
	if (!to)
		return -ENOMEM;
	memset(to, 0, sizeof(*to));
	to->address = l->address + (l->mapping ? t->mappings[l->mapping - 1].moved : 0);
	to->mapping = mapping;
	to->folded = l->folded;
	to->n_lines = l->n_lines;
	for (uint32_t i = 0; i < l->n_lines; i++) {
		const struct raw_line *line = &t->lines[l->first_line + i];

		to->lines[i] = (struct profile_line){ .function = t->functions[line->function].merged,
						      .line = line->line,
						      .column = line->column };
	}
	err = profile_location(r->profile, to, &l->merged);
	if (!err)
		*ret = l->merged;
	return err;
}
