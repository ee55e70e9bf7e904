// SPDX-License-Identifier: Apache-2.0
// The model as a perftools.profiles.Profile message. Every message is sized, then written: nothing is moved afterwards.
#include <errno.h>
#include <stdbool.h>

#include "pprof/profile.h"
#include "pprof/wire.h"

static uint8_t *room(struct buf *out, size_t len)
{
	return buf_reserve(out, len);
}

static void done(struct buf *out, const uint8_t *p)
{
	out->len = (size_t)(p - out->data);
}

static void put_scalar(struct buf *out, unsigned field, uint64_t v)
{
	uint8_t *p = room(out, 1 + WIRE_VARINT_MAX);

	if (p)
		done(out, wire_put_scalar(p, field, v));
}

static void put_type(struct buf *out, unsigned field, struct profile_type t)
{
	size_t len = wire_scalar_size(t.type) + wire_scalar_size(t.unit);
	uint8_t *p = room(out, wire_bytes_size(len));

	if (!p)
		return;
	p = wire_put_length(p, field, len);
	p = wire_put_scalar(p, 1, t.type);
	done(out, wire_put_scalar(p, 2, t.unit));
}

static inline size_t label_size(const struct profile_label *l)
{
	return wire_scalar_size(l->key) + wire_scalar_size(l->text) + wire_scalar_size((uint64_t)l->number) +
	       wire_scalar_size(l->unit);
}

static void put_sample(struct buf *out, const struct profile *p, uint32_t id)
{
	const struct profile_sample *s = intern_key(&p->samples, id);
	const uint32_t *locations = intern_key(&p->stacks, s->stack);
	const struct profile_label *labels = intern_key(&p->label_sets, s->labels);
	size_t n = intern_len(&p->stacks, s->stack) / sizeof(*locations);
	size_t n_labels = intern_len(&p->label_sets, s->labels) / sizeof(*labels);
	const int64_t *values = p->values + (size_t)(id - 1) * p->n_types;
	size_t locations_len = 0, values_len = 0, len;
	bool any = false;
	uint8_t *o;

	for (size_t i = 0; i < p->n_types; i++) {
		any |= values[i] != 0;
		values_len += wire_varint_size((uint64_t)values[i]);
	}
	if (!any)
		return;
	for (size_t i = 0; i < n; i++)
		locations_len += wire_varint_size(locations[i]);
	len = (n ? wire_bytes_size(locations_len) : 0) + wire_bytes_size(values_len);
	for (size_t i = 0; i < n_labels; i++)
		len += wire_bytes_size(label_size(&labels[i]));
	o = room(out, wire_bytes_size(len));
	if (!o)
		return;
	o = wire_put_length(o, 2, len);
	if (n)
		o = wire_put_length(o, 1, locations_len);
	for (size_t i = 0; i < n; i++)
		o = wire_put_varint(o, locations[i]);
	o = wire_put_length(o, 2, values_len);
	for (size_t i = 0; i < p->n_types; i++)
		o = wire_put_varint(o, (uint64_t)values[i]);
	for (size_t i = 0; i < n_labels; i++) {
		o = wire_put_length(o, 3, label_size(&labels[i]));
		o = wire_put_scalar(o, 1, labels[i].key);
		o = wire_put_scalar(o, 2, labels[i].text);
		o = wire_put_scalar(o, 3, (uint64_t)labels[i].number);
		o = wire_put_scalar(o, 4, labels[i].unit);
	}
	done(out, o);
}

static void put_mapping(struct buf *out, const struct profile *p, uint32_t id)
{
	const struct profile_mapping *m = intern_key(&p->mappings, id);
	size_t len = wire_scalar_size(id) + wire_scalar_size(m->start) + wire_scalar_size(m->limit) +
		     wire_scalar_size(m->offset) + wire_scalar_size(m->file) + wire_scalar_size(m->build_id) +
		     2 * (size_t)__builtin_popcount(m->flags & 15);
	uint8_t *o = room(out, wire_bytes_size(len));

	if (!o)
		return;
	o = wire_put_length(o, 3, len);
	o = wire_put_scalar(o, 1, id);
	o = wire_put_scalar(o, 2, m->start);
	o = wire_put_scalar(o, 3, m->limit);
	o = wire_put_scalar(o, 4, m->offset);
	o = wire_put_scalar(o, 5, m->file);
	o = wire_put_scalar(o, 6, m->build_id);
	for (unsigned bit = 0; bit < 4; bit++)
		o = wire_put_scalar(o, 7 + bit, m->flags >> bit & 1);
	done(out, o);
}

static size_t line_size(const struct profile_line *l)
{
	return wire_scalar_size(l->function) + wire_scalar_size((uint64_t)l->line) + wire_scalar_size((uint64_t)l->column);
}

static void put_location(struct buf *out, const struct profile *p, uint32_t id)
{
	const struct profile_location *l = intern_key(&p->locations, id);
	size_t len = wire_scalar_size(id) + wire_scalar_size(l->mapping) + wire_scalar_size(l->address) +
		     wire_scalar_size(l->folded);
	uint8_t *o;

	for (uint32_t i = 0; i < l->n_lines; i++)
		len += wire_bytes_size(line_size(&l->lines[i]));
	o = room(out, wire_bytes_size(len));
	if (!o)
		return;
	o = wire_put_length(o, 4, len);
	o = wire_put_scalar(o, 1, id);
	o = wire_put_scalar(o, 2, l->mapping);
	o = wire_put_scalar(o, 3, l->address);
	for (uint32_t i = 0; i < l->n_lines; i++) {
		o = wire_put_length(o, 4, line_size(&l->lines[i]));
		o = wire_put_scalar(o, 1, l->lines[i].function);
		o = wire_put_scalar(o, 2, (uint64_t)l->lines[i].line);
		o = wire_put_scalar(o, 3, (uint64_t)l->lines[i].column);
	}
	done(out, wire_put_scalar(o, 5, l->folded));
}

static void put_function(struct buf *out, const struct profile *p, uint32_t id)
{
	const struct profile_function *f = intern_key(&p->functions, id);
	size_t len = wire_scalar_size(id) + wire_scalar_size(f->name) + wire_scalar_size(f->system_name) +
		     wire_scalar_size(f->file) + wire_scalar_size((uint64_t)f->start_line);
	uint8_t *o = room(out, wire_bytes_size(len));

	if (!o)
		return;
	o = wire_put_length(o, 5, len);
	o = wire_put_scalar(o, 1, id);
	o = wire_put_scalar(o, 2, f->name);
	o = wire_put_scalar(o, 3, f->system_name);
	o = wire_put_scalar(o, 4, f->file);
	done(out, wire_put_scalar(o, 5, (uint64_t)f->start_line));
}

static void put_strings(struct buf *out, const struct profile *p)
{
	for (uint32_t id = 1; id <= p->strings.n; id++) {
		uint32_t len = intern_len(&p->strings, id);
		uint8_t *o = room(out, wire_bytes_size(len));

		if (o)
			done(out, wire_put_bytes(o, 6, intern_key(&p->strings, id), len));
	}
}

static void put_comments(struct buf *out, const struct profile *p)
{
	size_t len = 0;
	uint8_t *o;

	for (size_t i = 0; i < p->n_comments; i++)
		len += wire_varint_size(p->comments[i]);
	o = len ? room(out, wire_bytes_size(len)) : NULL;
	if (!o)
		return;
	o = wire_put_length(o, 13, len);
	for (size_t i = 0; i < p->n_comments; i++)
		o = wire_put_varint(o, p->comments[i]);
	done(out, o);
}

int profile_encode(const struct profile *p, struct buf *out)
{
	for (size_t i = 0; i < p->n_types; i++)
		put_type(out, 1, p->types[i]);
	for (uint32_t id = 1; id <= p->samples.n; id++)
		put_sample(out, p, id);
	for (uint32_t id = 1; id <= p->mappings.n; id++)
		put_mapping(out, p, id);
	for (uint32_t id = 1; id <= p->locations.n; id++)
		put_location(out, p, id);
	for (uint32_t id = 1; id <= p->functions.n; id++)
		put_function(out, p, id);
	put_strings(out, p);
	put_scalar(out, 7, p->drop_frames);
	put_scalar(out, 8, p->keep_frames);
	put_scalar(out, 9, (uint64_t)p->time_ns);
	put_scalar(out, 10, (uint64_t)p->duration_ns);
	if (p->period_type.type || p->period_type.unit)
		put_type(out, 11, p->period_type);
	put_scalar(out, 12, (uint64_t)p->period);
	put_comments(out, p);
	put_scalar(out, 14, p->default_type);
	put_scalar(out, 15, p->doc_url);
	return out->error;
}
