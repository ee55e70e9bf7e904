// SPDX-License-Identifier: Apache-2.0
// What threads do outside of requests: the difference of a thread's sums, less what belonged to its requests. A thread
// whose request is still open is told of later.
#ifndef BLKPROF_REQUEST_THREADS_H
#define BLKPROF_REQUEST_THREADS_H

#include "bpf/request_rec.h"
#include "request/record.h"

struct threads;

typedef void (*threads_fn)(void *context, const struct request_record *r);
typedef bool (*threads_busy_fn)(void *context, uint32_t tid);

struct threads *threads_new(const struct breakdown_table *metrics, unsigned max); // at most so many threads; NULL without memory
void threads_free(struct threads *t);
// Its sums as of now: they began with nothing. now: ns since the epoch.
void threads_see(struct threads *t, uint32_t tgid, uint32_t tid, const char *comm, const struct req_sums *sums, uint64_t now);
void threads_ended(struct threads *t, uint32_t tid);
void threads_name(struct threads *t, uint32_t tid, const char *name); // its Java name
const char *threads_name_of(const struct threads *t, uint32_t tid);    // "" = unknown
// Of these, so much was a request's.
void threads_attribute(struct threads *t, uint32_t tid, const struct req_sums *from, const struct req_sums *to);
// Tells of those that did something: all at a window's end, else those that ended or have done nothing for 30 seconds.
void threads_flush(struct threads *t, bool window_ends, uint64_t now, threads_busy_fn busy, threads_fn fn, void *context);
uint64_t threads_dropped(const struct threads *t); // looks at threads that found no room

#endif
