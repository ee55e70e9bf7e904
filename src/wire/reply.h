// SPDX-License-Identifier: Apache-2.0
// What a collector answers to a batch.
#ifndef BLKPROF_WIRE_REPLY_H
#define BLKPROF_WIRE_REPLY_H

#include "common/buf.h"
#include "common/error.h"

// Numbers of proto/wire.proto: append only. A status that a program does not know is read as REPLY_BUSY: nothing is lost.
enum reply_status {
	REPLY_STORED = 1,	// durable: the agent may forget it
	REPLY_DUPLICATE = 2,	// was durable before
	REPLY_REFUSED = 3,	// never will be stored: broken
	REPLY_UNAUTHORIZED = 4, // the key is not allowed, or not to say this node's name
	REPLY_VERSION = 5,	// the collector is too old for this batch
	REPLY_BUSY = 6,		// send it again later
};

#define REPLY_TEXT_MAX 255

struct reply {
	uint64_t token; // of the batch's header
	enum reply_status status;
	char text[REPLY_TEXT_MAX + 1]; // why, for a log; valid UTF-8
};

// Appends. -ENOMEM.
int reply_encode(const struct reply *r, struct buf *to);
// -EBADMSG, -EPROTO.
int reply_decode(const void *data, size_t size, struct reply *ret, struct error *e);

#endif
