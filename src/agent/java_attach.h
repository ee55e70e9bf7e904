// SPDX-License-Identifier: Apache-2.0
// Asks JVMs for their perf map (jcmd Compiler.perfmap, JDK 17 and later) over their attach socket, /tmp/.java_pidNSPID in
// their root. A JVM without one is made to open it where that is safe (jvm_wake.h), or is let be.
// Asked in a thread of its own, each JVM at most once a minute (sooner when it was still starting), with a limit of seconds
// for its answer, and of a minute for its socket.
#ifndef BLKPROF_AGENT_JAVA_ATTACH_H
#define BLKPROF_AGENT_JAVA_ATTACH_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/buf.h"

#include "agent/jvm_wake.h"
#include "agent/proc_status.h"

struct java_attach;

struct java_attach *java_attach_new(struct jvm_wake *wake); // NULL without memory or thread; wake: not owned, may be NULL
void java_attach_free(struct java_attach *j); // what is being asked is given up within seconds; NULL too
// Asks soon, if that process is a JVM with a socket and was not asked lately. Returns at once.
void java_attach_ask(struct java_attach *j, pid_t pid, const struct proc_status *status);

struct java_asking {
	struct jvm_wake *wake; // NULL: a JVM without a socket is let be
	int timeout_ms;	       // of its answer
	bool (*ends)(void *context); // whether to wait no longer; NULL = never
	void *context;
};

// Asks now for a dump of its threads (jcmd Thread.print, a safepoint of a moment), at most 4 MiB of it.
int java_attach_threads(pid_t pid, const struct proc_status *status, const struct java_asking *a, struct buf *ret);

#endif
