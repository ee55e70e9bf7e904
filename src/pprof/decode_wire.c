// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "common/text.h"
#include "pprof/decode_internal.h"

// A field of the profile that must be looked at whole is not larger than this.
#define FIELD_MAX ((uint64_t)64 << 20)

int decode_memory(struct memory_budget *b, int err, struct error *e)
{
	char limit[32];

	if (err == -E2BIG)
		return error_set(e, err, "it needs more than the limit of %s of memory",
				 text_bytes(limit, sizeof(limit), (double)b->limit));
	if (err == -EOVERFLOW)
		return error_set(e, err, "it has more different entries than fit in 32 bits");
	return error_set(e, err, "out of memory");
}

static int bad_varint(enum wire_result r, uint64_t at, const char *what, struct error *e)
{
	return error_set(e, -EBADMSG, "byte %llu: a number in the %s %s", (unsigned long long)at, what,
			 r == WIRE_SHORT ? "is cut off" : "has more than 64 bits");
}

static int check_tag(uint64_t tag, uint64_t at, const char *what, struct field *f, struct error *e)
{
	if (tag >> 32 || !(tag >> 3))
		return error_set(e, -EBADMSG, "byte %llu: %llu is not a field number, in the %s", (unsigned long long)at,
				 (unsigned long long)(tag >> 3), what);
	f->number = (uint32_t)(tag >> 3);
	f->type = (enum wire_type)(tag & 7);
	f->at = at;
	if (f->type == WIRE_GROUP || f->type == WIRE_GROUP_END || f->type > WIRE_FIXED32)
		return error_set(e, -EBADMSG, "byte %llu: field %u of the %s has wire type %u, which no profile uses",
				 (unsigned long long)at, f->number, what, (unsigned)f->type);
	return 0;
}

static uint64_t fixed(const uint8_t *p, size_t len)
{
	uint64_t v = 0;

	while (len--)
		v = v << 8 | p[len];
	return v;
}

int cursor_next_any(struct cursor *c, const char *what, struct field *ret, struct error *e)
{
	uint64_t at = c->at + (uint64_t)(c->p - c->start), tag;
	enum wire_result r;
	size_t size;
	int err;

	if (c->p == c->end)
		return 0;
	r = wire_get_varint(&c->p, c->end, &tag);
	if (r)
		return bad_varint(r, at, what, e);
	err = check_tag(tag, at, what, ret, e);
	if (err)
		return err;
	if (ret->type == WIRE_VARINT || ret->type == WIRE_BYTES) {
		r = wire_get_varint(&c->p, c->end, &ret->value);
		if (r)
			return bad_varint(r, at, what, e);
	}
	if (ret->type == WIRE_VARINT)
		return 1;
	size = ret->type == WIRE_FIXED64 ? 8 : ret->type == WIRE_FIXED32 ? 4 : 0;
	if ((ret->type == WIRE_BYTES ? ret->value : size) > (uint64_t)(c->end - c->p))
		return error_set(e, -EBADMSG, "byte %llu: field %u reaches past the end of the %s", (unsigned long long)at,
				 ret->number, what);
	if (ret->type == WIRE_BYTES) {
		ret->data = c->p;
		ret->len = (size_t)ret->value;
		c->p += ret->len;
	} else {
		ret->value = fixed(c->p, size);
		c->p += size;
	}
	return 1;
}

// The number at s->p, which must be in the window as far as there is anything.
static int stream_varint(struct stream *s, uint64_t at, uint64_t *ret, struct error *e)
{
	enum wire_result r = wire_get_varint(&s->p, s->end, ret);

	return r ? bad_varint(r, at, "profile", e) : 0;
}

static int stream_data(struct stream *s, bool wanted, struct field *f, struct error *e)
{
	uint64_t size = f->type == WIRE_BYTES ? f->value : f->type == WIRE_FIXED64 ? 8 : 4;
	int err;

	f->len = 0;
	if (!wanted)
		return stream_skip(s, size, e);
	if (size > FIELD_MAX)
		return error_set(e, -EFBIG, "byte %llu: field %u has %llu bytes, more than the limit of 64 MiB for one",
				 (unsigned long long)f->at, f->number, (unsigned long long)size);
	err = stream_need(s, (size_t)size, e);
	if (err)
		return err;
	if (size > (uint64_t)(s->end - s->p))
		return error_set(e, -EBADMSG, "byte %llu: field %u has %llu bytes and the input ends after %llu (cut off?)",
				 (unsigned long long)f->at, f->number, (unsigned long long)size,
				 (unsigned long long)(s->end - s->p));
	f->data = s->p;
	f->len = (size_t)size;
	s->p += size;
	return 0;
}

int stream_next(struct stream *s, uint32_t want, struct field *ret, struct error *e)
{
	bool wanted;
	uint64_t at, tag = 0;
	int err;

	for (;;) {
		at = stream_offset(s);
		if (field_short(&s->p, s->end, ret)) {
			ret->at = at;
			if (ret->number < 32 && want >> ret->number & 1)
				return 1;
			continue;
		}
		err = stream_need(s, 2 * WIRE_VARINT_MAX, e);
		if (err)
			return err;
		if (s->p == s->end)
			return 0;
		at = stream_offset(s);
		err = stream_varint(s, at, &tag, e);
		if (!err)
			err = check_tag(tag, at, "profile", ret, e);
		if (!err && (ret->type == WIRE_VARINT || ret->type == WIRE_BYTES))
			err = stream_varint(s, at, &ret->value, e);
		if (err)
			return err;
		wanted = ret->number < 32 && want >> ret->number & 1;
		if (ret->type != WIRE_VARINT) {
			err = stream_data(s, wanted, ret, e);
			if (err)
				return err;
		}
		if (wanted)
			return 1;
	}
}

int field_varint(const struct field *f, const char *what, uint64_t *ret, struct error *e)
{
	if (f->type != WIRE_VARINT)
		return error_set(e, -EBADMSG, "byte %llu: the %s is not a number (wire type %u)", (unsigned long long)f->at, what,
				 (unsigned)f->type);
	*ret = f->value;
	return 0;
}

int field_bytes(const struct field *f, const char *what, struct error *e)
{
	if (f->type != WIRE_BYTES)
		return error_set(e, -EBADMSG, "byte %llu: the %s is not a message or text (wire type %u)",
				 (unsigned long long)f->at, what, (unsigned)f->type);
	return 0;
}

int field_string(const struct field *f, const char *what, uint32_t *ret, struct error *e)
{
	uint64_t v = 0;
	int err = field_varint(f, what, &v, e);

	if (err)
		return err;
	if (v >= UINT32_MAX)
		return error_set(e, -EBADMSG, "byte %llu: string index %lld of the %s is out of range", (unsigned long long)f->at,
				 (long long)v, what);
	*ret = (uint32_t)v;
	return 0;
}
