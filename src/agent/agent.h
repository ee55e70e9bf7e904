// SPDX-License-Identifier: Apache-2.0
// The daemon of a node as an object: windows aligned to the clock, one profile a service, into the spool and on to a
// collector, for ever. The caller has the loop, the signals and the log.
#ifndef BLKPROF_AGENT_AGENT_H
#define BLKPROF_AGENT_AGENT_H

#include "agent/agent_metrics.h"
#include "agent/recorder.h"
#include "common/buf.h"
#include "common/error.h"

struct agent;

enum agent_level {
	AGENT_INFO,
	AGENT_WARNING,
	AGENT_ERROR
};

typedef void (*agent_log_fn)(void *context, enum agent_level level, const char *text);

// Reads the file, opens the spool, attaches the probes and counts from now on. -EINVAL with file and line.
int agent_new(const char *path, agent_log_fn log, void *context, struct agent **ret, struct error *e);
// Takes in what has arrived, for at most 100 ms, and ends a window when its time has come. -EINTR after a signal; other
// errors are the end.
int agent_step(struct agent *a, struct error *e);
// Reads the file again. What is wrong with it is logged, and everything stays as it was (the error is returned). Probes
// are replaced without a gap when their options changed; the spool's directory and the node's name need a restart.
int agent_reload(struct agent *a);
// The window that has begun goes to the spool; waits at most timeout_ms until all is durable there.
int agent_stop(struct agent *a, unsigned timeout_ms, struct error *e);
void agent_free(struct agent *a); // NULL too

// As of now, from any thread. The text is Prometheus' or, short, one line for a log.
void agent_measure(struct agent *a, struct agent_metrics *ret);
void agent_metrics_text(struct agent *a, struct buf *ret);
void agent_metrics_line(struct agent *a, struct buf *ret);
const char *agent_backend(const struct agent *a);

#endif
