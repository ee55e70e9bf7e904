// SPDX-License-Identifier: Apache-2.0
// What `blkprof top` shows: the heaviest functions and stacks of a profile, or its totals by a label. Functions have the
// values and the order of `go tool pprof -top`: flat is what a function has as a leaf, cumulative what all stacks have
// that it is in, once per stack; inlined calls are functions of their own.
#ifndef BLKPROF_PPROF_TOP_H
#define BLKPROF_PPROF_TOP_H

#include "pprof/decode.h"

struct top;

struct top_row {
	const char *name; // owned by the top
	int64_t flat, cum;
	int64_t flat_events, cum_events; // of the first sample type when it counts; else 0
	bool inlined, called;		 // seen as an inlined call, and otherwise
};

struct top_stack {
	const uint32_t *nodes; // leaf first; names: top_node_name
	uint32_t n;
	int64_t value, events;
};

struct top_label {
	const char *name;
	char *made; // the name when it was made of a number: the caller frees it
	int64_t value, events;
};

enum top_what {
	TOP_FUNCTIONS = 1,
	TOP_STACKS = 2,
	TOP_LABEL = 4,
};

struct top_options {
	unsigned what;	   // enum top_what
	const char *type;  // sample type, NULL = the profile's default
	const char *label; // for TOP_LABEL
};

struct top *top_new(const struct top_options *options);
void top_free(struct top *t);
// Reads one file by streaming it, several by merging them first. Diff profiles are read too.
int top_read(struct top *t, const struct pprof_source *sources, const char *const *names, size_t n,
	     const struct pprof_limits *limits, struct error *e);

const struct profile *top_profile(const struct top *t);
size_t top_type(const struct top *t);
// Sum of the absolute values; of the base only when it is a diff profile.
int64_t top_total(const struct top *t);
int64_t top_events(const struct top *t);
bool top_has_events(const struct top *t);
int64_t top_type_total(const struct top *t, size_t type);
uint64_t top_samples(const struct top *t);
bool top_is_diff(const struct top *t);

// Sorted, heaviest first. 0, -ENOMEM or -E2BIG; the caller frees *ret.
int top_functions(struct top *t, struct top_row **ret, size_t *ret_n);
int top_stacks(struct top *t, struct top_stack **ret, size_t *ret_n);
int top_labels(struct top *t, struct top_label **ret, size_t *ret_n);
const char *top_node_name(const struct top *t, uint32_t node);

// Everything that was asked for, as text; `rows` of each, 0 = all.
int top_print(struct top *t, unsigned rows, struct buf *out, struct error *e);

#endif
