// SPDX-License-Identifier: Apache-2.0
// Tables as the kernel side reads them, each once however many processes run its file. Not thread-safe.
#ifndef BLKPROF_AGENT_UNWIND_TABLES_H
#define BLKPROF_AGENT_UNWIND_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/unwind_ids.h"
#include "agent/unwind_store.h"
#include "unwind/unwind.h"

struct unwind_tables;

struct unwind_loaded {
	uint64_t base;		  // of the file's virtual addresses
	uint32_t index, n_index; // as in struct unwind_mapping; index 0: the file has no table
	uint64_t used_ns;	  // set by whoever uses it; what was used longest ago is given up first
	uint64_t cost_ns;	  // that compiling took
};

struct unwind_tables *unwind_tables_new(struct unwind_store *store, struct unwind_ids *ids);
void unwind_tables_free(struct unwind_tables *t);
// What is known of a file, or NULL.
struct unwind_loaded *unwind_tables_find(const struct unwind_tables *t, const char *identity);
// Takes in a compiled table, or NULL for a file that has none: that is remembered too. -ENOSPC when the store is full:
// give something up, wait, and try again.
int unwind_tables_add(struct unwind_tables *t, const char *identity, const struct unwind_table *table,
		      struct unwind_loaded **ret);
// Forgets it, once no process points to it any more. Its memory is used again after the next reclaim.
void unwind_tables_drop(struct unwind_tables *t, struct unwind_loaded *l);
// The one that was used longest ago, before `before_ns`, of all or of those with a table; NULL when there is none.
struct unwind_loaded *unwind_tables_oldest(const struct unwind_tables *t, uint64_t before_ns, bool with_table);
const char *unwind_tables_identity(const struct unwind_loaded *l);
// Calls for each; may drop it.
void unwind_tables_each(struct unwind_tables *t, void (*fn)(struct unwind_loaded *l, void *context), void *context);
unsigned unwind_tables_count(const struct unwind_tables *t);

#endif
