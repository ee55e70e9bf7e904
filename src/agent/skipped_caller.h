// SPDX-License-Identifier: Apache-2.0
// The caller that a walk by frame pointer skips: whoever called the leaf, when the leaf sets up no frame, as libc's
// system-call wrappers do. The kernel side sends the words of the stack's top that follow a call instruction
// (bpf/stack.bpf.h); some are left over from earlier calls. This picks the one whose call leads to the leaf.
#ifndef BLKPROF_AGENT_SKIPPED_CALLER_H
#define BLKPROF_AGENT_SKIPPED_CALLER_H

#include "agent/procs.h"
#include "agent/stacks.h"

// Its return address; 0 when none was skipped or none can be told.
uint64_t skipped_caller(struct procs *procs, struct proc *proc, const struct stack_frames *stack, uint64_t time);

#endif
