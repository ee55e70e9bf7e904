// SPDX-License-Identifier: Apache-2.0
// One file while it is read: its tables as they stand there, and where each entry went in the merged profile.
#ifndef BLKPROF_PPROF_DECODE_INTERNAL_H
#define BLKPROF_PPROF_DECODE_INTERNAL_H

#include "pprof/batch.h"
#include "pprof/decode.h"
#include "pprof/wire.h"

struct raw_string {
	size_t offset; // in `text`
	uint32_t len;
	uint32_t merged; // index + 1 in the merged profile, 0 = not there yet
};

struct raw_function {
	uint64_t id, at;
	int64_t start_line;
	uint32_t name, system_name, file, merged;
};

struct raw_mapping {
	uint64_t id, at, start, limit, offset;
	uint32_t file, build_id, flags, merged;
	uint64_t moved; // what to add to an address: the merged mapping may start elsewhere
};

struct raw_line {
	uint64_t function; // its id, after resolving its index
	int64_t line, column;
};

struct raw_location {
	uint64_t id, at, address, mapping; // mapping: id, after resolving index + 1 or 0
	uint32_t first_line, n_lines, folded, merged;
};

// What a sample needs of a location, close together.
struct hot_location {
	uint32_t merged, frames;
};

struct raw_type {
	uint32_t type, unit;
};

// From the ids of the file, which may be any 64-bit numbers, to indexes.
struct id_entry {
	uint64_t id;
	uint32_t index;
};

struct id_map {
	struct id_entry *entries; // sorted by id
	size_t n, cap;
};

struct tables {
	struct memory_budget *budget;
	uint8_t *text;
	size_t text_len, text_cap;
	struct raw_string *strings;
	size_t n_strings, strings_cap;
	struct raw_function *functions;
	size_t n_functions, functions_cap;
	struct raw_mapping *mappings;
	size_t n_mappings, mappings_cap;
	struct raw_location *locations;
	size_t n_locations, locations_cap;
	struct raw_line *lines;
	size_t n_lines, lines_cap;
	struct raw_type *types;
	size_t n_types, types_cap;
	uint32_t *comments;
	size_t n_comments, comments_cap;
	struct raw_type period_type;
	int64_t period, time_ns, duration_ns;
	uint32_t drop_frames, keep_frames, default_type, doc_url;
	struct id_map function_ids, mapping_ids, location_ids;
	struct hot_location *hot; // by index
	size_t hot_cap;
	bool dense; // the ids of the locations are 1 … n, in this order
};

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

// The next field: 1, 0 at the end, -EBADMSG. `what` names the message.
int cursor_next(struct cursor *c, const char *what, struct field *ret, struct error *e);
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

struct window {
	int64_t from, to;
};

struct pprof_reader {
	struct profile *profile;
	struct pprof_limits limits;
	bool allow_diff, reuse;
	struct tables tables; // of the file at hand
	struct stream stream;
	pprof_sample_fn *fn;
	void *context;
	uint64_t frames;
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
	uint32_t *stack;
	int64_t *values, *picked;
	struct profile_label *labels, *sorted;
	uint64_t *ranks;
	size_t column_cap, factor_cap, stack_cap, values_cap, picked_cap, labels_cap, sorted_cap, ranks_cap;
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
