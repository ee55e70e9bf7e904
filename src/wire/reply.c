// SPDX-License-Identifier: Apache-2.0
#include "wire/reply.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "wire/fields.h"
#include "wire/header.h"

enum reply_field {
	REPLY_FIELD_STATUS = 1,
	REPLY_FIELD_TEXT = 2,
};

#define REPLY_BYTES_MAX 4096

int reply_encode(const struct reply *r, struct buf *to)
{
	size_t len = strnlen(r->text, REPLY_TEXT_MAX);
	uint8_t *start = buf_reserve(to, MESSAGE_HEADER_SIZE + wire_scalar_size(r->status) + wire_bytes_size(len)), *p = start;

	if (!p)
		return to->error;
	message_header_put(p, MESSAGE_REPLY, r->token);
	p = wire_put_scalar(p + MESSAGE_HEADER_SIZE, REPLY_FIELD_STATUS, r->status);
	if (len)
		p = wire_put_bytes(p, REPLY_FIELD_TEXT, r->text, len);
	to->len += (size_t)(p - start);
	return 0;
}

static int get_field(const struct field *f, struct reply *r, struct error *e)
{
	int err;

	if (f->number == REPLY_FIELD_STATUS) {
		err = field_expect(f, WIRE_VARINT, "the status", e);
		if (err)
			return err;
		r->status = f->value <= REPLY_BUSY ? (enum reply_status)f->value : REPLY_BUSY;
	} else if (f->number == REPLY_FIELD_TEXT) {
		err = field_expect(f, WIRE_BYTES, "the text", e);
		if (err)
			return err;
		text_sanitize(r->text, sizeof(r->text), (const char *)f->data, f->size);
	}
	return 0;
}

int reply_decode(const void *data, size_t size, struct reply *ret, struct error *e)
{
	struct reply r = { 0 };
	struct message_header h;
	struct fields in;
	struct field f;
	int more, err;

	if (size > REPLY_BYTES_MAX)
		return error_set(e, -EBADMSG, "an answer of %zu bytes is larger than the limit of %u", size, REPLY_BYTES_MAX);
	err = message_header_get(data, size, &h, e);
	if (err)
		return err;
	if (h.kind != MESSAGE_REPLY)
		return error_set(e, -EBADMSG, "the message is of kind %u, not an answer", h.kind);
	r.token = h.token;
	in = (struct fields){ (const uint8_t *)data + MESSAGE_HEADER_SIZE, (const uint8_t *)data + size };
	while ((more = fields_next(&in, &f, e)) > 0) {
		err = get_field(&f, &r, e);
		if (err)
			return err;
	}
	if (more)
		return more;
	if (!r.status)
		return error_set(e, -EBADMSG, "the answer has no status");
	*ret = r;
	return 0;
}
