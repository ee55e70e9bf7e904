// SPDX-License-Identifier: Apache-2.0
// A recording made a Perfetto trace and a summary: events in, packets out, as they come. Pure: no kernel, no clock, no file.
// Memory is bounded by threads, I/O in flight and stacks that there are, each with a limit, not by how long it takes.
#ifndef BLKPROF_TIMELINE_TIMELINE_H
#define BLKPROF_TIMELINE_TIMELINE_H

#include "common/buf.h"
#include "timeline/trace.h"

struct timeline;

struct timeline_options {
	trace_sink sink;    // gets the trace; NULL: only the summary is wanted
	void *context;
	uint64_t max_size;  // of the trace, 0 = no limit; the rest is left out, and said so in it
	uint64_t window_ns; // how much later than its successors an event may come; 0 = 200 ms
};

struct timeline *timeline_new(const struct timeline_options *options);
void timeline_free(struct timeline *t);
// Takes an event in; the first one is EVENT_START. 0, -EINVAL with a message for an order of events that cannot be, or an
// error of the sink.
int timeline_add(struct timeline *t, const struct event *e, struct error *error);
// Ends the trace, everything that is open with it: at EVENT_STOP, or the last event where there was none.
// -EINVAL when nothing began.
int timeline_end(struct timeline *t, struct error *error);

struct timeline_stats {
	uint64_t events, duration; // ns
	uint64_t size;		   // of the trace, bytes
	uint64_t left_out;	   // events behind max_size
	uint64_t late;		   // events that came too late to be put in order
	uint64_t lost[LOST_KINDS];
	uint64_t refused;   // threads and I/O beyond the limits
	uint64_t surprises; // events that did not follow from those before
	uint64_t ops;	    // I/O that ended
	uint64_t switches;
	uint64_t requests;
	size_t threads;
};
void timeline_get_stats(const struct timeline *t, struct timeline_stats *ret);
// For a terminal, after timeline_end: each thread's time, the devices', what was lost. `rows` 0 = all threads.
void timeline_summary(struct timeline *t, unsigned rows, struct buf *to);

#endif
