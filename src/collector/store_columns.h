// SPDX-License-Identifier: Apache-2.0
// The numbers of a service in a window (or a roll-up of windows) as one blob: samples sorted by stack and labels, one
// column a number, varints of differences; compressed where that makes it smaller. And the table that adds samples up.
#ifndef BLKPROF_COLLECTOR_STORE_COLUMNS_H
#define BLKPROF_COLLECTOR_STORE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "pprof/builder.h"

#define COLUMNS_RAW_MAX (64u << 20) // bytes of a blob, decompressed

// Ids of the store's dictionaries; pid 0 = none.
struct row_id {
	uint32_t stack, labels, pid;
};

struct sum {
	struct row_id id;
	int64_t value[PPROF_TYPES];
};

// Samples with the same id are one; values saturate.
struct sums {
	struct sum *sum;
	size_t n, cap;
	uint32_t *slots; // index + 1, 0 = free; a power of two of them
	size_t slots_cap;
};

void sums_free(struct sums *s);
void sums_clear(struct sums *s); // keeps its memory
int sums_add(struct sums *s, struct row_id id, const int64_t value[PPROF_TYPES]); // 0 or -ENOMEM
// Asks for the memory that sums_add(id) will need, some samples before it: the table is larger than the caches.
void sums_ask_slot(const struct sums *s, struct row_id id);
void sums_ask_sum(const struct sums *s, struct row_id id); // some samples behind sums_ask_slot
void sums_sort(struct sums *s); // by id; add nothing behind it before sums_clear

struct packer;
struct packer *packer_new(void);
void packer_free(struct packer *p);
// Sorted sums to a blob in the packer's memory, valid until the next call. 0, -ENOMEM, -EFBIG.
int columns_pack(struct packer *p, const struct sums *s, const void **ret, size_t *ret_len);

struct columns {
	size_t n;
	const uint32_t *stack, *labels, *pid; // pid NULL: none
	const int64_t *value[PPROF_TYPES];    // NULL: all 0
};

struct unpacker;
struct unpacker *unpacker_new(void);
void unpacker_free(struct unpacker *u);
// The columns point into the unpacker. -EBADMSG: damaged; -ENOMEM.
int columns_unpack(struct unpacker *u, const void *data, size_t len, struct columns *ret);

#endif
