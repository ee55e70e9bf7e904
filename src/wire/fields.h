// SPDX-License-Identifier: Apache-2.0
// Field by field through one protobuf message, without recursion and without memory.
#ifndef BLKPROF_WIRE_FIELDS_H
#define BLKPROF_WIRE_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "pprof/wire.h"

struct fields {
	const uint8_t *at, *end;
};

struct field {
	unsigned number;
	enum wire_type type;
	uint64_t value;	     // WIRE_VARINT
	const uint8_t *data; // WIRE_BYTES
	size_t size;
};

// 1: a field; 0: the end; -EBADMSG: broken.
int fields_next(struct fields *f, struct field *ret, struct error *e);
// -EBADMSG when a field that we know has another type.
int field_expect(const struct field *f, enum wire_type type, const char *name, struct error *e);

#endif
