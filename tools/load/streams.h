// SPDX-License-Identifier: Apache-2.0
// The six loads that a sampler of block I/O is judged by: which stack asks for what, when.
#ifndef LOAD_STREAMS_H
#define LOAD_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "functions.h"

enum {
	STREAM_STACKS = 5,
};

struct stack {
	const char *name;     // in the model
	const char *function; // here
	issue_fn issue;
	unsigned device; // 0 or 1
	bool writes, syncs;
	size_t size;
};

struct event {
	uint64_t due; // ns of the load's own time
	uint32_t stack;
	uint32_t order; // equal times come out as they were put in
};

struct stream;

const char *stream_name(unsigned index); // NULL behind the last
// A load that runs for `duration` ns of its own time. NULL: no such load, or no memory.
struct stream *stream_new(const char *name, uint64_t duration, uint64_t seed);
void stream_free(struct stream *s);
const struct stack *stream_stacks(const struct stream *s, unsigned *ret_count);
// Events in the order of time. False behind the last.
bool stream_next(struct stream *s, struct event *ret);

#endif
