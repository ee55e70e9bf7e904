// SPDX-License-Identifier: Apache-2.0
// A record as it travels and is kept: one flat JSON object, name -> text, number, boolean or array of texts. Read where it
// lies, without memory of its own; hostile until it was read.
#ifndef BLKPROF_REQUEST_DOCUMENT_H
#define BLKPROF_REQUEST_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define DOCUMENT_BYTES_MAX (1u << 20)
#define DOCUMENT_FIELDS_MAX 640 // a sum has four for each metric
#define DOCUMENT_NAME_MAX 128 // bytes; letters, digits, '_', '.'; no digit first
#define DOCUMENT_TEXTS_MAX 1024 // of one array

enum document_type {
	DOCUMENT_TEXT,
	DOCUMENT_NUMBER,
	DOCUMENT_BOOL,
	DOCUMENT_TEXTS,
};

struct document_field {
	const char *name; // not terminated
	const char *value; // as it stands there, with its quotes or brackets
	uint32_t name_len, value_len;
	enum document_type type;
};

struct document {
	unsigned n;
	struct document_field field[DOCUMENT_FIELDS_MAX]; // in the order of the document
};

// -EBADMSG with what is wrong: not JSON, not flat, not UTF-8, a name twice, too much of anything. What ret points to is data.
int document_read(const void *data, size_t size, struct document *ret, struct error *e);
const struct document_field *document_find(const struct document *d, const char *name); // NULL = it has none

// A text without its quotes and escapes, cut at cap - 1 bytes, terminated; the length that the whole has. Lone surrogates
// become U+FFFD. 0 for other types.
size_t document_text(const struct document_field *f, char *out, size_t cap);
// Elements of an array one after the other: *at starts as NULL; false behind the last one. ret is a text.
bool document_next_text(const struct document_field *f, const char **at, struct document_field *ret);
// A number; 0 for other types. Overflows are infinite.
double document_double(const struct document_field *f);
// -EINVAL when it is not written as a whole number, -ERANGE when it is none of 64 bits.
int document_integer(const struct document_field *f, int64_t *ret);
bool document_is_true(const struct document_field *f);

#endif
