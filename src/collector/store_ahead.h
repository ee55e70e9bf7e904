// SPDX-License-Identifier: Apache-2.0
// Batches of a transaction read ahead by two threads, while the first one writes: reading the profiles is most of the
// work. A few at a time, whatever the number of batches.
#ifndef BLKPROF_COLLECTOR_STORE_AHEAD_H
#define BLKPROF_COLLECTOR_STORE_AHEAD_H

#include <pthread.h>
#include <stdbool.h>

#include "collector/store_parse.h"
#include "wire/batch.h"

#define AHEAD 6
#define AHEAD_WORKERS 2

struct parsed_batch {
	struct parsed *parsed; // one a profile
	unsigned n, cap; // parsed[n …] are ready to be used again
	bool ready;
	int err; // of reading it, and why
	struct error why;
};

struct ahead {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t worker[AHEAD_WORKERS];
	unsigned workers;
	bool stop;
	const struct hash_secret *secret;
	const struct batch *const *batches;
	unsigned n, claimed, released;
	struct parsed_batch slot[AHEAD];
};

void ahead_init(struct ahead *a, const struct hash_secret *secret);
void ahead_free(struct ahead *a);
// Batches 0 … n-1 are then asked for and released in order. Without more threads the first one does everything.
void ahead_start(struct ahead *a, const struct batch *const *batches, unsigned n);
struct parsed_batch *ahead_next(struct ahead *a, unsigned i);
void ahead_release(struct ahead *a, unsigned i);
void ahead_stop(struct ahead *a); // also before the last one

#endif
