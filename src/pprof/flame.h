// SPDX-License-Identifier: Apache-2.0
// The tree of a flame graph: stacks with a common beginning share it.
#ifndef BLKPROF_PPROF_FLAME_H
#define BLKPROF_PPROF_FLAME_H

#include "pprof/export.h"

struct flame_node {
	uint32_t frame; // 0 = the whole
	uint32_t parent;
	uint32_t first_child, n_children; // in `order`
	int64_t value;
	double x; // left edge, 0 to 1
};

struct flame {
	const struct folded *folded;
	size_t type;
	struct intern edges; // {parent, frame}: id of the edge = index of the node below it
	struct flame_node *nodes; // [0] is the whole
	size_t nodes_cap, n;
	uint32_t *order; // node indexes by parent, then by name
	size_t order_cap;
	bool cut; // something lies deeper than is shown
};

#endif
