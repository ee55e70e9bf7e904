// SPDX-License-Identifier: Apache-2.0
// A profile as it stands in its file: tables with indexes for ids, and its samples one after the other. Nothing is merged
// and nothing kept of a sample: for the reader (decode.h), and for those who only need to look at each of them once.
#ifndef BLKPROF_PPROF_RAW_H
#define BLKPROF_PPROF_RAW_H

#include "pprof/profile.h"
#include "pprof/stream.h"

struct raw_string {
	size_t offset; // in `text`; a NUL is behind it
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
	uint64_t samples_from, samples_to; // offsets between which all samples are; 0 = not known, or none
	bool dense; // the ids of the locations are 1 … n, in this order
};

// A sample by indexes of the tables: locations leaf first, texts of its labels (0 also for another string that is empty).
struct raw_sample {
	uint64_t at; // offset in the message
	uint32_t *locations;
	int64_t *values; // one a sample type
	struct profile_label *labels;
	size_t n, n_values, n_labels;
	size_t locations_cap, values_cap, labels_cap;
	uint64_t frames, frames_max; // of all samples so far, inlined calls counted
};

// What it returns other than 0 ends the reading.
typedef int raw_sample_fn(void *context, struct raw_sample *s, struct error *e);

static inline const char *raw_text(const struct tables *t, uint32_t string)
{
	return (const char *)t->text + t->strings[string].offset;
}

// A reader of one file after the other, whose memory is used again.
struct pprof_raw;

struct pprof_raw *pprof_raw_new(void);
void pprof_raw_free(struct pprof_raw *r);
size_t pprof_raw_memory(const struct pprof_raw *r);
uint64_t pprof_raw_size(const struct pprof_raw *r); // bytes of the message that was read, uncompressed
// The tables, with strings that are valid UTF-8 without control characters; valid until the next call. `memory` and `frames`
// bound what all of it may take. Errors as of pprof_reader_add, after which the next file may be opened.
int pprof_raw_open(struct pprof_raw *r, const struct pprof_source *source, uint64_t message, size_t memory, uint64_t frames,
		   const struct tables **ret, struct error *e);
int pprof_raw_samples(struct pprof_raw *r, raw_sample_fn *fn, void *context, struct error *e);

#endif
