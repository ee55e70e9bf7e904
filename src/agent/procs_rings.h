// SPDX-License-Identifier: Apache-2.0
// A dummy software event on every online CPU that tells of forks, execs, names, executable mappings and exits, and its
// ring buffers read as one stream in order of time. Idle, it costs nothing: no wakeups, no sampling.
#ifndef BLKPROF_AGENT_PROCS_RINGS_H
#define BLKPROF_AGENT_PROCS_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/proctable.h"
#include "common/error.h"

struct procs_rings;

// -EPERM, -ENOSYS and the like with a message.
int procs_rings_new(struct procs_rings **ret, struct error *e);
void procs_rings_free(struct procs_rings *r);
// Begins to read what happened up to now. Returns whether a ring was as good as full: then events may have been lost,
// which the kernel tells only in front of the next one that it has room for.
bool procs_rings_begin(struct procs_rings *r);
// The next event up to that time; 0 when there is no more. Its text is valid until the next call.
int procs_rings_next(struct procs_rings *r, struct proc_event *ret);
int procs_rings_pending(const struct procs_rings *r); // whether there is anything to read
// Opens events of CPUs that came online since; cheap, for once every few seconds.
void procs_rings_refresh(struct procs_rings *r);

#endif
