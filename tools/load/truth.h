// SPDX-License-Identifier: Apache-2.0
// What a load measured of its own requests, and its JSON form.
#ifndef LOAD_TRUTH_H
#define LOAD_TRUTH_H

#include <stdint.h>

#include "common/buf.h"

enum {
	LATENCY_CLASSES = 40, // 0, then 1-2-5 from 1 us
};

struct truth {
	uint64_t calls, bytes, total_ns, max_ns, min_ns;
	uint64_t retries;
	uint64_t latency[LATENCY_CLASSES]; // calls by the lower bound of their class
};

void truth_add(struct truth *t, uint64_t bytes, uint64_t ns);
void truth_merge(struct truth *to, const struct truth *from);
// `"calls": …, … "latency": {"1000": 3, …}`: members of an object that the caller opened.
void truth_print(const struct truth *t, struct buf *out);
// A JSON string with its quotes.
void truth_string(struct buf *out, const char *text);

#endif
