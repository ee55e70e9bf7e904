// SPDX-License-Identifier: Apache-2.0
// Gives the kernel side what it walks user stacks by: for each process that was seen doing I/O its executable mappings,
// and the unwind tables of their files. Tables are compiled by a thread of its own, so that nobody waits for them; until
// they are there a process's stacks are walked by frame pointer and marked. Within a budget: what was used longest ago is
// given up first. All calls from one thread.
#ifndef BLKPROF_AGENT_UNWINDER_H
#define BLKPROF_AGENT_UNWINDER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/procs.h"
#include "common/error.h"

struct unwinder;

struct unwinder_options {
	int arenas, rules, procs; // the kernel side's maps
	size_t memory;		  // bytes of tables, 0 = 32 MiB
};

struct unwinder_stats {
	uint64_t tables, table_bytes; // in use
	uint64_t processes;
	uint64_t compiled, refused; // files: with a table, without one (no CFI, broken, too large)
	uint64_t given_up;	    // tables for the budget
	uint64_t compile_ns;
};

int unwinder_new(const struct unwinder_options *options, struct unwinder **ret, struct error *e);
void unwinder_free(struct unwinder *u);
// A process that does I/O, or will. Cheap when nothing has changed about it since the last call.
void unwinder_see(struct unwinder *u, struct procs *procs, pid_t pid, uint64_t time_ns);
// Compiles the table of one file of a process, by the last part of its path: everybody has our libc too, and its table is
// then ready before the first sample: waits for it, within bounds.
void unwinder_warm(struct unwinder *u, struct procs *procs, pid_t pid, const char *name);
// Forgets processes that ended; call it every second or so.
void unwinder_poll(struct unwinder *u, struct procs *procs);
void unwinder_stats(struct unwinder *u, struct unwinder_stats *ret);

#endif
