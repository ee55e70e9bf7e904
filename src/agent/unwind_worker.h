// SPDX-License-Identifier: Apache-2.0
// The thread that compiles tables and fills the kernel side's maps.
#ifndef BLKPROF_AGENT_UNWIND_WORKER_H
#define BLKPROF_AGENT_UNWIND_WORKER_H

#include "agent/unwind_jobs.h"
#include "agent/unwinder.h"
#include "bpf/unwind_rec.h"

struct unwind_worker;

// `seen`: when the process of each slot was last seen, in seconds; written by others while it runs.
int unwind_worker_new(const struct unwinder_options *options, struct unwind_jobs *jobs, const uint32_t seen[UNWIND_PROCS],
		      struct unwind_worker **ret, struct error *e);
void unwind_worker_free(struct unwind_worker *w); // ends the thread
// The pids of processes whose mappings lack something that a new job would bring: at most `max`.
unsigned unwind_worker_lacking(struct unwind_worker *w, pid_t *pids, unsigned max);
void unwind_worker_stats(struct unwind_worker *w, struct unwinder_stats *ret);

#endif
