// SPDX-License-Identifier: Apache-2.0
// What threads do outside of requests: the difference of a thread's sums, less what belonged to its requests. A thread
// whose request is still open is told of later.
#ifndef BLKPROF_REQUEST_THREAD_SUMS_H
#define BLKPROF_REQUEST_THREAD_SUMS_H

#include "bpf/request_rec.h"
#include "request/record.h"

struct thread_sums;

typedef void (*thread_sums_fn)(void *context, const struct request_record *r);
typedef bool (*thread_sums_busy_fn)(void *context, uint32_t tid);

struct thread_sums *thread_sums_new(const struct breakdown_table *metrics, unsigned max); // at most so many threads; NULL without memory
void thread_sums_free(struct thread_sums *t);
// Its sums as of now: they began with nothing. now: ns since the epoch.
void thread_sums_see(struct thread_sums *t, uint32_t tgid, uint32_t tid, const char *comm, const struct req_sums *sums, uint64_t now);
void thread_sums_ended(struct thread_sums *t, uint32_t tid);
void thread_sums_name(struct thread_sums *t, uint32_t tid, const char *name); // its Java name
const char *thread_sums_name_of(const struct thread_sums *t, uint32_t tid);    // "" = unknown
// Of these, so much was a request's.
void thread_sums_attribute(struct thread_sums *t, uint32_t tid, const struct req_sums *from, const struct req_sums *to);
// Tells of those that did something: all at a window's end, else those that ended or have done nothing for 30 seconds.
// Threads that were neither seen nor named for five minutes are forgotten: their end was not told.
void thread_sums_flush(struct thread_sums *t, bool window_ends, uint64_t now, thread_sums_busy_fn busy, thread_sums_fn fn, void *context);
uint64_t thread_sums_dropped(const struct thread_sums *t); // looks at threads that found no room

#endif
