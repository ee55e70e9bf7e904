// SPDX-License-Identifier: Apache-2.0
// Who a record is of: its raw stack, process, service and thread made names, soon after it came, while the process is
// known. Each raw stack is resolved once for all processes that have the same mappings. Bounded in bytes.
#ifndef BLKPROF_AGENT_RESOLVER_H
#define BLKPROF_AGENT_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/aggregate.h"
#include "agent/frames.h"
#include "agent/procs.h"
#include "agent/stacks.h"
#include "symbolize/symbolize.h"

struct resolver;

struct resolver_options {
	struct symbolizer *symbolizer; // none of these is owned
	struct procs *procs;
	struct stacks *stacks;
	size_t memory;	    // bytes of frames, stacks and what was resolved, about
	bool comm, pid;	    // whether records are told apart by these
};

struct resolver *resolver_new(const struct resolver_options *options);
void resolver_free(struct resolver *r);
struct frames *resolver_frames(struct resolver *r);

// False when the stack was not resolved yet, which may take reading files.
bool resolver_known(struct resolver *r, const struct in_flight *e, struct row_who *ret);
// 0 or -ENOMEM.
int resolver_who(struct resolver *r, const struct in_flight *e, struct row_who *ret);
// The stack is still in use.
void resolver_touch(struct resolver *r, const struct in_flight *e);

// Marks what is in use with frames_mark_stack and resolver_mark.
typedef void (*resolver_mark_fn)(struct resolver *r, void *context);
void resolver_mark(struct resolver *r, const struct row_who *who);
// Whether so much was kept that a sweep is due; a sweep drops what nobody marks and what was not used for some turns.
bool resolver_is_full(const struct resolver *r);
void resolver_sweep(struct resolver *r, resolver_mark_fn mark, void *context);
void resolver_turn(struct resolver *r); // once every ten seconds or so

uint64_t resolver_stacks_missing(const struct resolver *r); // records whose stack was lost
uint64_t resolver_stacks_refused(const struct resolver *r); // records whose stack had no room

// The process's frame, `extra` frames below it, the stack, and what the row adds, outermost first. Returns how many.
int resolver_row(struct resolver *r, const struct row_key *key, const char *const *extra, unsigned n_extra,
		 const struct frame *out[FRAMES_MAX]);
const char *resolver_process(const struct resolver *r, const struct row_key *key);
const char *resolver_service(const struct resolver *r, const struct row_key *key);
const char *resolver_comm(const struct resolver *r, const struct row_key *key);

#endif
