// SPDX-License-Identifier: Apache-2.0
// A recording of what threads do and of their block I/O, as events of a timeline: new, start, poll until the time is up,
// stop. Not thread-safe; needs root as a recorder does.
#ifndef BLKPROF_AGENT_TRACER_H
#define BLKPROF_AGENT_TRACER_H

#include "agent/filter.h"
#include "common/buf.h"
#include "timeline/event.h"

struct tracer;

struct tracer_options {
	struct filter filter; // by process and cgroup; without either: everything that runs
	bool requests;	      // of HTTP that the processes serve; of processes only
	bool stacks;	      // of I/O, and of where threads sleep
	// Gets each event, EVENT_START first, about in order of time. What it returns other than 0 ends the recording.
	int (*event)(void *context, const struct event *e);
	void *context;
};

int tracer_new(const struct tracer_options *options, struct tracer **ret, struct error *e);
void tracer_free(struct tracer *t);
int tracer_start(struct tracer *t, struct error *e);
// As recorder_poll; what `event` returned, when that was not 0.
int tracer_poll(struct tracer *t, int timeout_ms);
int tracer_stop(struct tracer *t, struct error *e);
const char *tracer_backend_reason(const struct tracer *t); // which form of the programs is used where it is not the best

// Why requests are not followed though they were wanted, or "".
const char *tracer_requests_reason(const struct tracer *t);
// After stop: lines about connections whose requests cannot be read.
void tracer_requests_unread(struct tracer *t, struct buf *to);

#endif
