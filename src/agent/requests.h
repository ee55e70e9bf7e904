// SPDX-License-Identifier: Apache-2.0
// Requests of the processes that were chosen, as records: the kernel side, the flow, the storm's bound and the threads'
// sums put together. Not thread-safe: one thread polls it and takes the records.
#ifndef BLKPROF_AGENT_REQUESTS_H
#define BLKPROF_AGENT_REQUESTS_H

#include "agent/request_targets.h"
#include "common/buf.h"
#include "common/error.h"
#include "request/record.h"
#include "request/target.h"

struct jvm_wake;
struct requests;

#define REQUESTS_FULL 500 // records a second that are told in full, by default

struct requests_options {
	struct request_rules targets;
	struct target_rules params;
	const char *trace_header; // NULL = X-Trace-Id
	unsigned full;		  // records a second in full; 0 = REQUESTS_FULL
	uint64_t window;	  // of threads' sums, ns; 0 = 10 s
	bool java_names;	  // ask JVMs for their threads' names
	struct jvm_wake *jvm_wake; // not owned; NULL: those without an attach socket are let be
	const char *plugins;	  // directory of sources of metrics; NULL = none
	void (*say)(void *context, const char *text); // what is wrong with one of them
	void *say_context;
	uint32_t ring;		  // bytes, a power of two of whole pages; 0 = 8 MiB
};

typedef void (*requests_fn)(void *context, const struct request_record *r);

// Attaches. -EPERM and others with a message.
int requests_new(const struct requests_options *options, struct requests **ret, struct error *e);
void requests_free(struct requests *r); // NULL too
// Takes in what came; waits at most timeout_ms. Call it at least every 100 ms. -EINTR after a signal.
int requests_poll(struct requests *r, int timeout_ms);
// What there is of the last time, usually a second: records live until fn returns.
void requests_take(struct requests *r, requests_fn fn, void *context);
// Open requests are over, as far as they were seen; take what there is after it.
void requests_stop(struct requests *r);
const struct breakdown_table *requests_metrics(const struct requests *r);
unsigned requests_targets(const struct requests *r);

// What was seen and lost, by its name; NULL behind the last one.
struct requests_count {
	const char *name, *help;
	uint64_t value;
	bool loss; // something is missing in records for it
};
const struct requests_count *requests_counts(struct requests *r, unsigned *ret_n);

#endif
