// SPDX-License-Identifier: Apache-2.0
// The inside of a tracer, shared by the files that drive it (tracer.c), look at /proc (tracer_threads.c) and make events of
// records (tracer_records.c).
#ifndef BLKPROF_AGENT_TRACER_INTERNAL_H
#define BLKPROF_AGENT_TRACER_INTERNAL_H

#include "agent/recorder.h"
#include "agent/requests.h"
#include "agent/tracer.h"

struct tracer_known;

struct tracer {
	struct tracer_options options;
	struct recorder *recorder;
	struct requests *requests; // NULL: they are not followed
	struct error no_requests;  // why not
	char pids[FILTER_MAX][16];
	uint64_t to_realtime; // from CLOCK_MONOTONIC, at the start
	uint64_t taken;	      // when requests were last taken
	struct tracer_known *known; // stacks, devices and processes that were said
	// What came while /proc was read: held back until the threads that were there are said.
	bool starting;
	struct event *early;
	size_t n_early, cap_early;
	uint64_t start, stop; // 0 = not yet
	uint64_t losses[TIMELINE_LOSSES];
	int error;
};

void tracer_say(struct tracer *t, const struct event *e);
// tracer_records.c
void tracer_record(void *context, const void *record, size_t size); // the recorder's watch
void tracer_say_process(struct tracer *t, uint32_t tgid);
void tracer_forget(struct tracer *t);
// tracer_requests.c
void tracer_requests_begin(struct tracer *t);
int tracer_requests_poll(struct tracer *t);
void tracer_requests_end(struct tracer *t, uint64_t time);
// tracer_threads.c
int tracer_threads(struct tracer *t); // says the threads that were there, by /proc and by what came early

#endif
