// SPDX-License-Identifier: Apache-2.0
// Documents on their way into an index, which takes a batch or refuses it for one of them: that one is found and put aside
// while the others go in.
#ifndef BLKPROF_COLLECTOR_SOLR_BATCH_H
#define BLKPROF_COLLECTOR_SOLR_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/error.h"
#include "wire/batch.h"

struct solr_document {
	size_t offset, size; // in the batch's bytes
	char *refused;	     // why; NULL = it was not
	char node[BATCH_NODE_MAX + 1]; // whose it is
};

struct solr_batch {
	struct buf bytes;
	struct solr_document *document;
	unsigned n, cap;
	unsigned n_refused;
};

void solr_batch_clear(struct solr_batch *b);
void solr_batch_free(struct solr_batch *b);
// refused: NULL, or why it is not even to be sent. 0 or -ENOMEM.
int solr_batch_add(struct solr_batch *b, const char *node, const void *document, size_t size, const char *refused);

// Sends the JSON array of documents: 0 taken; -EINVAL refused for what is in it, with why; anything else: not now.
typedef int (*solr_send_fn)(void *context, const void *json, size_t size, unsigned n, struct error *e);

// Sends all that are not refused; those that the other side refuses are marked. -EINVAL is never returned; anything else of
// send's is: then it is to be done again, which changes nothing for those that went in.
int solr_batch_send(struct solr_batch *b, solr_send_fn send, void *context, struct error *e);

#endif
