// SPDX-License-Identifier: Apache-2.0
// Memory that the walk on the kernel side reads: arenas of 1 MiB, made when they are needed, and extents of words in
// them. Not thread-safe.
#ifndef BLKPROF_AGENT_UNWIND_STORE_H
#define BLKPROF_AGENT_UNWIND_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rec.h"

struct unwind_store;

// `map` is the map of arenas; -1 for arenas that nobody else sees. At most `bytes` of them.
struct unwind_store *unwind_store_new(int map, size_t bytes);
void unwind_store_free(struct unwind_store *s);
// An extent at an even word, zeroed. -ENOSPC beyond the limit; -E2BIG for what no arena holds.
int unwind_store_take(struct unwind_store *s, uint32_t words, uint32_t *ret_place);
uint32_t *unwind_store_at(const struct unwind_store *s, uint32_t place);
// Gives an extent back. It is used again after unwind_store_reclaim, which the caller calls when nothing points to what
// was given back and no program that may have seen it still runs.
int unwind_store_give(struct unwind_store *s, uint32_t place, uint32_t words);
void unwind_store_reclaim(struct unwind_store *s);
size_t unwind_store_given(const struct unwind_store *s); // extents that wait for that
size_t unwind_store_bytes(const struct unwind_store *s); // of arenas
size_t unwind_store_used(const struct unwind_store *s);	 // bytes of extents

#endif
