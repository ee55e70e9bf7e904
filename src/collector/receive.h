// SPDX-License-Identifier: Apache-2.0
// The collector's socket: batches in, one transaction for all that wait, answers out once it is durable. What is not read
// stays in the sockets of those who sent it: a slow disk slows acknowledgements, not memory.
#ifndef BLKPROF_COLLECTOR_RECEIVE_H
#define BLKPROF_COLLECTOR_RECEIVE_H

#include <stdbool.h>

#include "collector/allow.h"
#include "collector/counters.h"
#include "collector/store.h"
#include "wire/keys.h"

struct receiver;

struct receive_options {
	const char *const *bind; // addresses, checked
	unsigned n_bind;
	const struct key_pair *key; // NULL = plain
	struct allow *allow;	    // with a key; each message's key and node are looked up in it
	struct store *store;
	struct collector_counters *counters;
	unsigned max_connections; // 0 = what the limit of open files allows
	void (*say)(void *context, const char *text); // a line for the log; from threads of the receiver
	void *say_context;
};

// Binds and starts. -EADDRINUSE, -EADDRNOTAVAIL … with the address. What options point to must outlive it.
int receiver_new(const struct receive_options *options, struct receiver **ret, struct error *e);
// Ends after the transaction at hand, answers included. false: that took longer than timeout_ms and goes on; the process
// can only end as if killed, which loses nothing that was acknowledged.
bool receiver_free(struct receiver *r, unsigned timeout_ms);

#endif
