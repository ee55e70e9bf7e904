// SPDX-License-Identifier: Apache-2.0
// How far the requests of a store are in another index: a place that survives restarts. Each call is short and may come
// from any thread.
#ifndef BLKPROF_COLLECTOR_STORE_INDEXING_H
#define BLKPROF_COLLECTOR_STORE_INDEXING_H

#include <stdbool.h>
#include <stdint.h>

#include "collector/store.h"

// `record` documents of `batch` are done, and all of the batches before it.
struct indexing_place {
	int64_t batch;
	uint64_t record;
};

struct indexing_counts {
	uint64_t dropped; // documents that retention took before they were indexed
	uint64_t aside;	  // documents that the index does not take
	uint64_t waiting; // documents behind the place
};

// active: from now on what goes before it was indexed is counted.
int store_indexing_start(struct store *s, bool active, struct indexing_place *ret, struct error *e);
// A trace id of this store's own, 32 hexadecimal digits, the same over restarts: by it a request that indexes records is
// known when it comes back as a record.
#define INDEXING_MARK_SIZE 33
int store_indexing_mark(struct store *s, char ret[INDEXING_MARK_SIZE], struct error *e);
// aside: documents since the last call that were put aside. Nothing happens where the place is no longer `from`: it was set
// back meanwhile.
int store_indexing_advance(struct store *s, const struct indexing_place *from, const struct indexing_place *to, uint64_t aside,
			   struct error *e);
// Sets the place back, never forward, so that requests that began at `from` or later are indexed again; also beside a
// collector that runs on the store, which goes on from there. Requests that are now behind the place.
int store_indexing_again(const char *directory, uint64_t from, uint64_t *ret_waiting, struct error *e);
int store_indexing_counts(struct store *s, struct indexing_counts *ret, struct error *e);

// Documents behind a place, in order; the place moves behind each before fn is called with it. fn returns 0, or 1 to end
// there (the place stays behind that one). The node is whose batch it came in.
typedef int (*indexing_fn)(void *context, const char *node, const void *document, size_t size);

struct indexing_reader;

int indexing_reader_new(struct store *s, struct indexing_reader **ret, struct error *e);
void indexing_reader_free(struct indexing_reader *r);
int indexing_place(struct indexing_reader *r, struct indexing_place *ret, struct error *e);
int indexing_read(struct indexing_reader *r, struct indexing_place *place, indexing_fn fn, void *context, struct error *e);

#endif
