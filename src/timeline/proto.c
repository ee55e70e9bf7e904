// SPDX-License-Identifier: Apache-2.0
#include "timeline/proto.h"

#include <string.h>

#include "timeline/varint.h"

enum wire {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
};

static void key(struct buf *b, unsigned field, enum wire wire)
{
	uint8_t bytes[VARINT_MAX];

	buf_append(b, bytes, varint_put(bytes, (uint64_t)field << 3 | wire));
}

static void varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[VARINT_MAX];

	buf_append(b, bytes, varint_put(bytes, v));
}

void proto_number(struct buf *b, unsigned field, uint64_t v)
{
	key(b, field, WIRE_VARINT);
	varint(b, v);
}

void proto_fixed64(struct buf *b, unsigned field, uint64_t v)
{
	uint8_t bytes[8];

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(v >> (8 * i));
	key(b, field, WIRE_FIXED64);
	buf_append(b, bytes, sizeof(bytes));
}

void proto_bytes(struct buf *b, unsigned field, const void *data, size_t len)
{
	key(b, field, WIRE_BYTES);
	varint(b, len);
	buf_append(b, data, len);
}

void proto_text(struct buf *b, unsigned field, const char *text)
{
	proto_bytes(b, field, text, strlen(text));
}

size_t proto_begin(struct buf *b, unsigned field)
{
	key(b, field, WIRE_BYTES);
	buf_byte(b, 0); // the length of most
	return b->len;
}

void proto_end(struct buf *b, size_t mark)
{
	uint8_t bytes[VARINT_MAX];
	size_t len = b->len - mark, n = varint_put(bytes, len);

	if (n > 1 && !buf_reserve(b, n - 1))
		return;
	if (b->error)
		return;
	memmove(b->data + mark + n - 1, b->data + mark, len);
	memcpy(b->data + mark - 1, bytes, n);
	b->len += n - 1;
}
