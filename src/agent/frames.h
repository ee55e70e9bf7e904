// SPDX-License-Identifier: Apache-2.0
// The frames of sampled stacks: raw stacks by hash as the kernel side sends them, and their names.
#ifndef BLKPROF_AGENT_FRAMES_H
#define BLKPROF_AGENT_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/aggregate.h"
#include "agent/procs.h"
#include "bpf/record_rec.h"
#include "symbolize/symbolize.h"

struct stacks; // hash to frames

struct stacks *stacks_new(unsigned max);
void stacks_free(struct stacks *s);
// Validates and keeps a stack record of `size` bytes. -EINVAL when it is malformed, -ENOSPC beyond max.
int stacks_add(struct stacks *s, const void *record, size_t size);
struct stack_frames {
	const uint64_t *callers, *user, *kernel; // leaf first
	unsigned n_callers, n_user, n_kernel;
	uint8_t flags; // enum stack_flag
	uint8_t broken; // enum unwind_break
};
bool stacks_find(const struct stacks *s, uint64_t hash, struct stack_frames *ret);

enum frame_kind {
	FRAME_SYNTHETIC, // a process, "[in flight]": only a name
	FRAME_USER,
	FRAME_KERNEL,
};

struct frame_mapping {
	uint64_t start, limit, offset;
	const char *file, *build_id;
	bool has_filenames, has_line_numbers, has_inline_frames;
};

struct frame {
	enum frame_kind kind;
	uint64_t address;		      // as if every process had the mapping at `start`
	const struct frame_mapping *mapping; // user frames with a file
	unsigned n_lines;		      // innermost inlined call first
	struct sym_line *lines;
};

#define FRAMES_MAX (2 * RECORD_FRAMES + 16)

// Names frames; remembers each, so that a frame is a pointer that may be compared. Everything lives until resolver_free.
struct resolver;

struct resolver *resolver_new(struct symbolizer *symbolizer, struct procs *procs, const struct stacks *stacks);
void resolver_free(struct resolver *r);
// The frames of a row, root (the process) first, `extra` frames below the root; at most FRAMES_MAX. Returns how many;
// negative without memory. ret_recovered: the caller of libc's wrapper was recovered from the stack's top.
int resolver_row(struct resolver *r, const struct row *row, const char *const *extra, unsigned n_extra,
		 const struct frame *out[FRAMES_MAX], bool *ret_recovered);
// The name of the row's process as its root frame shows it, and its service.
const char *resolver_process(struct resolver *r, const struct row *row);
const char *resolver_service(struct resolver *r, const struct row *row);
uint64_t resolver_stacks_missing(const struct resolver *r); // rows whose stack record was lost, in samples

#endif
