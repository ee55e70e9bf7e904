// SPDX-License-Identifier: Apache-2.0
// Grows an unwind_table: rows in order of address, equal rules once.
#ifndef BLKPROF_UNWIND_ROWS_H
#define BLKPROF_UNWIND_ROWS_H

#include "unwind/unwind.h"

struct rows {
	struct unwind_table *table; // owned
	size_t rows_room, rules_room;
	unsigned limit;
	uint16_t *index; // owned; rules by hash, UINT16_MAX = free
	size_t index_size;
};

int unwind_rows_begin(struct rows *r, uint64_t base, unsigned limit, struct error *e);
// The rule holds from pc on, which is not below the last row's. -EFBIG: more rows than the limit.
int unwind_rows_add(struct rows *r, uint32_t pc, const struct unwind_rule *rule, struct error *e);
// The table, which the caller owns; clears r.
struct unwind_table *unwind_rows_end(struct rows *r);
void unwind_rows_free(struct rows *r);

#endif
