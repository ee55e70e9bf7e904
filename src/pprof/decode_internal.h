// SPDX-License-Identifier: Apache-2.0
// One file while it is read: what its bytes say, and where each entry of its tables went in the merged profile.
#ifndef BLKPROF_PPROF_DECODE_INTERNAL_H
#define BLKPROF_PPROF_DECODE_INTERNAL_H

#include "pprof/batch.h"
#include "pprof/decode.h"
#include "pprof/raw.h"
#include "pprof/wire.h"

// A field of a message. Of WIRE_BYTES: data and len; of the others: value.
struct field {
	uint64_t at; // offset of its tag
	uint64_t value;
	const uint8_t *data;
	size_t len;
	uint32_t number;
	enum wire_type type;
};

struct cursor {
	const uint8_t *p, *end, *start;
	uint64_t at; // offset of start
};

// Empty when the field is a number: the caller says so with field_bytes.
static inline struct cursor field_cursor(const struct field *f)
{
	const uint8_t *p = f->type == WIRE_BYTES ? f->data : (const uint8_t *)"";
	size_t len = f->type == WIRE_BYTES ? f->len : 0;

	// The tag is one byte, the length as short as possible or not: the offset is right for all sane writers.
	return (struct cursor){ p, p + len, p, f->at + 1 + wire_varint_size(len) };
}

int cursor_next_any(struct cursor *c, const char *what, struct field *ret, struct error *e);

// What nearly all fields are: a tag of one byte, and a number of one or two that stands for itself or is a length. False for
// all else, with nothing moved.
static inline bool field_short(const uint8_t **p, const uint8_t *end, struct field *ret)
{
	const uint8_t *q = *p;
	uint64_t v;

	if (end - q < 3 || q[0] >= 0x80 || q[0] < 8 || q[0] & 5)
		return false;
	ret->number = q[0] >> 3;
	ret->type = (enum wire_type)(q[0] & 7);
	v = q[1];
	q += 2;
	if (v >= 0x80) {
		if (*q >= 0x80)
			return false;
		v = (v & 0x7f) | (uint64_t)*q++ << 7;
	}
	if (ret->type == WIRE_BYTES) {
		if (v > (uint64_t)(end - q))
			return false;
		ret->data = q;
		ret->len = (size_t)v;
		q += v;
	}
	ret->value = v;
	*p = q;
	return true;
}

// The next field: 1, 0 at the end, -EBADMSG. `what` names the message.
static inline int cursor_next(struct cursor *c, const char *what, struct field *ret, struct error *e)
{
	uint64_t at = c->at + (uint64_t)(c->p - c->start);

	if (!field_short(&c->p, c->end, ret))
		return cursor_next_any(c, what, ret, e);
	ret->at = at;
	return 1;
}
// The next field of the profile itself. want: bit n set = field n is needed; others are skipped and not returned.
int stream_next(struct stream *s, uint32_t want, struct field *ret, struct error *e);
int field_varint(const struct field *f, const char *what, uint64_t *ret, struct error *e);
int field_bytes(const struct field *f, const char *what, struct error *e);
// A string index, checked against 32 bits only: the string table may come later.
int field_string(const struct field *f, const char *what, uint32_t *ret, struct error *e);
int decode_memory(struct memory_budget *b, int err, struct error *e);

// Names what the bytes are when they are a known thing that is no profile; else 0.
int decode_detect(struct stream *s, struct error *e);

int tables_read(struct tables *t, struct stream *s, struct error *e);
void tables_free(struct tables *t);
void tables_clear(struct tables *t); // keeps its memory
// Index of an id, or -1.
int64_t id_map_find(const struct id_map *m, uint64_t id);
// raw_sample.c: every sample of a stream behind its tables.
int raw_samples(struct tables *t, struct stream *s, struct raw_sample *scratch, raw_sample_fn *fn, void *context, struct error *e);
void raw_sample_free(struct raw_sample *s);
// raw.c: as names are kept. The text of a string is made clean into `scratch` when it is not clean as it is.
int clean_text(const uint8_t **text, size_t *len, struct buf *scratch);

struct window {
	int64_t from, to;
};

struct pprof_reader {
	struct profile *profile;
	struct pprof_limits limits;
	bool allow_diff;
	struct tables tables; // of the file at hand
	struct stream stream;
	pprof_sample_fn *fn;
	void *context;
	size_t files;
	struct intern mapping_keys; // identities across files: id = id of the mapping
	struct intern label_keys;   // id = rank of the key: the order of first use
	struct window *windows;
	size_t n_windows, windows_cap;
	bool no_windows; // a file came without a time: durations are summed
	int64_t duration_sum;
	// Of the file at hand: which of its values goes to type i, and times what.
	uint32_t *column;
	int64_t *factor;
	// Scratch of one sample.
	struct raw_sample sample;
	int64_t *picked;
	struct profile_label *sorted;
	uint64_t *ranks;
	size_t column_cap, factor_cap, picked_cap, sorted_cap, ranks_cap;
	struct batch batch; // samples not yet in the profile
	struct buf bytes;   // a location, or a string made clean
};

// reader_map.c: from a file's tables to the merged profile. Negative errno without a message.
int map_string(struct pprof_reader *r, struct tables *t, uint32_t index, uint32_t *ret);
int map_mapping(struct pprof_reader *r, struct tables *t, size_t index, uint32_t *ret);
int map_location(struct pprof_reader *r, struct tables *t, size_t index, uint32_t *ret);
// reader_header.c
int merge_header(struct pprof_reader *r, struct tables *t, struct error *e);
// reader_samples.c
int read_samples(struct pprof_reader *r, struct tables *t, struct stream *s, struct error *e);

#endif
