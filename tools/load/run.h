// SPDX-License-Identifier: Apache-2.0
// Runs one entry of a plan to its end and says what happened.
#ifndef LOAD_RUN_H
#define LOAD_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "plan.h"
#include "target.h"
#include "truth.h"

struct outcome {
	struct truth truth;
	uint64_t started_ns, ended_ns; // CLOCK_MONOTONIC
	uint64_t cpu_ns;	       // of the process meanwhile
	uint64_t requests;	       // block requests that its data should have been, by the extents
	bool cancellable;	       // libc took the path of a threaded program
	unsigned workers;	       // io_uring worker threads of the process at its end
};

// A job is an entry with its target and the order of its places, prepared before the clock starts.
struct job;

int job_new(const struct entry *n, const struct target *t, struct job **ret, struct error *e);
void job_free(struct job *j);
int job_run(struct job *j, struct outcome *ret, struct error *e);

// Shared by the engines, one per thread of a job.
struct lane {
	const struct job *job;
	const struct entry *entry;
	unsigned index; // of the thread in its job
	int fd;
	char *map;
	struct truth truth;
	struct error error;
	int result;
};

// The i-th request of this lane: its place, and when it is due (0: at once). False behind the last.
bool lane_next(const struct lane *l, uint64_t i, off_t *offset, uint64_t *due);
// Memory for `n` requests of the entry's size, filled as the entry says; NULL without memory.
char *lane_buffer(const struct lane *l, unsigned n);
void lane_prepare(const struct lane *l, struct request *r, char *buffer);
int lane_check(struct lane *l, ssize_t n, off_t offset); // 0, or the error is set

int async_run(struct lane *l); // aio and io_uring

#endif
