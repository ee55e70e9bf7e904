// SPDX-License-Identifier: Apache-2.0
// Bodies of the dictionaries, all of varints (signed numbers zigzag), texts by id, 0 = "":
//   mapping    start, length, offset, file, build-id, flags
//   location   mapping (0 none, 1 the pseudo mapping, else id + 1), offset, folded, lines, each: name, system name, file,
//              start line, line, column
//   stack      locations, leaf first, as differences
//   labels     each: key, 0 and text, or 1 and unit and number
// store_bodies.c reads them.
#include "collector/store_resolve.h"

#include <errno.h>
#include <string.h>

#include "pprof/wire.h"

static void put(struct buf *b, uint64_t v)
{
	uint8_t *o = buf_reserve(b, WIRE_VARINT_MAX);

	if (o)
		b->len += (size_t)(wire_put_varint(o, v) - o);
}

static void put_signed(struct buf *b, int64_t v)
{
	put(b, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

// The scratch is used as a stack: what a nested entry needs lies behind what its owner has so far.
static int finish(struct store *s, enum dict_kind kind, struct hash128 h, uint32_t hour, size_t from, uint32_t *ret,
		  struct error *e)
{
	int err = s->scratch.error;

	if (err) {
		buf_free(&s->scratch);
		return error_set(e, err, "out of memory");
	}
	err = dict_put(s->dict, kind, h, hour, s->scratch.data + from, s->scratch.len - from, ret, e);
	s->scratch.len = from;
	return err;
}

static int text_id(struct store *s, const struct parsed *r, uint32_t index, uint32_t hour, uint32_t *ret, struct error *e)
{
	uint32_t len = r->t->strings[index].len;

	if (!len) {
		*ret = 0;
		return 0;
	}
	if (dict_known(s->dict, DICT_TEXT, r->texts[index], hour, ret))
		return 0;
	return dict_put(s->dict, DICT_TEXT, r->texts[index], hour, raw_text(r->t, index), len, ret, e);
}

int resolve_text(struct store *s, const char *text, size_t len, uint32_t hour, uint32_t *ret, struct error *e)
{
	struct hash128 h = hash128_start(&s->secret, DICT_TEXT);

	if (!len) {
		*ret = 0;
		return 0;
	}
	hash128_add_bytes(&h, &s->secret, text, len);
	h = hash128_end(h, &s->secret);
	return dict_known(s->dict, DICT_TEXT, h, hour, ret) ? 0 : dict_put(s->dict, DICT_TEXT, h, hour, text, len, ret, e);
}

static int mapping_id(struct store *s, const struct parsed *r, size_t mapping, uint32_t hour, uint32_t *ret, struct error *e)
{
	const struct raw_mapping *m = &r->t->mappings[mapping];
	struct hash128 h = r->mappings[mapping];
	uint32_t until = dict_until(h, hour), file, build_id;
	size_t from = s->scratch.len;
	int err;

	if (dict_known(s->dict, DICT_MAPPING, h, hour, ret))
		return 0;
	err = text_id(s, r, m->file, until, &file, e);
	if (!err)
		err = text_id(s, r, m->build_id, until, &build_id, e);
	if (err)
		return err;
	put(&s->scratch, m->start);
	put(&s->scratch, m->limit - m->start);
	put(&s->scratch, m->offset);
	put(&s->scratch, file);
	put(&s->scratch, build_id);
	put(&s->scratch, m->flags);
	return finish(s, DICT_MAPPING, h, hour, from, ret, e);
}

static int put_line(struct store *s, const struct parsed *r, const struct raw_line *l, uint32_t until, struct error *e)
{
	const struct raw_function *f = &r->t->functions[l->function];
	const uint32_t texts[] = { f->name, f->system_name, f->file };
	uint32_t id;
	int err = 0;

	for (unsigned i = 0; i < 3 && !err; i++) {
		err = text_id(s, r, texts[i], until, &id, e);
		if (!err)
			put(&s->scratch, id);
	}
	put_signed(&s->scratch, f->start_line);
	put_signed(&s->scratch, l->line);
	put_signed(&s->scratch, l->column);
	return err;
}

static int location_id(struct store *s, const struct parsed *r, uint32_t location, uint32_t hour, uint32_t *ret, struct error *e)
{
	const struct raw_location *l = &r->t->locations[location];
	struct hash128 h = r->locations[location];
	uint32_t until = dict_until(h, hour), mapping = 0;
	size_t from = s->scratch.len;
	int err = 0;

	if (dict_known(s->dict, DICT_LOCATION, h, hour, ret))
		return 0;
	if (l->mapping && l->mapping != r->pseudo)
		err = mapping_id(s, r, l->mapping - 1, until, &mapping, e);
	if (err)
		return err;
	put(&s->scratch, !l->mapping ? 0 : l->mapping == r->pseudo ? 1 : (uint64_t)mapping + 1);
	put(&s->scratch, parsed_offset(r->t, l));
	put(&s->scratch, l->folded != 0);
	put(&s->scratch, l->n_lines);
	for (uint32_t i = 0; i < l->n_lines && !err; i++)
		err = put_line(s, r, &r->t->lines[l->first_line + i], until, e);
	if (err) {
		s->scratch.len = from;
		return err;
	}
	return finish(s, DICT_LOCATION, h, hour, from, ret, e);
}

int resolve_stack_row(struct store *s, const struct parsed *r, const struct parsed_sample *sample, uint32_t hour, uint32_t *ret,
		  struct error *e)
{
	const uint32_t *l = r->frames + sample->first;
	size_t n = sample->n, from = s->scratch.len;
	struct hash128 h = sample->stack;
	uint32_t until = dict_until(h, hour), id, before = 0;
	int err = 0;

	if (dict_known(s->dict, DICT_STACK, h, hour, ret))
		return 0;
	for (size_t i = 0; i < n && !err; i++) {
		err = location_id(s, r, l[i], until, &id, e);
		if (!err)
			put_signed(&s->scratch, (int64_t)id - before);
		before = id;
	}
	if (err) {
		s->scratch.len = from;
		return err;
	}
	return finish(s, DICT_STACK, h, hour, from, ret, e);
}

int resolve_labels(struct store *s, const struct parsed *r, uint32_t labels, uint32_t hour, uint32_t *ret, struct error *e)
{
	const struct parsed_labels *set = &r->labels[labels];
	uint32_t until = dict_until(set->hash, hour), key, text;
	size_t from = s->scratch.len;
	int err = 0;

	if (dict_known(s->dict, DICT_LABELS, set->hash, hour, ret))
		return 0;
	for (uint32_t i = 0; i < set->n && !err; i++) {
		const struct profile_label *l = &r->label[set->first + i];

		err = text_id(s, r, l->key, until, &key, e);
		if (!err)
			err = text_id(s, r, l->text ? l->text : l->unit, until, &text, e);
		if (err)
			break;
		put(&s->scratch, key);
		put(&s->scratch, !l->text);
		put(&s->scratch, text);
		if (!l->text)
			put_signed(&s->scratch, l->number);
	}
	if (err) {
		s->scratch.len = from;
		return err;
	}
	return finish(s, DICT_LABELS, set->hash, hour, from, ret, e);
}

int resolve_batch_labels(struct store *s, const struct batch_label *labels, unsigned n, uint32_t hour, uint32_t *ret,
			 struct error *e)
{
	struct hash128 h = hash128_start(&s->secret, DICT_LABELS + 100);
	uint32_t until, key, text;
	int err = 0;

	*ret = 0;
	if (!n)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		hash128_add_bytes(&h, &s->secret, labels[i].name, strlen(labels[i].name));
		hash128_add_bytes(&h, &s->secret, labels[i].value, strlen(labels[i].value));
	}
	h = hash128_end(h, &s->secret);
	until = dict_until(h, hour);
	if (dict_known(s->dict, DICT_LABELS, h, hour, ret))
		return 0;
	for (unsigned i = 0; i < n && !err; i++) {
		err = resolve_text(s, labels[i].name, strlen(labels[i].name), until, &key, e);
		if (!err)
			err = resolve_text(s, labels[i].value, strlen(labels[i].value), until, &text, e);
		put(&s->scratch, key);
		put(&s->scratch, 0);
		put(&s->scratch, text);
	}
	if (err) {
		s->scratch.len = 0;
		return err;
	}
	return finish(s, DICT_LABELS, h, hour, 0, ret, e);
}
