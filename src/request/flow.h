// SPDX-License-Identifier: Apache-2.0
// From events on connections to records of requests: a state machine a connection. A request begins with the read that
// brings its first bytes, is bound to the thread of each further read until its answer begins, and ends with the last
// write before its connection is read again or closed; its times are the difference of two sums of one thread. What was
// not seen is marked, never made up. Tables are bounded, and what is dropped is counted. Not thread-safe; knows neither
// the kernel nor the clock.
#ifndef BLKPROF_REQUEST_FLOW_H
#define BLKPROF_REQUEST_FLOW_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/request_rec.h"
#include "request/record.h"
#include "request/target.h"

struct flow;

struct flow_options {
	const struct breakdown_table *metrics;	  // lives as long as the flow
	const struct target_rules *rules; // the same; NULL = nothing beside the usual
	const char *trace_header;	  // NULL = X-Trace-Id
	unsigned max_connections, max_requests; // 0 = 65536 and 8192
	size_t max_heads;			// bytes of heads that are not whole yet; 0 = 4 MiB
	// A request is over. The record is the callee's to read, or to take by copying it and clearing times.range.
	void (*ended)(void *context, struct request_record *r);
	// What the thread's sums were at the begin and the end of a request that is exactly its: they are no part of what the
	// thread does outside of requests.
	void (*attributed)(void *context, uint32_t tid, const struct req_sums *from, const struct req_sums *to);
	// No more events of this connection are wanted.
	void (*ignore)(void *context, uint64_t connection);
	void *context;
};

enum flow_count {
	FLOW_REQUESTS,		 // records made
	FLOW_INCOMPLETE,	 // of those, with something not seen
	FLOW_HANDED_OVER,	 // of those, answered by another thread
	FLOW_SHARED,		 // of those, on a thread with several at once
	FLOW_ANSWERS_UNMATCHED,	 // answers to requests that were not seen: older than we are, or no HTTP
	FLOW_PIPELINES_LOST,	 // connections of which it is not known any more whose answer is whose
	FLOW_H2,		 // connections that speak HTTP/2: not attributed
	FLOW_TLS,		 // encrypted connections: cannot be read
	FLOW_NOT_HTTP,		 // connections that speak something else
	FLOW_EVENTS_LOST,	 // gaps in the events of a connection
	FLOW_CONNECTIONS_EVICTED, // the table was full
	FLOW_REQUESTS_EVICTED,
	FLOW_HEADS_DROPPED, // heads that were not whole and took too much memory
	FLOW_BAD_EVENTS,
	FLOW_COUNTS,
};

struct flow *flow_new(const struct flow_options *options); // NULL without memory
void flow_free(struct flow *f); // nothing is told any more; NULL too
// From CLOCK_MONOTONIC to the time of day.
void flow_set_clock(struct flow *f, int64_t offset);
// One record of the ring; size is all of it. -EINVAL when it is not one.
int flow_event(struct flow *f, const void *record, size_t size);
// Ends what has been silent for long. now: ns, CLOCK_MONOTONIC.
void flow_sweep(struct flow *f, uint64_t now);
// The requests of a process that ended (0 = of all) are over.
void flow_end(struct flow *f, uint32_t tgid, uint64_t now);
uint64_t flow_count(const struct flow *f, enum flow_count what);
const char *flow_count_name(enum flow_count what); // "handed_over"
const char *flow_count_help(enum flow_count what);
bool flow_thread_busy(const struct flow *f, uint32_t tid); // it has a request open
unsigned flow_connections(const struct flow *f);
unsigned flow_open(const struct flow *f); // requests that have begun

#endif
