// SPDX-License-Identifier: Apache-2.0
// What a profile shows of a window: less than was recorded, or in another shape.
#ifndef BLKPROF_AGENT_VIEW_H
#define BLKPROF_AGENT_VIEW_H

#include "agent/recorder.h"
#include "pprof/builder.h"

struct window_view {
	const char *service; // its name; NULL = every one
	const char *device;  // name of the disk, as the label has it, /dev/NAME, mapper name or mount point; NULL = every one
	const char *root;    // labels shown as frames, comma-separated; NULL = those of the recording
	enum label_set labels;
	enum pprof_type type; // the default one
};

int label_set_parse(const char *text, enum label_set *ret); // all, comm, few, none; -EINVAL
const char *label_set_name(enum label_set set);
// -EINVAL with a message when `root` or `labels` is unknown, or asks for what the recording of `recorded` does not have.
int view_check(const struct window_view *v, enum label_set recorded, struct error *e);

// window_profile of a part.
int window_profile_view(struct window *w, const struct window_view *v, struct buf *ret_gz, struct error *e);

#endif
