// SPDX-License-Identifier: Apache-2.0
// Batches of requests in the store: their documents together, compressed, with what tells whether a query needs to look
// into them at all.
#ifndef BLKPROF_COLLECTOR_STORE_RECORDS_H
#define BLKPROF_COLLECTOR_STORE_RECORDS_H

#include "collector/store_internal.h"

struct records_packer;

struct records_packer *records_packer_new(void); // NULL without memory
void records_packer_free(struct records_packer *p);

// A batch as a row; body is the packer's until the next one.
struct packed_records {
	uint64_t first, last; // event_timestamp_dt of the earliest and the latest
	double slowest;	      // the largest total_io_duration_ms_f of a request
	double longest;	      // the largest duration_ms_f
	size_t size;	      // of the body before it was compressed; 0 = it is not
	const void *body;
	size_t body_size;
};

// 0 or -ENOMEM. Documents that cannot be read are kept as they are.
int records_pack(struct records_packer *p, const struct batch *b, struct packed_records *ret);

// Documents of a row's body, one after the other. -EBADMSG, -ENOMEM.
struct records_reader {
	struct buf own; // decompressed
	const uint8_t *at, *end;
	void *decompressor;
};

int records_open(struct records_reader *r, const void *body, size_t body_size, size_t size, struct error *e);
// 1 a document, 0 the end, -EBADMSG.
int records_next(struct records_reader *r, const void **ret, size_t *ret_size, struct error *e);
void records_free(struct records_reader *r);

// Whole nanoseconds since the epoch of a field of time, 0 when it is none.
struct document_field;
uint64_t record_time(const struct document_field *f);

#endif
