// SPDX-License-Identifier: Apache-2.0
// The model of a profile: interned tables with dense ids, filled by the builder or by merging decoded files, read by the
// encoder and the reports. Samples are (stack, label set) pairs with one value for each sample type.
#ifndef BLKPROF_PPROF_PROFILE_H
#define BLKPROF_PPROF_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "pprof/intern.h"

enum profile_mapping_flags {
	MAPPING_FUNCTIONS = 1 << 0,
	MAPPING_FILENAMES = 1 << 1,
	MAPPING_LINES = 1 << 2,
	MAPPING_INLINES = 1 << 3,
};

// Strings are indexes into the string table: 0 is "". Other ids start at 1, 0 = none.
struct profile_type {
	uint32_t type, unit;
};

struct profile_mapping {
	uint64_t start, limit, offset;
	uint32_t file, build_id;
	uint32_t flags, pad;
};

struct profile_function {
	uint32_t name, system_name, file, pad;
	int64_t start_line;
};

struct profile_line {
	uint32_t function, pad;
	int64_t line, column;
};

struct profile_location {
	uint64_t address;
	uint32_t mapping, folded;
	uint32_t n_lines, pad;
	struct profile_line lines[]; // innermost inlined call first
};

struct profile_label {
	uint32_t key, text; // text 0 = numeric
	int64_t number;
	uint32_t unit, pad;
};

struct profile_sample {
	uint32_t stack, labels; // ids of `stacks` and `label_sets`
};

struct profile {
	struct memory_budget budget;
	struct intern strings;	  // id = index + 1
	struct intern mappings;	  // struct profile_mapping
	struct intern functions;  // struct profile_function
	struct intern locations;  // struct profile_location
	struct intern stacks;	  // uint32_t location ids, leaf first
	struct intern label_sets; // struct profile_label
	struct intern samples;	  // struct profile_sample
	int64_t *values;	  // n_types of them for each sample
	size_t values_cap;
	struct profile_type *types;
	size_t n_types;
	struct profile_type period_type;
	int64_t period, time_ns, duration_ns;
	uint32_t drop_frames, keep_frames, default_type, doc_url;
	uint32_t *comments;
	size_t n_comments, comments_cap;
};

// memory_limit bounds everything in it, 0 = unbounded. NULL without memory.
struct profile *profile_new(size_t memory_limit);
void profile_free(struct profile *p);
// Each: 0, -ENOMEM, -E2BIG (more than the limit) or -EOVERFLOW.
int profile_string(struct profile *p, const void *text, size_t len, uint32_t *ret);
int profile_mapping(struct profile *p, const struct profile_mapping *m, uint32_t *ret);
int profile_function(struct profile *p, const struct profile_function *f, uint32_t *ret);
int profile_location(struct profile *p, const struct profile_location *l, uint32_t *ret);
// Adds the values (saturating) to the sample with this stack and these labels.
int profile_sample(struct profile *p, const uint32_t *locations, uint32_t n, const struct profile_label *labels,
		   uint32_t n_labels, const int64_t *values);
int profile_add_values(struct profile *p, struct profile_sample key, const int64_t *values);
int profile_comment(struct profile *p, uint32_t text);
int profile_set_types(struct profile *p, const struct profile_type *types, size_t n);

static inline const char *profile_text(const struct profile *p, uint32_t string)
{
	return intern_key(&p->strings, string + 1);
}

static inline uint32_t profile_text_len(const struct profile *p, uint32_t string)
{
	return intern_len(&p->strings, string + 1);
}

static inline int64_t saturating_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

// The protobuf message, uncompressed; samples whose values are all 0 are left out. 0 or -ENOMEM.
int profile_encode(const struct profile *p, struct buf *out);

#endif
