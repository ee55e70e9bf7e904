// SPDX-License-Identifier: Apache-2.0
// Messages written field by field, also wrong ones.
#ifndef TESTS_PPROF_MESSAGE_H
#define TESTS_PPROF_MESSAGE_H

#include <string.h>

#include "pprof/decode.h"
#include "pprof/wire.h"

static inline void put_number(struct buf *b, unsigned field, uint64_t v)
{
	uint8_t bytes[2 * WIRE_VARINT_MAX], *p = wire_put_varint(wire_put_tag(bytes, field, WIRE_VARINT), v);

	buf_append(b, bytes, (size_t)(p - bytes));
}

static inline void put_bytes(struct buf *b, unsigned field, const void *data, size_t len)
{
	uint8_t bytes[2 * WIRE_VARINT_MAX], *p = wire_put_length(bytes, field, len);

	buf_append(b, bytes, (size_t)(p - bytes));
	buf_append(b, data, len);
}

static inline void put_message(struct buf *b, unsigned field, struct buf *inner)
{
	put_bytes(b, field, inner->data, inner->len);
	buf_free(inner);
}

// A profile of one type and one stack "root;leaf" with one value and the label key=value.
struct tiny {
	const char *type, *unit, *period, *period_unit, *leaf, *value_of_label;
	int64_t value, time_ns, duration_ns;
	uint64_t start; // of the mapping
};

static inline struct buf tiny_profile(const struct tiny *t)
{
	const char *const strings[] = { "", t->type, t->unit, t->period, t->leaf, "root", "/bin/app", "key", t->value_of_label, t->period_unit };
	struct buf b = { 0 }, m = { 0 }, line = { 0 };

	put_number(&m, 1, 1);
	put_number(&m, 2, 2);
	put_message(&b, 1, &m);
	put_number(&m, 1, 3);
	put_number(&m, 2, 9);
	put_message(&b, 11, &m);
	put_number(&m, 1, 1);
	put_number(&m, 2, t->start);
	put_number(&m, 3, t->start + 0x2000);
	put_number(&m, 5, 6);
	put_message(&b, 3, &m);
	for (unsigned id = 1; id <= 2; id++) {
		put_number(&m, 1, id);
		put_number(&m, 2, 3 + id);
		put_message(&b, 5, &m);
		put_number(&line, 1, id);
		put_number(&m, 1, id);
		put_number(&m, 2, 1);
		put_number(&m, 3, t->start + 16 * id);
		put_message(&m, 4, &line);
		put_message(&b, 4, &m);
	}
	put_number(&m, 1, 1);
	put_number(&m, 1, 2);
	put_number(&m, 2, (uint64_t)t->value);
	put_number(&line, 1, 7);
	put_number(&line, 2, 8);
	put_message(&m, 3, &line);
	put_message(&b, 2, &m);
	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++)
		put_bytes(&b, 6, strings[i], strlen(strings[i]));
	if (t->time_ns)
		put_number(&b, 9, (uint64_t)t->time_ns);
	if (t->duration_ns)
		put_number(&b, 10, (uint64_t)t->duration_ns);
	return b;
}

static inline struct tiny tiny_default(void)
{
	return (struct tiny){ "cpu", "nanoseconds", "cpu", "nanoseconds", "leaf", "a", 5, 1000, 100, 0x1000 };
}

static inline int add_bytes(struct pprof_reader *r, const struct buf *b, struct error *e)
{
	struct pprof_source s = { .fd = -1, .data = b->data, .len = b->len };

	return pprof_reader_add(r, &s, e);
}

static inline int add_tiny(struct pprof_reader *r, const struct tiny *t, struct error *e)
{
	struct buf b = tiny_profile(t);
	int err = add_bytes(r, &b, e);

	buf_free(&b);
	return err;
}

#endif
