// SPDX-License-Identifier: Apache-2.0
// Collections and safepoints of the JVMs among the targets: uprobes on the probes that libjvm.so has of its own (Debian's
// and Temurin's do). A JVM without them is known to be one, and its pauses are said to be missing.
#ifndef BLKPROF_AGENT_REQUEST_PAUSES_H
#define BLKPROF_AGENT_REQUEST_PAUSES_H

#include <sys/types.h>

#include "agent/jvm_quality.h"
#include "agent/request_probes.h"

struct request_pauses;

// Probes outlive it. say: told what cannot be seen of a process; NULL = nobody is.
struct request_pauses *request_pauses_new(struct request_probes *probes, void (*say)(void *context, const char *text), void *context);
void request_pauses_free(struct request_pauses *p); // NULL too
void request_pauses_add(struct request_pauses *p, pid_t pid);
void request_pauses_remove(struct request_pauses *p, pid_t pid);
// Looks again at processes that have just begun, a JVM loads its library after it was seen, and at those that `quality` (NULL
// = none) has found to be JVMs since. Every few seconds.
void request_pauses_look(struct request_pauses *p, struct jvm_quality *quality);
// JVMs of which nothing can be seen.
unsigned request_pauses_unseen(const struct request_pauses *p);

#endif
