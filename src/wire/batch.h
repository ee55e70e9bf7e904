// SPDX-License-Identifier: Apache-2.0
// A batch: what travels from an agent to a collector and lies in the spool in between. One node's window, with a gzipped
// pprof profile for each service in it; or a gap: batches that the spool had to drop; or summaries of requests.
#ifndef BLKPROF_WIRE_BATCH_H
#define BLKPROF_WIRE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

enum batch_kind {
	BATCH_WINDOW = 1,
	BATCH_GAP = 2,
	BATCH_REQUESTS = 3,
};

#define BATCH_NODE_MAX 64	    // bytes of a node's name; letters, digits, '.', '-', '_'
#define BATCH_SERVICE_MAX 255
#define BATCH_BYTES_MAX (16u << 20) // encoded
#define BATCH_PROFILES_MAX 4096
#define BATCH_LABELS_MAX 32
#define BATCH_LABEL_MAX 255   // bytes of a label's name or value
#define BATCH_REQUESTS_MAX 65536

struct batch_profile {
	const char *service;
	const void *data; // gzipped pprof
	size_t size;
};

struct batch_label {
	const char *name, *value;
};

// (node, instance, sequence) is its identity. instance is random for each start of an agent, sequence counts from 1.
struct batch {
	enum batch_kind kind;
	const char *node;
	uint8_t instance[16];
	uint64_t sequence;
	uint64_t start, end; // of the window, ns since the epoch
	unsigned n_profiles, n_labels;
	const struct batch_profile *profiles;
	const struct batch_label *labels;
	// A gap: batches gap_first to sequence of this instance, both included, were dropped before they were sent (or
	// acknowledged), gap_bytes of them, covering [start, end). The record takes the number of the last of them.
	uint64_t gap_first, gap_bytes;
	// Requests: one JSON document a record.
	unsigned n_requests;
	const struct batch_profile *requests; // service unused
};

// Appends the header and the message, for a file or for the wire. Equal batches give equal bytes. -EINVAL for what
// batch_decode would refuse (batch_check says why), -EFBIG above BATCH_BYTES_MAX, -ENOMEM.
int batch_encode(const struct batch *b, struct buf *ret);
int batch_check(const struct batch *b, struct error *e);
bool batch_node_valid(const char *node);
// Who it is, of an encoded batch and without decoding the rest.
int batch_identity(const void *data, size_t size, uint8_t ret_instance[16], uint64_t *ret_sequence, struct error *e);
// A decoded batch points into memory of its own. -EBADMSG with what is wrong: hostile until validated (sizes, names, times
// in order, ids, UTF-8); unknown fields of a newer agent are let be; -EPROTO for a version that this program cannot read.
int batch_decode(const void *data, size_t size, struct batch **ret, struct error *e);
// The same, but the data of profiles and requests stays in the message, which must outlive the batch.
int batch_decode_borrow(const void *data, size_t size, struct batch **ret, struct error *e);
void batch_free(struct batch *b); // of both

#endif
