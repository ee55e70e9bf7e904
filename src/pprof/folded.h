// SPDX-License-Identifier: Apache-2.0
// A profile as stacks of named frames, root first: what the other formats are made of. Inlined calls are frames of their
// own; labels can be frames.
#ifndef BLKPROF_PPROF_FOLDED_H
#define BLKPROF_PPROF_FOLDED_H

#include "common/error.h"
#include "pprof/profile.h"

enum frame_kind {
	FRAME_USER,
	FRAME_KERNEL,
	FRAME_SYNTHETIC, // a process, a label, "[in flight]": no code
	FRAME_KINDS
};

struct frame {
	uint32_t name, file; // ids of `names`; file 0 = unknown
	uint32_t kind;	     // enum frame_kind
};

struct folded {
	const struct profile *profile;
	struct memory_budget *budget; // of the reader
	struct intern names;
	struct intern frames; // struct frame
	struct intern stacks; // uint32_t frame ids, root first
	int64_t *values;      // n_types for each stack
	size_t values_cap;
};

struct folded_options {
	const char *root; // keys of labels, separated by commas, that become frames `key=value`; NULL = none
	bool files;	  // functions of the same name in different source files are different frames
};

#define FOLDED_ROOTS_MAX 16

// 0, -EINVAL (root), -ENOMEM, -E2BIG with a message. f is to be freed in any case.
int folded_make(struct folded *f, const struct profile *p, struct memory_budget *budget, const struct folded_options *o,
		struct error *e);
void folded_free(struct folded *f);

static inline const struct frame *folded_frame(const struct folded *f, uint32_t id)
{
	return intern_key(&f->frames, id);
}

static inline const char *folded_name(const struct folded *f, uint32_t frame)
{
	return intern_key(&f->names, folded_frame(f, frame)->name);
}

#endif
