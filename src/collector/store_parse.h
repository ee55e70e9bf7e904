// SPDX-License-Identifier: Apache-2.0
// A profile of a batch, read within bounds, with the hash of everything in it that a store keeps once.
#ifndef BLKPROF_COLLECTOR_STORE_PARSE_H
#define BLKPROF_COLLECTOR_STORE_PARSE_H

#include "collector/store_hash.h"
#include "pprof/decode.h"

struct parsed_labels {
	struct hash128 hash; // without pid
	uint32_t pid;
	uint32_t n, first; // in `label`
};

struct parsed {
	struct pprof_reader *reader;
	size_t hashes_cap, labels_cap, label_cap;
	const struct profile *p;
	size_t memory;
	uint32_t pseudo; // id of the mapping that owns synthetic frames, 0 = none
	// By id - 1; texts by index.
	struct hash128 *texts, *mappings, *locations, *stacks;
	struct parsed_labels *labels;
	struct profile_label *label; // in the store's order, without pid
};

// Into one that is all zeros, or was made ready by parsed_reuse. -EBADMSG, -EFBIG, -E2BIG, -EINVAL (not of an agent of ours) with a message; -ENOMEM.
int parsed_read(struct parsed *r, const struct hash_secret *secret, const void *data, size_t size, size_t memory,
		struct error *e);
void parsed_free(struct parsed *r);
// Makes it ready for another parsed_read; what a large profile took is given back.
void parsed_reuse(struct parsed *r);

// What is kept of an address: it counts from the start of its mapping; 0 where the mapping does not say where it lies.
uint64_t parsed_offset(const struct profile *p, const struct profile_location *l);

#endif
