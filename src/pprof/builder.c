// SPDX-License-Identifier: Apache-2.0
#include "pprof/builder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "pprof/profile.h"

// Pyroscope refuses symbols above 65,535 bytes.
#define STRING_MAX 65535

struct pprof_builder {
	struct profile *profile;
	struct buf text;     // scratch: the sanitized string
	struct buf location; // scratch: struct profile_location with its lines
	struct buf labels;   // scratch: struct profile_label
};

static int add_string(struct pprof_builder *b, const char *text, uint32_t *ret)
{
	size_t len;

	if (!text || !*text) {
		*ret = 0;
		return 0;
	}
	len = strnlen(text, STRING_MAX);
	b->text.len = 0;
	if (!buf_reserve(&b->text, len + 1))
		return -ENOMEM;
	len = text_sanitize((char *)b->text.data, len + 1, text, len);
	return profile_string(b->profile, b->text.data, len, ret);
}

static const char *const type_names[PPROF_TYPES][2] = {
	[PPROF_IO_OPS] = { "io_ops", "count" },
	[PPROF_IO_TIME] = { "io_time", "nanoseconds" },
	[PPROF_READ_BYTES] = { "read_bytes", "bytes" },
	[PPROF_WRITE_BYTES] = { "write_bytes", "bytes" },
	[PPROF_CPU] = { "cpu", "nanoseconds" },
};

int pprof_type_parse(const char *name, enum pprof_type *ret)
{
	for (unsigned i = 0; i < PPROF_TYPES; i++) {
		if (strcmp(name, type_names[i][0]))
			continue;
		*ret = i;
		return 0;
	}
	return -EINVAL;
}

void pprof_set_default_type(struct pprof_builder *b, enum pprof_type type)
{
	b->profile->default_type = b->profile->types[type].type;
}

static int set_types(struct pprof_builder *b)
{
	struct profile_type types[PPROF_TYPES];
	struct profile *p = b->profile;

	for (unsigned i = 0; i < PPROF_TYPES; i++)
		if (add_string(b, type_names[i][0], &types[i].type) || add_string(b, type_names[i][1], &types[i].unit))
			return -ENOMEM;
	p->default_type = types[PPROF_IO_TIME].type;
	p->period = 1;
	if (add_string(b, "io", &p->period_type.type) || add_string(b, "count", &p->period_type.unit))
		return -ENOMEM;
	return profile_set_types(p, types, PPROF_TYPES);
}

struct pprof_builder *pprof_builder_new(const char *owner)
{
	struct pprof_builder *b = calloc(1, sizeof(*b));
	struct pprof_mapping_info pseudo = { .file = owner && *owner ? owner : "[node]", .has_functions = true };

	if (!b)
		return NULL;
	b->profile = profile_new(0);
	if (!b->profile || set_types(b) || pprof_add_mapping(b, &pseudo) != 1) {
		pprof_builder_free(b);
		return NULL;
	}
	return b;
}

void pprof_builder_free(struct pprof_builder *b)
{
	if (!b)
		return;
	profile_free(b->profile);
	buf_free(&b->text);
	buf_free(&b->location);
	buf_free(&b->labels);
	free(b);
}

uint32_t pprof_add_mapping(struct pprof_builder *b, const struct pprof_mapping_info *m)
{
	struct profile_mapping add = {
		.start = m->start,
		.limit = m->limit,
		.offset = m->offset,
		.flags = (m->has_functions ? MAPPING_FUNCTIONS : 0) | (m->has_filenames ? MAPPING_FILENAMES : 0) |
			 (m->has_line_numbers ? MAPPING_LINES : 0) | (m->has_inline_frames ? MAPPING_INLINES : 0),
	};
	uint32_t id;

	if (add_string(b, m->file, &add.file) || add_string(b, m->build_id, &add.build_id) ||
	    profile_mapping(b->profile, &add, &id))
		return 0;
	return id;
}

static int add_line(struct pprof_builder *b, const struct pprof_line_info *from, struct profile_line *to)
{
	struct profile_function f = { 0 };
	// Readers drop frames without a name.
	const char *name = from->name && *from->name ? from->name : "[unknown]";

	if (add_string(b, name, &f.name) || add_string(b, from->system_name, &f.system_name) ||
	    add_string(b, from->file, &f.file))
		return -ENOMEM;
	to->line = from->line;
	return profile_function(b->profile, &f, &to->function);
}

uint32_t pprof_add_location(struct pprof_builder *b, uint32_t mapping, uint64_t address, const struct pprof_line_info *lines,
			    unsigned n)
{
	static const struct pprof_line_info unknown = { .name = "[unknown]" };
	struct profile_location *l;
	uint32_t id;
	size_t size;

	if (!n) {
		lines = &unknown;
		n = 1;
	}
	size = sizeof(*l) + n * sizeof(l->lines[0]);
	b->location.len = 0;
	l = (struct profile_location *)buf_reserve(&b->location, size);
	if (!l)
		return 0;
	memset(l, 0, size);
	l->address = address;
	l->mapping = mapping;
	l->n_lines = n;
	for (unsigned i = 0; i < n; i++)
		if (add_line(b, &lines[i], &l->lines[i]))
			return 0;
	return profile_location(b->profile, l, &id) ? 0 : id;
}

uint32_t pprof_add_frame(struct pprof_builder *b, const char *name)
{
	struct pprof_line_info line = { .name = name };

	return pprof_add_location(b, 1, 0, &line, 1);
}

static int add_label(struct pprof_builder *b, const struct pprof_label_info *from, struct profile_label *to)
{
	int err = add_string(b, from->key, &to->key);

	if (!err && from->text)
		return add_string(b, from->text, &to->text);
	to->number = from->number;
	return err ? err : add_string(b, from->unit, &to->unit);
}

static int add_labels(struct pprof_builder *b, const struct pprof_label_info *labels, unsigned n, uint32_t *ret_n)
{
	struct profile_label *to;
	uint32_t used = 0;

	b->labels.len = 0;
	to = (struct profile_label *)buf_reserve(&b->labels, (n + 1) * sizeof(*to));
	if (!to)
		return -ENOMEM;
	memset(to, 0, (n + 1) * sizeof(*to));
	for (unsigned i = 0; i < n; i++) {
		if (add_label(b, &labels[i], &to[used]))
			return -ENOMEM;
		// Readers drop a number 0 without a unit and an empty text: not writing it keeps all of them equal.
		if (to[used].key && (to[used].text || to[used].number || to[used].unit))
			used++;
		else
			memset(&to[used], 0, sizeof(*to));
	}
	*ret_n = used;
	return 0;
}

int pprof_add_sample(struct pprof_builder *b, const uint32_t *locations, unsigned n, const int64_t values[PPROF_TYPES],
		     const struct pprof_label_info *labels, unsigned n_labels)
{
	uint32_t used;
	bool any = false;
	int err;

	for (unsigned i = 0; i < n; i++)
		if (!locations[i] || locations[i] > b->profile->locations.n)
			return -EINVAL;
	for (unsigned i = 0; i < PPROF_TYPES; i++)
		any |= values[i] != 0;
	if (!any)
		return 0;
	err = add_labels(b, labels, n_labels, &used);
	return err ? err : profile_sample(b->profile, locations, n, (void *)b->labels.data, used, values);
}

int pprof_add_comment(struct pprof_builder *b, const char *format, ...)
{
	va_list args;
	char *text;
	uint32_t id;
	int len, err;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		return -ENOMEM;
	err = add_string(b, text, &id);
	free(text);
	return err ? err : id ? profile_comment(b->profile, id) : 0;
}

void pprof_set_time(struct pprof_builder *b, uint64_t time_ns, uint64_t duration_ns)
{
	b->profile->time_ns = time_ns > INT64_MAX ? INT64_MAX : (int64_t)time_ns;
	b->profile->duration_ns = duration_ns > INT64_MAX ? INT64_MAX : (int64_t)duration_ns;
}

struct profile *pprof_builder_profile(struct pprof_builder *b)
{
	return b->profile;
}

int pprof_encode(struct pprof_builder *b, struct buf *out)
{
	return profile_encode(b->profile, out);
}
