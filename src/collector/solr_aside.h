// SPDX-License-Identifier: Apache-2.0
// The file of documents that the index does not take: a line of JSON each, with why. Bounded: when it is full it becomes
// FILE.old, in the place of the one before.
#ifndef BLKPROF_COLLECTOR_SOLR_ASIDE_H
#define BLKPROF_COLLECTOR_SOLR_ASIDE_H

#include "collector/solr_batch.h"

#define ASIDE_FILE "refused.jsonl"
#define ASIDE_BYTES_MAX (64u << 20)

// Appends the refused ones of a batch to the file in the folder; they are durable when this returns 0.
int solr_aside(const char *folder, const struct solr_batch *b, uint64_t now, struct error *e);

#endif
