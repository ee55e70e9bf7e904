// SPDX-License-Identifier: Apache-2.0
// The rows of one window, for aggregate.c; users read them through aggregate.h.
#ifndef BLKPROF_AGENT_ROWS_H
#define BLKPROF_AGENT_ROWS_H

#include "agent/aggregate.h"

struct rows *rows_new(uint32_t window, uint64_t start);
void rows_end(struct rows *r, uint64_t end);
// The row of the key; beyond max_rows a row without stack and classes (*ret_folded). NULL without memory.
struct row *rows_find_or_add(struct rows *r, const struct row_key *key, unsigned max_rows, bool *ret_folded);
unsigned rows_size(const struct rows *r); // rows now, before rows_scale too
uint64_t rows_fold_pids(struct rows *r, bool (*gone)(uint32_t tgid, void *context), void *context);
// Takes an operation that was counted but will be submitted again out of the exact counters of (disk, op).
void rows_retract(struct rows *r, uint16_t disk, uint8_t op, double weight, uint32_t size);
// Operations of (disk, op) whose time is not known: the others' is scaled up for them.
void rows_lost(struct rows *r, uint16_t disk, uint8_t op, double weight);

// An operation (1, or 0 for a later part of one) and its time, at `at`.
void rows_went(struct rows *r, uint16_t disk, uint8_t op, uint64_t at, double ops, double time_ns);

#endif
