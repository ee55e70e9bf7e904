// SPDX-License-Identifier: Apache-2.0
#include "wire/header.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

static const char magic[4] = { 'B', 'L', 'K', 'P' };

static void put16(uint8_t *to, uint16_t v)
{
	v = htole16(v);
	memcpy(to, &v, sizeof(v));
}

static uint16_t get16(const uint8_t *from)
{
	uint16_t v;

	memcpy(&v, from, sizeof(v));
	return le16toh(v);
}

void message_header_set_token(void *message, uint64_t token)
{
	token = htole64(token);
	memcpy((uint8_t *)message + 12, &token, sizeof(token));
}

void message_header_put(void *to, enum message_kind kind, uint64_t token)
{
	uint8_t *p = to;

	memcpy(p, magic, sizeof(magic));
	put16(p + 4, MESSAGE_VERSION);
	put16(p + 6, MESSAGE_MIN_VERSION);
	put16(p + 8, (uint16_t)kind);
	put16(p + 10, 0);
	message_header_set_token(p, token);
}

int message_header_get(const void *data, size_t size, struct message_header *ret, struct error *e)
{
	const uint8_t *p = data;
	struct message_header h;

	if (size < MESSAGE_HEADER_SIZE)
		return error_set(e, -EBADMSG, "%zu bytes are too short for a message of blkprof", size);
	if (memcmp(p, magic, sizeof(magic)))
		return error_set(e, -EBADMSG, "this is no message of blkprof");
	h.version = get16(p + 4);
	h.min_version = get16(p + 6);
	h.kind = get16(p + 8);
	memcpy(&h.token, p + 12, sizeof(h.token));
	h.token = le64toh(h.token);
	if (!h.version || h.min_version > h.version)
		return error_set(e, -EBADMSG, "a message of version %u for readers from %u on cannot be", h.version, h.min_version);
	*ret = h;
	if (h.min_version > MESSAGE_VERSION)
		return error_set(e, -EPROTO, "the message is for programs of version %u and later, this one reads %u: upgrade it",
				 h.min_version, MESSAGE_VERSION);
	return 0;
}
