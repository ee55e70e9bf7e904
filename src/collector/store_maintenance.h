// SPDX-License-Identifier: Apache-2.0
// What a store does for itself, in steps short enough that ingestion does not wait: roll-ups, retention, unreferenced
// entries of the dictionaries, free pages. Each step is a transaction; the caller holds the store's lock.
#ifndef BLKPROF_COLLECTOR_STORE_MAINTENANCE_H
#define BLKPROF_COLLECTOR_STORE_MAINTENANCE_H

#include "collector/store_internal.h"

#define STEP_NS 30000000ull // how long a step may go on beginning new work

// Each: 1 when there is more to do at once, 0, or an error.
int rollup_step(struct store *s, uint64_t now, struct error *e);
int retention_step(struct store *s, uint64_t now, struct error *e);
int collect_step(struct store *s, uint64_t now, struct error *e);
int vacuum_step(struct store *s, uint64_t now, struct error *e);

struct rollup;
int rollup_new(struct store *s, struct rollup **ret, struct error *e);
void rollup_free(struct rollup *r);
struct retention;
int retention_new(struct store *s, struct retention **ret, struct error *e);
void retention_free(struct retention *r);

struct maintenance {
	struct rollup *rollup;
	struct retention *retention;
	pthread_t thread;
	pthread_cond_t wake;
	bool running, stop;
};

int maintenance_new(struct store *s, struct error *e);
void maintenance_free(struct store *s);

#endif
