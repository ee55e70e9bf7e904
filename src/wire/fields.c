// SPDX-License-Identifier: Apache-2.0
#include "wire/fields.h"

#include <errno.h>

static int varint(struct fields *f, uint64_t *ret, struct error *e)
{
	switch (wire_get_varint(&f->at, f->end, ret)) {
	case WIRE_OK:
		return 0;
	case WIRE_SHORT:
		return error_set(e, -EBADMSG, "the message ends inside a number");
	default:
		return error_set(e, -EBADMSG, "a number has more than 64 bits");
	}
}

static int skip(struct fields *f, size_t n, struct error *e)
{
	if ((size_t)(f->end - f->at) < n)
		return error_set(e, -EBADMSG, "the message ends inside a field");
	f->at += n;
	return 0;
}

int fields_next(struct fields *f, struct field *ret, struct error *e)
{
	struct field field = { 0 };
	uint64_t n;
	int err;

	if (f->at == f->end)
		return 0;
	err = varint(f, &n, e);
	if (err)
		return err;
	if (!(n >> 3) || n >> 3 > 0x1fffffff)
		return error_set(e, -EBADMSG, "there is no field %llu", (unsigned long long)(n >> 3));
	field.number = (unsigned)(n >> 3);
	field.type = (enum wire_type)(n & 7);
	switch (field.type) {
	case WIRE_VARINT:
		err = varint(f, &field.value, e);
		break;
	case WIRE_FIXED64:
		err = skip(f, 8, e);
		break;
	case WIRE_FIXED32:
		err = skip(f, 4, e);
		break;
	case WIRE_BYTES:
		err = varint(f, &n, e);
		if (err)
			break;
		if (n > (uint64_t)(f->end - f->at))
			return error_set(e, -EBADMSG, "field %u is longer than its message", field.number);
		field.data = f->at;
		field.size = (size_t)n;
		f->at += n;
		break;
	default:
		return error_set(e, -EBADMSG, "field %u has a type that is not allowed (%u)", field.number, (unsigned)(field.type));
	}
	if (err)
		return err;
	*ret = field;
	return 1;
}

int field_expect(const struct field *f, enum wire_type type, const char *name, struct error *e)
{
	return f->type == type ? 0 : error_set(e, -EBADMSG, "%s has the wrong type (%u)", name, (unsigned)f->type);
}
