// SPDX-License-Identifier: Apache-2.0
// What a roll-up is made of: which batches, and when they were.
#ifndef BLKPROF_COLLECTOR_STORE_SOURCES_H
#define BLKPROF_COLLECTOR_STORE_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

// Batches [first, last] of an agent.
struct source {
	int64_t agent;
	uint64_t first, last;
};

struct interval {
	uint64_t start, end;
};

struct sources {
	struct source *source;
	size_t n, cap;
};

struct intervals {
	struct interval *v;
	size_t n, cap;
};

void sources_free(struct sources *s);
int sources_append(struct sources *s, struct source what); // 0 or -ENOMEM
void intervals_free(struct intervals *s);
int intervals_add(struct intervals *s, uint64_t start, uint64_t end); // 0 or -ENOMEM
void intervals_unite(struct intervals *s);			     // sorted and disjoint
uint64_t intervals_length(struct intervals *s);			     // of the union

int sources_pack(const struct sources *s, struct intervals *when, struct buf *out);
// Adds to both. -EBADMSG, -ENOMEM.
int sources_unpack(const void *data, size_t len, struct sources *s, struct intervals *when);

#endif
