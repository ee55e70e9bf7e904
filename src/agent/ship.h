// SPDX-License-Identifier: Apache-2.0
// Sends what is in the spool to a collector, in a thread of its own: nothing of the network ever delays the caller. One
// endpoint is used at a time; when it does not connect, does not answer, refuses the key or asks for patience, the next
// one gets its turn, after a pause that grows while none works. What was not acknowledged is sent again.
#ifndef BLKPROF_AGENT_SHIP_H
#define BLKPROF_AGENT_SHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/spool.h"
#include "common/error.h"
#include "common/metrics.h"
#include "wire/keys.h"

struct ship_endpoint {
	char address[256];
	bool curve;
	uint8_t server_key[KEY_SIZE];
};

// "ADDRESS [PUBLIC KEY]". -EINVAL; also without a key when the address is neither on this machine nor `insecure`.
int ship_endpoint_parse(const char *text, bool insecure, struct ship_endpoint *ret, struct error *e);

// Where the batches come from; ship_source_spool makes one of a spool. All functions are called by the ship's thread.
struct ship_source {
	void *context;
	int (*next)(void *context, struct spool_item *ret); // -EAGAIN: nothing now
	void (*release)(struct spool_item *item);
	void (*rewind)(void *context);
	void (*acknowledge)(void *context, const uint8_t instance[16], uint64_t sequence);
	int fd; // readable when next may have something
};

struct ship_source ship_source_spool(struct spool *s);

struct ship_options {
	const struct ship_endpoint *endpoints; // copied
	unsigned n_endpoints;
	const struct key_pair *key;   // ours, copied; NULL = none of the endpoints has a key
	unsigned max_batches;	      // unacknowledged ones; 0 = 16
	uint64_t max_bytes;	      // of them; 0 = 4 MiB; a larger batch goes alone
	unsigned connect_timeout_ms;  // 0 = 5 s
	unsigned answer_timeout_ms;   // 0 = 30 s
	unsigned pause_min_ms, pause_max_ms; // between attempts; 0 = 500 ms, 60 s
	// A line for the log, from the ship's thread: a change of state, a refused batch. May be NULL.
	void (*say)(void *context, const char *text);
	void *say_context;
};

struct ship_stats {
	uint64_t sent, sent_bytes; // batches, again included
	uint64_t stored, duplicates; // acknowledged
	uint64_t refused;	   // batches that the collector called broken: lost
	uint64_t again;		   // unacknowledged ones that a lost connection sends again
	uint64_t connects, failures; // connections that worked; attempts and connections that failed
	uint64_t unauthorized, busy, version; // answers
	uint64_t unacknowledged;   // now
	uint64_t connected;	   // 1 = there is a connection
	uint64_t endpoint;	   // which one, from 0
};

extern const struct metric ship_metrics[];
extern const unsigned ship_metrics_n;

struct ship;

// -EINVAL, -ENOMEM. Without endpoints there is nothing to ship: -ENODATA.
int ship_open(const struct ship_options *options, const struct ship_source *source, struct ship **ret, struct error *e);
// Ends the thread. One that hangs (in the resolver of names) is left behind after timeout_ms with all its memory: false,
// and it may still use its source.
bool ship_close(struct ship *s, unsigned timeout_ms);
void ship_stats(const struct ship *s, struct ship_stats *ret);

#endif
