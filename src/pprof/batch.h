// SPDX-License-Identifier: Apache-2.0
// Samples on their way into a profile, some at a time, so that the memory of all of them is fetched at once. Order and
// result are those of profile_sample one by one.
#ifndef BLKPROF_PPROF_BATCH_H
#define BLKPROF_PPROF_BATCH_H

#include "pprof/profile.h"

#define BATCH 16

struct batch_entry {
	size_t stack, labels; // where they begin
	uint32_t n, n_labels;
	uint32_t stack_hash, labels_hash, sample_hash;
	struct profile_sample key;
};

struct batch {
	struct batch_entry entries[BATCH];
	size_t n;
	uint32_t *stacks;
	struct profile_label *labels;
	int64_t *values;
	size_t n_stacks, n_labels, stacks_cap, labels_cap, values_cap;
};

// 0 or what profile_sample returns; the sample is in the profile after a batch_flush.
int batch_add(struct batch *b, struct profile *p, const uint32_t *locations, uint32_t n, const struct profile_label *labels,
	      uint32_t n_labels, const int64_t *values);
int batch_flush(struct batch *b, struct profile *p);
void sample_batch_free(struct batch *b);

#endif
