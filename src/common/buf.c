// SPDX-License-Identifier: Apache-2.0
#include "common/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t *buf_reserve(struct buf *b, size_t len)
{
	size_t cap, want;
	uint8_t *data;

	if (b->error)
		return NULL;
	if (__builtin_add_overflow(b->len, len, &want))
		goto no_memory;
	if (want > b->cap || !b->data) {
		cap = b->cap ? b->cap : 256;
		while (cap < want)
			if (__builtin_mul_overflow(cap, 2, &cap))
				goto no_memory;
		data = realloc(b->data, cap);
		if (!data)
			goto no_memory;
		b->data = data;
		b->cap = cap;
	}
	return b->data + b->len;
no_memory:
	b->error = -ENOMEM;
	return NULL;
}

void buf_append(struct buf *b, const void *data, size_t len)
{
	uint8_t *to = buf_reserve(b, len);

	if (!to || !len)
		return;
	memcpy(to, data, len);
	b->len += len;
}

void buf_byte(struct buf *b, uint8_t byte)
{
	buf_append(b, &byte, 1);
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	int len;
	uint8_t *to;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len < 0)
		return;
	to = buf_reserve(b, (size_t)len + 1);
	if (!to)
		return;
	va_start(args, format);
	vsnprintf((char *)to, (size_t)len + 1, format, args);
	va_end(args);
	b->len += (size_t)len;
}

void buf_free(struct buf *b)
{
	if (!b)
		return;
	free(b->data);
	memset(b, 0, sizeof(*b));
}
