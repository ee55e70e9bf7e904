// SPDX-License-Identifier: Apache-2.0
// One message: read, judged, answered. receive.c puts them into transactions.
#ifndef BLKPROF_COLLECTOR_RECEIVE_INTERNAL_H
#define BLKPROF_COLLECTOR_RECEIVE_INTERNAL_H

#include <zmq.h>

#include "collector/connections.h"
#include "collector/receive.h"
#include "common/clock.h"
#include "wire/reply.h"

#define GROUP_MAX 256		  // batches of one transaction
#define GROUP_BYTES (16u << 20)	  // of them; one more may follow when this is not reached
#define GROUP_WAIT_NS 4000000ull  // for more batches, from the first one on
#define REFUSALS 64		  // causes and keys that are remembered, so that the log is not filled

struct waiting {
	zmq_msg_t peer;	   // its routing id
	zmq_msg_t message; // which has the data of the batch
	struct batch *batch;
	uint64_t token;
	int result, failed; // of storing it: of the batch, of its transaction
	struct error why;   // of the result
};

// What goes into one transaction.
struct group {
	struct waiting item[GROUP_MAX];
	unsigned n;
	size_t bytes;
	uint64_t due; // monotonic ns: from then on it does not wait for more
	uint64_t ns;  // what storing it took
	unsigned commits, failures;
	struct error why; // of the last failure
};

struct refusal {
	uint64_t who; // hash of cause and key
	uint64_t said; // monotonic ns
	uint64_t unsaid;
};

struct messages {
	struct receive_options options;
	void *socket;
	struct connections *connections;
	struct group *group; // where they go
	struct refusal refusals[REFUSALS];
};

// Takes one message off the socket: into the group, or refused. -EAGAIN when there is none.
int messages_take(struct messages *m);
void messages_answer(struct messages *m, zmq_msg_t *peer, uint64_t token, enum reply_status status, const char *text);
void group_clear(struct group *g);
void messages_say(const struct messages *m, const char *text);

#endif
