// SPDX-License-Identifier: Apache-2.0
// Processes as /proc shows them now, put into the table: at the start, where events were lost, and on demand.
#ifndef BLKPROF_AGENT_PROCS_SCAN_H
#define BLKPROF_AGENT_PROCS_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/proctable.h"

// Takes in one process. What the table has of it and is no longer true (another start, another executable) ends at
// since_ns or when that life was last looked at, whichever is later. NULL when there is no such process, or no room.
struct proc *procs_scan_one(struct proctable *t, pid_t pid, uint64_t since_ns);
// Takes in all, and ends the lives of those that are gone.
int procs_scan_all(struct proctable *t, uint64_t since_ns);
// Asks for the cgroup of a process that runs.
void procs_scan_cgroup(struct proctable *t, struct proc *p, uint64_t now_ns);

#endif
