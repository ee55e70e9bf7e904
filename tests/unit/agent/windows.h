// SPDX-License-Identifier: Apache-2.0
// Windows of a recorder without probes: some operations of one kind each, nothing sampled.
#ifndef BLKPROF_TESTS_AGENT_WINDOWS_H
#define BLKPROF_TESTS_AGENT_WINDOWS_H

#include <string.h>

#include "agent/recorder_internal.h"
#include "agent/rows.h"

#define S 1000000000ull

static inline void recorder_make(struct recorder *r)
{
	struct resolver_options o = { .memory = 1 << 20 };

	memset(r, 0, sizeof(*r));
	strcpy(r->node, "n");
	strcpy(r->disks[0], "vda");
	strcpy(r->disks[1], "vdb");
	r->n_disks = 2;
	r->options.labels = LABELS_FEW_COMM;
	r->devices = devices_new(NULL, NULL);
	r->resolver = resolver_new(&o);
	assert_non_null(r->devices);
	assert_non_null(r->resolver);
}

static inline void recorder_unmake(struct recorder *r)
{
	assert_null(r->windows); // all of them were freed
	devices_free(r->devices);
	resolver_free(r->resolver);
}

static inline struct window *window_of(struct recorder *r, uint64_t start, uint64_t end, uint16_t disk, uint64_t ops)
{
	struct rows *rows = rows_new(0, start);
	struct window *w;

	assert_non_null(rows);
	rows_exact(rows, disk, OP_READ, ops, 4096 * ops);
	assert_int_equal(rows_scale(rows), 0);
	rows_end(rows, end);
	assert_int_equal(window_new(r, rows, start, end, 1000 * S + end, &w), 0);
	DL_APPEND(r->windows, w);
	return w;
}

#endif
