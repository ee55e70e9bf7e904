// SPDX-License-Identifier: Apache-2.0
// Named frames and stacks of them, each kept once: equal code of many processes is one frame, equal stacks are one
// stack, known by a small number. Nothing is counted: what is still used is marked from time to time, the rest goes.
#ifndef BLKPROF_AGENT_FRAMES_H
#define BLKPROF_AGENT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/record_rec.h"
#include "symbolize/symbolize.h"

enum frame_kind {
	FRAME_SYNTHETIC, // "[in flight]", generated code: only a name
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

struct frame_stack {
	unsigned n;
	bool recovered;		     // the caller of libc's wrapper was recovered from the stack's top
	const struct frame **frames; // outermost first, without the process
};

struct frames;

struct frames *frames_new(void);
void frames_free(struct frames *f);
size_t frames_memory(const struct frames *f); // bytes in use
bool frames_no_memory(const struct frames *f); // something could not be kept, ever

// Texts by number; 0 without memory, and for "".
uint32_t frames_text(struct frames *f, const char *text);
const char *frames_text_get(const struct frames *f, uint32_t id); // "" for 0

// Each NULL without memory. A frame is a pointer that may be compared.
const struct frame *frames_synthetic(struct frames *f, const char *name);
// Generated code; `raw` is the name as the runtime wrote it, or NULL.
const struct frame *frames_generated(struct frames *f, const char *name, const char *raw);
const struct frame *frames_kernel(struct frames *f, const char *name);
// The mapping of a module; it stays when the module goes, and is the same when the module comes again.
const struct frame_mapping *frames_mapping(struct frames *f, const struct sym_module *module, uint64_t offset, uint64_t size,
					   uint64_t start, const char *path);
// The frame at an offset in a mapping, NULL when it is not known yet; then it is added.
const struct frame *frames_user(struct frames *f, const struct frame_mapping *mapping, uint64_t offset);
const struct frame *frames_user_add(struct frames *f, const struct frame_mapping *mapping, uint64_t offset,
				    const struct sym_module *module, const struct sym_line *lines, unsigned n);

// The number of a stack, from 1; 0 without memory.
uint32_t frames_stack(struct frames *f, const struct frame *const *frames, unsigned n, bool recovered);
const struct frame_stack *frames_stack_get(const struct frames *f, uint32_t id); // NULL for 0

// Drops what is not marked between begin and end, with what only that used. Numbers of what goes are given again.
void frames_sweep_begin(struct frames *f);
void frames_mark_stack(struct frames *f, uint32_t id);
void frames_mark_text(struct frames *f, uint32_t id);
void frames_sweep_end(struct frames *f);

#endif
