// SPDX-License-Identifier: Apache-2.0
// First pass over a file: everything but the samples.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/decode_internal.h"

enum {
	F_TYPE = 1,
	F_SAMPLE,
	F_MAPPING,
	F_LOCATION,
	F_FUNCTION,
	F_STRING,
	F_DROP,
	F_KEEP,
	F_TIME,
	F_DURATION,
	F_PERIOD_TYPE,
	F_PERIOD,
	F_COMMENT,
	F_DEFAULT,
	F_DOC,
};

#define GROW(t, array, e)                                                                                            \
	(t)->n_##array < (t)->array##_cap ? 0 :                                                                       \
	grow((t)->budget, &(t)->array, &(t)->array##_cap, (t)->n_##array + 1, sizeof(*(t)->array), e)

static int grow(struct memory_budget *b, void *block, size_t *cap, size_t need, size_t size, struct error *e)
{
	int err = memory_grow(b, block, cap, need, size);

	return err ? decode_memory(b, err, e) : 0;
}

static int read_type(const struct field *f, struct raw_type *ret, struct error *e)
{
	struct cursor c = field_cursor(f);
	struct field in;
	int more, err = field_bytes(f, "value type", e);

	if (err)
		return err;
	while ((more = cursor_next(&c, "value type", &in, e)) > 0) {
		err = in.number == 1 ? field_string(&in, "type", &ret->type, e) :
		      in.number == 2 ? field_string(&in, "unit", &ret->unit, e) :
				       0;
		if (err)
			return err;
	}
	return more;
}

static int read_mapping(struct tables *t, const struct field *f, struct error *e)
{
	struct cursor c = field_cursor(f);
	struct raw_mapping m = { .at = f->at };
	uint64_t v = 0;
	struct field in;
	int more, err = field_bytes(f, "mapping", e);

	if (err)
		return err;
	while ((more = cursor_next(&c, "mapping", &in, e)) > 0) {
		if (in.number > 10)
			continue;
		err = field_varint(&in, "field of a mapping", &v, e);
		if (err)
			return err;
		switch (in.number) {
		case 1: m.id = v; break;
		case 2: m.start = v; break;
		case 3: m.limit = v; break;
		case 4: m.offset = v; break;
		case 5: err = field_string(&in, "file name of a mapping", &m.file, e); break;
		case 6: err = field_string(&in, "build-id of a mapping", &m.build_id, e); break;
		default:
			m.flags = (m.flags & ~(1u << (in.number - 7))) | (uint32_t)(v != 0) << (in.number - 7);
		}
		if (err)
			return err;
	}
	if (more)
		return more;
	if (!m.id)
		return error_set(e, -EBADMSG, "byte %llu: a mapping has the id 0", (unsigned long long)f->at);
	err = GROW(t, mappings, e);
	if (!err)
		t->mappings[t->n_mappings++] = m;
	return err;
}

static int read_function(struct tables *t, const struct field *f, struct error *e)
{
	struct cursor c = field_cursor(f);
	struct raw_function fn = { .at = f->at };
	uint64_t line = 0;
	struct field in;
	int more, err = field_bytes(f, "function", e);

	if (err)
		return err;
	while ((more = cursor_next(&c, "function", &in, e)) > 0) {
		switch (in.number) {
		case 1: err = field_varint(&in, "id of a function", &fn.id, e); break;
		case 2: err = field_string(&in, "name of a function", &fn.name, e); break;
		case 3: err = field_string(&in, "system name of a function", &fn.system_name, e); break;
		case 4: err = field_string(&in, "file name of a function", &fn.file, e); break;
		case 5: err = field_varint(&in, "start line of a function", &line, e); break;
		}
		if (err)
			return err;
	}
	if (more)
		return more;
	if (!fn.id)
		return error_set(e, -EBADMSG, "byte %llu: a function has the id 0", (unsigned long long)f->at);
	fn.start_line = (int64_t)line;
	err = GROW(t, functions, e);
	if (!err)
		t->functions[t->n_functions++] = fn;
	return err;
}

static int read_line(struct tables *t, const struct field *f, struct error *e)
{
	struct cursor c = field_cursor(f);
	struct raw_line l = { 0 };
	uint64_t v = 0;
	struct field in;
	int more, err = field_bytes(f, "line", e);

	if (err)
		return err;
	while ((more = cursor_next(&c, "line", &in, e)) > 0) {
		if (in.number > 3)
			continue;
		err = field_varint(&in, "field of a line", &v, e);
		if (err)
			return err;
		if (in.number == 1)
			l.function = v;
		else if (in.number == 2)
			l.line = (int64_t)v;
		else
			l.column = (int64_t)v;
	}
	if (more)
		return more;
	if (!l.function)
		return error_set(e, -EBADMSG, "byte %llu: a line has the function id 0", (unsigned long long)f->at);
	err = GROW(t, lines, e);
	if (!err)
		t->lines[t->n_lines++] = l;
	return err;
}

static int read_location(struct tables *t, const struct field *f, struct error *e)
{
	struct cursor c = field_cursor(f);
	struct raw_location l = { .at = f->at, .first_line = (uint32_t)t->n_lines };
	uint64_t folded = 0;
	struct field in;
	int more, err = field_bytes(f, "location", e);

	if (err)
		return err;
	while ((more = cursor_next(&c, "location", &in, e)) > 0) {
		switch (in.number) {
		case 1: err = field_varint(&in, "id of a location", &l.id, e); break;
		case 2: err = field_varint(&in, "mapping id of a location", &l.mapping, e); break;
		case 3: err = field_varint(&in, "address of a location", &l.address, e); break;
		case 4: err = read_line(t, &in, e); break;
		case 5: err = field_varint(&in, "folded mark of a location", &folded, e); break;
		}
		if (err)
			return err;
	}
	if (more)
		return more;
	if (!l.id)
		return error_set(e, -EBADMSG, "byte %llu: a location has the id 0", (unsigned long long)f->at);
	l.n_lines = (uint32_t)(t->n_lines - l.first_line);
	l.folded = folded != 0;
	err = GROW(t, locations, e);
	if (!err)
		t->locations[t->n_locations++] = l;
	return err;
}

static int read_string(struct tables *t, const struct field *f, struct error *e)
{
	int err = field_bytes(f, "string", e);

	if (err)
		return err;
	if (!t->n_strings && f->len)
		return error_set(e, -EBADMSG, "byte %llu: the first string is not empty", (unsigned long long)f->at);
	err = GROW(t, strings, e);
	if (!err)
		err = t->text_len + f->len < t->text_cap ? 0 : grow(t->budget, &t->text, &t->text_cap, t->text_len + f->len + 1, 1, e);
	if (err)
		return err;
	memcpy(t->text + t->text_len, f->data, f->len);
	t->text[t->text_len + f->len] = 0;
	t->strings[t->n_strings++] = (struct raw_string){ .offset = t->text_len, .len = (uint32_t)f->len };
	t->text_len += f->len + 1;
	return 0;
}

static int add_comment(struct tables *t, uint64_t at, uint64_t v, struct error *e)
{
	int err;

	if (v >= UINT32_MAX)
		return error_set(e, -EBADMSG, "byte %llu: string index %lld of a comment is out of range", (unsigned long long)at,
				 (long long)v);
	err = GROW(t, comments, e);
	if (!err)
		t->comments[t->n_comments++] = (uint32_t)v;
	return err;
}

static int read_comment(struct tables *t, const struct field *f, struct error *e)
{
	const uint8_t *p = f->data;
	uint64_t v;
	int err;

	if (f->type == WIRE_VARINT)
		return add_comment(t, f->at, f->value, e);
	err = field_bytes(f, "comment", e);
	while (!err && p < f->data + f->len) {
		if (wire_get_varint(&p, f->data + f->len, &v))
			return error_set(e, -EBADMSG, "byte %llu: a number in the comments is cut off or too large",
					 (unsigned long long)f->at);
		err = add_comment(t, f->at, v, e);
	}
	return err;
}

// A scalar that comes a second time is the sign of two profiles in one file: protobuf would mix their tables.
static int read_scalar(const struct field *f, const char *what, int64_t *to, struct error *e)
{
	uint64_t v;
	int err = field_varint(f, what, &v, e);

	if (err)
		return err;
	if (*to)
		return error_set(e, -EBADMSG, "byte %llu: a second %s: these are two profiles in one file; give them as two files",
				 (unsigned long long)f->at, what);
	*to = (int64_t)v;
	return 0;
}

static int read_field(struct tables *t, const struct field *f, struct error *e)
{
	struct raw_type type = { 0 };
	int err;

	switch (f->number) {
	case F_TYPE:
		err = read_type(f, &type, e);
		if (!err)
			err = GROW(t, types, e);
		if (!err)
			t->types[t->n_types++] = type;
		return err;
	case F_MAPPING: return read_mapping(t, f, e);
	case F_LOCATION: return read_location(t, f, e);
	case F_FUNCTION: return read_function(t, f, e);
	case F_STRING: return read_string(t, f, e);
	case F_DROP: return field_string(f, "drop_frames", &t->drop_frames, e);
	case F_KEEP: return field_string(f, "keep_frames", &t->keep_frames, e);
	case F_TIME: return read_scalar(f, "time", &t->time_ns, e);
	case F_DURATION: return read_scalar(f, "duration", &t->duration_ns, e);
	case F_PERIOD_TYPE: return read_type(f, &t->period_type, e);
	case F_PERIOD: return read_scalar(f, "period", &t->period, e);
	case F_COMMENT: return read_comment(t, f, e);
	case F_DEFAULT: return field_string(f, "default sample type", &t->default_type, e);
	default: return field_string(f, "documentation address", &t->doc_url, e);
	}
}

static int compare_ids(const void *a, const void *b)
{
	const struct id_entry *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id ? 1 : x->index < y->index ? -1 : 1;
}

// The first member of every element of `array` is its id, the second its offset in the message.
static int map_ids(struct tables *t, struct id_map *m, const void *array, size_t n, size_t size, const char *what,
		   struct error *e)
{
	bool sorted = true;
	int err = memory_grow(t->budget, &m->entries, &m->cap, n, sizeof(*m->entries));

	if (err)
		return decode_memory(t->budget, err, e);
	for (size_t i = 0; i < n; i++) {
		memcpy(&m->entries[i].id, (const char *)array + i * size, sizeof(uint64_t));
		m->entries[i].index = (uint32_t)i;
		sorted &= !i || m->entries[i - 1].id < m->entries[i].id;
	}
	m->n = n;
	if (!sorted)
		qsort(m->entries, n, sizeof(*m->entries), compare_ids);
	for (size_t i = 1; i < n; i++) {
		uint64_t at;

		if (m->entries[i - 1].id != m->entries[i].id)
			continue;
		memcpy(&at, (const char *)array + m->entries[i].index * size + sizeof(uint64_t), sizeof(at));
		return error_set(e, -EBADMSG, "byte %llu: the %s id %llu is there twice", (unsigned long long)at, what,
				 (unsigned long long)m->entries[i].id);
	}
	return 0;
}

int64_t id_map_find(const struct id_map *m, uint64_t id)
{
	size_t from = 0, to = m->n;

	// Dense ids from 1 are what nearly all writers make.
	if (id - 1 < m->n && m->entries[id - 1].id == id)
		return m->entries[id - 1].index;
	while (from < to) {
		size_t middle = (from + to) / 2;

		if (m->entries[middle].id < id)
			from = middle + 1;
		else
			to = middle;
	}
	return from < m->n && m->entries[from].id == id ? (int64_t)m->entries[from].index : -1;
}

static int check_string(const struct tables *t, uint32_t index, uint64_t at, const char *what, struct error *e)
{
	if (index < t->n_strings)
		return 0;
	return error_set(e, -EBADMSG, "byte %llu: string index %u of the %s is out of range: there are %zu strings",
			 (unsigned long long)at, index, what, t->n_strings);
}

static int resolve_entries(struct tables *t, struct error *e)
{
	int err = 0;

	for (size_t i = 0; i < t->n_functions && !err; i++) {
		const struct raw_function *f = &t->functions[i];

		err = check_string(t, f->name, f->at, "name of a function", e);
		if (!err)
			err = check_string(t, f->system_name, f->at, "system name of a function", e);
		if (!err)
			err = check_string(t, f->file, f->at, "file name of a function", e);
	}
	for (size_t i = 0; i < t->n_mappings && !err; i++) {
		const struct raw_mapping *m = &t->mappings[i];

		err = check_string(t, m->file, m->at, "file name of a mapping", e);
		if (!err)
			err = check_string(t, m->build_id, m->at, "build-id of a mapping", e);
	}
	for (size_t i = 0; i < t->n_comments && !err; i++)
		err = check_string(t, t->comments[i], 0, "comments", e);
	for (size_t i = 0; i < t->n_types && !err; i++) {
		err = check_string(t, t->types[i].type, 0, "name of a sample type", e);
		if (!err)
			err = check_string(t, t->types[i].unit, 0, "unit of a sample type", e);
	}
	return err;
}

static int resolve_header(const struct tables *t, struct error *e)
{
	int err = check_string(t, t->period_type.type, 0, "period type", e);

	if (!err)
		err = check_string(t, t->period_type.unit, 0, "unit of the period", e);
	if (!err)
		err = check_string(t, t->default_type, 0, "default sample type", e);
	if (!err)
		err = check_string(t, t->drop_frames, 0, "drop_frames", e);
	if (!err)
		err = check_string(t, t->keep_frames, 0, "keep_frames", e);
	return err ? err : check_string(t, t->doc_url, 0, "documentation address", e);
}

static int resolve_locations(struct tables *t, struct error *e)
{
	int err = grow(t->budget, &t->hot, &t->hot_cap, t->n_locations, sizeof(*t->hot), e);

	if (err)
		return err;
	t->dense = true;
	for (size_t i = 0; i < t->n_locations; i++) {
		struct raw_location *l = &t->locations[i];
		int64_t found = l->mapping ? id_map_find(&t->mapping_ids, l->mapping) : -1;

		t->dense &= l->id == i + 1;
		t->hot[i] = (struct hot_location){ .frames = l->n_lines + 1 };
		// An unknown mapping is none, as in pprof.
		l->mapping = (uint64_t)(found + 1);
		for (uint32_t j = 0; j < l->n_lines; j++) {
			struct raw_line *line = &t->lines[l->first_line + j];

			found = id_map_find(&t->function_ids, line->function);
			if (found < 0)
				return error_set(e, -EBADMSG, "byte %llu: location %llu names function %llu, which is not there",
						 (unsigned long long)l->at, (unsigned long long)l->id,
						 (unsigned long long)line->function);
			line->function = (uint64_t)found;
		}
	}
	return 0;
}

static int check_types(const struct tables *t, struct error *e)
{
	if (!t->n_types)
		return error_set(e, -EBADMSG, "it has no sample types: there is nothing to show");
	// As many as any program writes; bounds the comparison below.
	if (t->n_types > 256)
		return error_set(e, -EBADMSG, "it has %zu sample types, more than the limit of 256", t->n_types);
	for (size_t i = 0; i < t->n_types; i++) {
		const struct raw_string *a = &t->strings[t->types[i].type];

		if (!a->len)
			return error_set(e, -EBADMSG, "sample type %zu has no name", i);
		for (size_t j = 0; j < i; j++) {
			const struct raw_string *b = &t->strings[t->types[j].type];

			if (a->len == b->len && !memcmp(t->text + a->offset, t->text + b->offset, a->len))
				return error_set(e, -EBADMSG, "sample types %zu and %zu have the same name", j, i);
		}
	}
	return 0;
}

static int resolve(struct tables *t, struct error *e)
{
	int err;

	if (!t->n_strings)
		return error_set(e, -EBADMSG, "it has no string table: it is no profile");
	err = resolve_entries(t, e);
	if (!err)
		err = resolve_header(t, e);
	if (!err)
		err = map_ids(t, &t->function_ids, t->functions, t->n_functions, sizeof(*t->functions), "function", e);
	if (!err)
		err = map_ids(t, &t->mapping_ids, t->mappings, t->n_mappings, sizeof(*t->mappings), "mapping", e);
	if (!err)
		err = map_ids(t, &t->location_ids, t->locations, t->n_locations, sizeof(*t->locations), "location", e);
	if (!err)
		err = resolve_locations(t, e);
	return err ? err : check_types(t, e);
}

// Where samples are, when all of the message is at hand: the second pass need not look elsewhere.
static void note_sample(struct tables *t, const struct stream *s, const struct field *f)
{
	if (!t->samples_to)
		t->samples_from = f->at;
	t->samples_to = stream_offset(s);
}

int tables_read(struct tables *t, struct stream *s, struct error *e)
{
	const uint32_t want = 0xfffe & (s->eof ? ~0u : ~(1u << F_SAMPLE));
	struct field f;
	int more, err;

	while ((more = stream_next(s, want, &f, e)) > 0) {
		if (f.number == F_SAMPLE) {
			note_sample(t, s, &f);
			continue;
		}
		err = read_field(t, &f, e);
		if (err)
			return err;
		// Line indexes are 32 bits; the others are bounded by memory long before.
		if (t->n_lines >= UINT32_MAX || t->n_locations >= UINT32_MAX)
			return error_set(e, -E2BIG, "it has more than 4 billion lines or locations");
	}
	return more ? more : resolve(t, e);
}

void tables_clear(struct tables *t)
{
	t->text_len = t->n_strings = t->n_functions = t->n_mappings = t->n_locations = t->n_lines = t->n_types = t->n_comments = 0;
	t->period_type = (struct raw_type){ 0 };
	t->period = t->time_ns = t->duration_ns = 0;
	t->drop_frames = t->keep_frames = t->default_type = t->doc_url = 0;
	t->samples_from = t->samples_to = 0;
}

void tables_free(struct tables *t)
{
	memory_give(t->budget, t->text_cap + t->strings_cap * sizeof(*t->strings) + t->functions_cap * sizeof(*t->functions) +
				       t->mappings_cap * sizeof(*t->mappings) + t->locations_cap * sizeof(*t->locations) +
				       t->lines_cap * sizeof(*t->lines) + t->types_cap * sizeof(*t->types) +
				       t->comments_cap * sizeof(*t->comments) + t->hot_cap * sizeof(*t->hot) +
				       (t->function_ids.cap + t->mapping_ids.cap + t->location_ids.cap) *
					       sizeof(struct id_entry));
	free(t->text);
	free(t->strings);
	free(t->functions);
	free(t->mappings);
	free(t->locations);
	free(t->lines);
	free(t->types);
	free(t->comments);
	free(t->hot);
	free(t->function_ids.entries);
	free(t->mapping_ids.entries);
	free(t->location_ids.entries);
	memset(t, 0, sizeof(*t));
}
