// SPDX-License-Identifier: Apache-2.0
// One file of the spool: a header of fixed size with a checksum of its own, and the encoded batch with another. Its name
// says the order in which it was written and whose it is, so that even a damaged file is a known loss.
#ifndef BLKPROF_AGENT_SPOOL_FILE_H
#define BLKPROF_AGENT_SPOOL_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "wire/batch.h"

#define SPOOL_HEADER 192
#define SPOOL_NAME_MAX 80
#define SPOOL_TEMPORARY ".tmp" // behind the name while it is written

struct spool_file {
	uint8_t instance[16];
	uint64_t sequence;
	uint64_t start, end;
	uint64_t gap_first, gap_bytes; // of a gap
	uint64_t size;		       // of the encoded batch, at most BATCH_BYTES_MAX
	uint32_t kind;		       // enum batch_kind
	char node[BATCH_NODE_MAX + 1];
};

void spool_header_encode(const struct spool_file *f, const void *payload, uint8_t out[SPOOL_HEADER]);
// The header alone. -EBADMSG with what is wrong, -EPROTO for a version that this program cannot read.
int spool_header_decode(const void *data, size_t size, struct spool_file *ret, struct error *e);
// The whole file; *ret_payload points into data.
int spool_file_decode(const void *data, size_t size, struct spool_file *ret, const uint8_t **ret_payload, struct error *e);

void spool_name_format(char out[SPOOL_NAME_MAX], uint64_t order, const uint8_t instance[16], uint64_t sequence);
// 0, or -EINVAL for what is no name of ours. *ret_temporary: it ends in ".tmp".
int spool_name_parse(const char *name, uint64_t *ret_order, uint8_t ret_instance[16], uint64_t *ret_sequence, int *ret_temporary);

// Durable when it returns 0: file and folder are synced. Replaces a file of that name.
int spool_file_write(int folder, const char *name, const struct spool_file *f, const void *payload);
// Header of a file, checked against its name's identity and its size. -EBADMSG when it is damaged.
int spool_file_peek(int folder, const char *name, const uint8_t instance[16], uint64_t sequence, struct spool_file *ret);
// The encoded batch, owned by the caller. -EBADMSG when it is damaged, other errors of reading.
int spool_file_read(int folder, const char *name, const uint8_t instance[16], uint64_t sequence, uint8_t **ret, size_t *ret_size);

#endif
