// SPDX-License-Identifier: Apache-2.0
// Numbers of rules: equal rules of all tables are one, known to the kernel side by 16 bits. Counted by the tables that use
// them. Not thread-safe.
#ifndef BLKPROF_AGENT_UNWIND_IDS_H
#define BLKPROF_AGENT_UNWIND_IDS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rec.h"

struct unwind_ids;

// `rules` is the array of UNWIND_RULES that the programs read; not owned.
struct unwind_ids *unwind_ids_new(struct unwind_rule *rules);
void unwind_ids_free(struct unwind_ids *ids);
// 0, which is no rule at all, when there are too many or no memory.
uint16_t unwind_ids_take(struct unwind_ids *ids, const struct unwind_rule *rule);
void unwind_ids_give(struct unwind_ids *ids, uint16_t id);
// Numbers that nobody uses may be given again: after a grace period, as with unwind_store_reclaim.
void unwind_ids_reclaim(struct unwind_ids *ids);
unsigned unwind_ids_count(const struct unwind_ids *ids);

#endif
