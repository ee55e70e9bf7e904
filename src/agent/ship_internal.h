// SPDX-License-Identifier: Apache-2.0
// The parts of ship.c: one connection to one endpoint, and the batches that are on their way over it.
#ifndef BLKPROF_AGENT_SHIP_INTERNAL_H
#define BLKPROF_AGENT_SHIP_INTERNAL_H

#include <zmq.h>

#include "agent/ship.h"

#define SHIP_BATCHES_MAX 256

// One connection. libzmq does not reconnect: a new one is made, so that what was on its way is known to be lost.
struct ship_link {
	void *socket, *monitor; // NULL = none
	bool up;		// the handshake is done
};

enum ship_event {
	SHIP_NOTHING,
	SHIP_UP,
	SHIP_DOWN,    // the connection is lost or was refused
	SHIP_UNKNOWN_KEY, // the collector does not let us in
};

int ship_link_open(struct ship_link *l, void *zmq, const struct ship_endpoint *to, const struct key_pair *key, struct error *e);
void ship_link_close(struct ship_link *l);
enum ship_event ship_link_event(struct ship_link *l); // one of the monitor's, if there is one
// -EAGAIN: it cannot be sent now.
int ship_link_send(struct ship_link *l, const struct spool_item *item, uint64_t token);
// -EAGAIN: nothing there. -EBADMSG: it is no answer.
struct reply;
int ship_link_receive(struct ship_link *l, struct reply *ret, struct error *e);

struct ship_sent {
	uint64_t token;
	uint8_t instance[16];
	uint64_t sequence;
	size_t size;
};

// What is on its way, in the order of sending.
struct ship_flight {
	struct ship_sent sent[SHIP_BATCHES_MAX];
	unsigned n;
	uint64_t bytes, token;
};

uint64_t ship_flight_add(struct ship_flight *f, const struct spool_item *item); // its token
bool ship_flight_take(struct ship_flight *f, uint64_t token, struct ship_sent *ret);
void ship_flight_clear(struct ship_flight *f);

#endif
