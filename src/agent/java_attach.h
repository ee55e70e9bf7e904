// SPDX-License-Identifier: Apache-2.0
// Asks JVMs for their perf map (jcmd Compiler.perfmap, JDK 17 and later) over the attach socket that they have open
// already, /tmp/.java_pidNSPID in their root. A JVM without one is let be: it would take a signal to make it open one.
// Asked in a thread of its own, each JVM at most once a minute, with a limit of seconds.
#ifndef BLKPROF_AGENT_JAVA_ATTACH_H
#define BLKPROF_AGENT_JAVA_ATTACH_H

#include <sys/types.h>

#include "common/buf.h"

#include "agent/proc_status.h"

struct java_attach;

struct java_attach *java_attach_new(void); // NULL without memory or thread
void java_attach_free(struct java_attach *j); // what is being asked is given up within a second; NULL too
// Asks soon, if that process is a JVM with a socket and was not asked lately. Returns at once.
void java_attach_ask(struct java_attach *j, pid_t pid, const struct proc_status *status);
// Asks now: 0 when the JVM said that it has written its map, or negative errno.
int java_attach_now(pid_t pid, const struct proc_status *status, int timeout_ms);
// Asks now for a dump of its threads (jcmd Thread.print, a safepoint of a moment), at most 4 MiB of it.
int java_attach_threads(pid_t pid, const struct proc_status *status, int timeout_ms, struct buf *ret);

#endif
