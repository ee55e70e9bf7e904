// SPDX-License-Identifier: Apache-2.0
// Decides who may connect (libzmq's ZAP, asked during each CURVE handshake) and keeps account of the connections, in a
// thread of its own: libzmq's I/O thread waits for it, so it never waits for anything.
#ifndef BLKPROF_COLLECTOR_GATE_H
#define BLKPROF_COLLECTOR_GATE_H

#include "collector/allow.h"
#include "collector/connections.h"
#include "collector/counters.h"

struct gate;

struct gate_options {
	void *zmq;
	struct allow *allow; // NULL = no CURVE, nobody asks
	struct connections *connections;
	struct collector_counters *counters;
	uint64_t max_unended; // bytes of a message that does not end
	void (*say)(void *context, const char *text);
	void *say_context;
};

// Before the socket is bound. `socket` is the one whose connections are counted.
int gate_new(const struct gate_options *options, void *socket, struct gate **ret, struct error *e);
void gate_free(struct gate *g); // ends the thread

#endif
