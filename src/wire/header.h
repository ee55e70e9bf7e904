// SPDX-License-Identifier: Apache-2.0
// The header in front of every message and of every file of the spool, little endian:
//
//	0  4  magic "BLKP"
//	4  2  version of the writer
//	6  2  the oldest version whose readers understand it
//	8  2  kind (enum message_kind)
//	10 2  0
//	12 8  token: the answer carries that of its question; 0 in files
//
// An old reader takes what a newer writer says it may, and skips the fields that it does not know; a newer reader takes
// all older versions.
#ifndef BLKPROF_WIRE_HEADER_H
#define BLKPROF_WIRE_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define MESSAGE_VERSION 1
#define MESSAGE_MIN_VERSION 1 // what we write is understood from this version on
#define MESSAGE_HEADER_SIZE 20

enum message_kind {
	MESSAGE_BATCH = 1,
	MESSAGE_REPLY = 2,
};

struct message_header {
	uint16_t version, min_version;
	uint16_t kind;
	uint64_t token;
};

// Writes MESSAGE_HEADER_SIZE bytes with our versions.
void message_header_put(void *to, enum message_kind kind, uint64_t token);
void message_header_set_token(void *message, uint64_t token);
// -EBADMSG: not ours. -EPROTO: it needs a newer program; *ret is filled then too, so that the answer finds its question.
int message_header_get(const void *data, size_t size, struct message_header *ret, struct error *e);

#endif
