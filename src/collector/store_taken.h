// SPDX-License-Identifier: Apache-2.0
// A set of batches, as ranges that are joined with their neighbours. A tree: numbers that come in an order chosen by an agent
// cost no more than others.
#ifndef BLKPROF_COLLECTOR_STORE_TAKEN_H
#define BLKPROF_COLLECTOR_STORE_TAKEN_H

#include "collector/store_sources.h"

struct taken_node;

// All zeros is an empty one.
struct taken {
	struct taken_node *node; // node[0] is none
	size_t n, cap;
	uint32_t root, unused; // a list of nodes to be used again
	uint64_t random;
};

void taken_free(struct taken *t);
void taken_clear(struct taken *t); // keeps its memory
int taken_add(struct taken *t, struct source what);		  // 0 or -ENOMEM
bool taken_has(const struct taken *t, struct source what);	  // all of it
bool taken_meets(const struct taken *t, struct source what);	  // some of it
// The range that has batch `at` of an agent, or the next one behind it; NULL = there is none. Until the next taken_add.
const struct source *taken_from(const struct taken *t, int64_t agent, uint64_t at);
int taken_list(const struct taken *t, struct sources *ret); // appends all, in order; 0 or -ENOMEM

#endif
