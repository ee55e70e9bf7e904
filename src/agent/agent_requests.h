// SPDX-License-Identifier: Apache-2.0
// Requests in the daemon: followed by a thread of its own, whose records go into the spool as a batch a second. Windows do
// not wait for it, and it does not wait for the spool.
#ifndef BLKPROF_AGENT_AGENT_REQUESTS_H
#define BLKPROF_AGENT_AGENT_REQUESTS_H

#include <stdbool.h>

#include "agent/agent_config.h"
#include "agent/jvm_wake.h"
#include "agent/spool.h"
#include "common/buf.h"
#include "common/error.h"

struct agent_requests;

// Whether [requests] names anybody.
bool agent_requests_wanted(const struct agent_config *c);
// Attaches and begins. Keeps nothing of c; wake (not owned): for names of Java threads. say: what is wrong with a plugin.
// -EINVAL and what the kernel refuses, with a message.
int agent_requests_start(const struct agent_config *c, struct spool *spool, struct jvm_wake *wake,
			 void (*say)(void *context, const char *text), void *context, struct agent_requests **ret, struct error *e);
// Whether it was started with what c says.
bool agent_requests_same(const struct agent_requests *r, const struct agent_config *c);
// Detaches; what it had goes to the spool. NULL too.
void agent_requests_stop(struct agent_requests *r);
void agent_requests_print(struct agent_requests *r, struct buf *ret); // Prometheus text; any thread

#endif
