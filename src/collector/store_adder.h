// SPDX-License-Identifier: Apache-2.0
// Adds up what columns hold: by stack and labels, and for the node at hand by labels. Where there is much of it, two threads
// decompress and add while the caller reads the store.
#ifndef BLKPROF_COLLECTOR_STORE_ADDER_H
#define BLKPROF_COLLECTOR_STORE_ADDER_H

#include "collector/store_columns.h"
#include "common/error.h"

#define ADDERS 2

// Sums by set of labels, of the node at hand.
struct label_total {
	int64_t ops, bytes;
	bool used;
};

struct adder {
	struct sums sums;
	struct label_total *by_labels;
	uint32_t *used;
	size_t by_labels_cap, n_used, used_cap;
};

void adder_free(struct adder *a);
int adder_row(struct adder *a, struct row_id id, const int64_t value[PPROF_TYPES]); // 0 or -ENOMEM
size_t adder_memory(const struct adder *a);
int adder_merge(struct adder *to, struct adder *from); // the sums, after which `from` has none; 0 or -ENOMEM

// Columns `id` of a span [start, end), of which [from, to) is asked for.
struct adder_part {
	int64_t id;
	uint64_t start, end, from, to;
};

// All rows, of a span that an edge cuts their share. 0, -ENOMEM.
int adder_columns(struct adder *a, const struct columns *c, const struct adder_part *p);
// v of [start, end), the part that lies in [from, to): parts of a partition add up to v.
int64_t adder_share(int64_t v, uint64_t start, uint64_t end, uint64_t from, uint64_t to);
// A blob: also -EBADMSG, with a message.
int adder_blob(struct adder *a, struct unpacker *u, const struct adder_part *p, const void *data, size_t len, struct error *e);

struct adders;

struct adders *adders_new(void); // NULL without memory; threads begin when there is work for them
void adders_free(struct adders *a);
// A copy of the blob is added when a thread comes to it. An error may be that of one before.
int adders_put(struct adders *a, const struct adder_part *p, const void *data, size_t len, struct error *e);
// Until all are added: the last ones to `own`, the others to those of adders_get.
int adders_wait(struct adders *a, struct adder *own, struct unpacker *u, struct error *e);
struct adder *adders_get(struct adders *a, unsigned i); // of thread i, after adders_wait
size_t adders_memory(struct adders *a);			 // of all threads, about

#endif
