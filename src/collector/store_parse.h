// SPDX-License-Identifier: Apache-2.0
// A profile of a batch, read within bounds, with the hash of everything in it that a store keeps once.
#ifndef BLKPROF_COLLECTOR_STORE_PARSE_H
#define BLKPROF_COLLECTOR_STORE_PARSE_H

#include "collector/store_hash.h"
#include "pprof/builder.h"
#include "pprof/raw.h"

struct parsed_sample {
	struct hash128 stack;
	size_t first; // of its locations, in `frames`
	uint32_t n;
	uint32_t labels; // index of its set
	int64_t value[PPROF_TYPES];
};

struct parsed_labels {
	struct hash128 hash; // without pid
	uint32_t pid;
	uint32_t n, first; // in `label`
};

struct parsed {
	struct pprof_raw *raw;
	const struct tables *t;
	size_t memory;
	uint64_t inflated; // bytes of its message
	uint32_t pseudo; // index + 1 of the mapping that owns synthetic frames, 0 = none
	// By index in the tables.
	struct hash128 *texts, *mappings, *locations;
	struct parsed_sample *samples;
	uint32_t *frames; // locations of all stacks
	struct intern sets; // labels as they stand in a sample: id - 1 is the index in `labels`
	struct parsed_labels *labels;
	struct profile_label *label; // in the store's order, without pid
	size_t n_samples, n_frames, n_label;
	size_t hashes_cap, samples_cap, frames_cap, labels_cap, label_cap;
	struct memory_budget budget; // of the samples
	const struct hash_secret *secret;
};

// Into one that is all zeros, or was made ready by parsed_reuse. -EFBIG (more than `message` bytes when decompressed); -EBADMSG,
// -E2BIG, -EINVAL (not of an agent of ours) with a message; -ENOMEM.
int parsed_read(struct parsed *r, const struct hash_secret *secret, const void *data, size_t size, uint64_t message, size_t memory,
		struct error *e);
void parsed_free(struct parsed *r);
// After its bytes were moved.
void parsed_moved(struct parsed *r);
// Makes it ready for another parsed_read; what a large profile took is given back.
void parsed_reuse(struct parsed *r);

// What is kept of an address: it counts from the start of its mapping; 0 where the mapping does not say where it lies.
uint64_t parsed_offset(const struct tables *t, const struct raw_location *l);

#endif
