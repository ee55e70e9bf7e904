// SPDX-License-Identifier: Apache-2.0
// Batches as an agent would send them, with profiles from a pool that is made once; and messages as no agent would.
#ifndef BLKPROF_LOAD_BATCHES_H
#define BLKPROF_LOAD_BATCHES_H

#include "common/buf.h"
#include "wire/batch.h"

#define POOL 32 // different profiles of each service

struct batches {
	unsigned services, samples;
	struct buf *pool; // services * POOL gzipped profiles
	struct buf bomb;
	char (*names)[64]; // of services
};

enum bad {
	BAD_NONE,
	BAD_GARBAGE,   // no message of blkprof
	BAD_VERSION,   // of a later version
	BAD_BROKEN,    // bytes that are no batch, behind a good header
	BAD_TRUNCATED, // half a batch
	BAD_BOMB,      // a profile of 256 MiB in a quarter of one
	BAD_NODE,      // another node's name
	BAD_PARTS,     // a batch in two parts
	BAD_OVERSIZED, // more than the limit
	BADS
};

extern const char *const bad_names[BADS];

int batches_make(struct batches *b, unsigned services, unsigned samples);
void batches_free(struct batches *b);
// The node's window `sequence`, or what is wrong instead of it.
int batches_encode(struct batches *b, const char *node, const uint8_t instance[16], uint64_t sequence, uint64_t start, uint64_t end,
		   enum bad bad, struct buf *ret);

#endif
