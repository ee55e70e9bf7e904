// SPDX-License-Identifier: Apache-2.0
// Raw stacks by hash as the kernel side sends them, each once. Bounded in bytes: what was not used for the longest time
// goes first; whoever sent it is told, and sends it again when it is seen again.
#ifndef BLKPROF_AGENT_STACKS_H
#define BLKPROF_AGENT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stacks;

// Called before a stack goes: from then on it must be sent again.
typedef void (*stacks_unsend_fn)(uint64_t hash, void *context);

struct stacks *stacks_new(size_t memory, stacks_unsend_fn unsend, void *context);
void stacks_free(struct stacks *s);
// Validates and keeps a stack record of `size` bytes. -EINVAL when it is malformed, -ENOMEM.
int stacks_add(struct stacks *s, const void *record, size_t size);

struct stack_frames {
	const uint64_t *callers, *user, *kernel; // leaf first
	unsigned n_callers, n_user, n_kernel;
	uint8_t flags;	// enum stack_flag
	uint8_t broken; // enum unwind_break
};

// Valid until the next stacks_add or stacks_turn. A look-up counts as a use.
bool stacks_find(struct stacks *s, uint64_t hash, struct stack_frames *ret);
// Once every ten seconds or so. What was not used for some turns goes, in two steps: it is unsent first, and freed only
// turns later, when no record that was under way can name it any more.
void stacks_turn(struct stacks *s);
uint64_t stacks_evicted(const struct stacks *s); // that went for the memory's sake
size_t stacks_memory(const struct stacks *s);

#endif
