// SPDX-License-Identifier: Apache-2.0
// A second's requests, bounded: up to a limit each is kept in full; above it the slowest and a uniform sample of the
// others, and the rest as sums by handler. Each request is in exactly one place, so that counts and sums are exact.
#ifndef BLKPROF_REQUEST_STORM_H
#define BLKPROF_REQUEST_STORM_H

#include "request/record.h"

struct storm;

typedef void (*storm_fn)(void *context, const struct request_record *r);

// Half of `limit` are the slowest, half the sample. NULL without memory.
struct storm *storm_new(const struct breakdown_table *metrics, unsigned limit);
void storm_free(struct storm *s);
// Takes it (and r->times.range).
void storm_add(struct storm *s, struct request_record *r);
// Tells all there is, in full ones by their end and sums by process and handler, and begins anew. start, end: of the
// time that the sums are of, ns since the epoch.
void storm_flush(struct storm *s, uint64_t start, uint64_t end, storm_fn fn, void *context);
uint64_t storm_summed(const struct storm *s); // requests told as sums, ever
uint64_t storm_dropped(const struct storm *s); // without memory

#endif
