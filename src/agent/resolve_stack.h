// SPDX-License-Identifier: Apache-2.0
// A raw stack made frames.
#ifndef BLKPROF_AGENT_RESOLVE_STACK_H
#define BLKPROF_AGENT_RESOLVE_STACK_H

#include "agent/frames.h"
#include "agent/procs.h"
#include "agent/stacks.h"

struct resolving {
	struct frames *frames;
	struct symbolizer *symbolizer;
	struct procs *procs;
};

// What beside the raw stack and the address space decides on the frames.
uint32_t resolve_stack_kind(const struct in_flight *e);
// Number of the stack in x->frames; 0 without memory. proc may be NULL. submitter: the stack that handed an io_uring worker
// its request, without frames when it is not known.
uint32_t resolve_stack(const struct resolving *x, const struct in_flight *e, struct proc *proc,
		       const struct stack_frames *raw, const struct stack_frames *submitter);
// The same where the raw stack is missing.
uint32_t resolve_stack_lost(const struct resolving *x, const struct in_flight *e);

#endif
