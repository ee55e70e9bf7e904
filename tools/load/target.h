// SPDX-License-Identifier: Apache-2.0
// A file or a block device that requests go to: opened, laid out, and what is known of the disk under it.
#ifndef LOAD_TARGET_H
#define LOAD_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

struct target;

// Opens PATH. A file that is missing or smaller than `create` bytes is made that long, allocated at once, written over
// and synced, so that its blocks are there and nothing of it is dirty. create = 0: it must exist. size_limit bounds what
// is used of it (0 = all).
int target_open(const char *path, uint64_t create, uint64_t size_limit, struct target **ret, struct error *e);
void target_free(struct target *t);

const char *target_path(const struct target *t);
uint64_t target_size(const struct target *t);
bool target_is_device(const struct target *t);
// Name of the whole disk ("vda"), or "" where there is none (a network or memory file system).
const char *target_disk(const struct target *t);
bool target_has_cache(const struct target *t); // the disk has a volatile cache, so a flush reaches it
bool target_zeroes(const struct target *t);    // the disk has a write zeroes command
unsigned target_extents(const struct target *t); // 0 for a device, and where the file system does not tell
// How many extents the range touches: one request each.
unsigned target_pieces(const struct target *t, uint64_t offset, uint64_t size);

// A file descriptor of its own for an entry; negative errno.
int target_fd(const struct target *t, bool writes, bool direct, struct error *e);
// Writes out and drops the cached pages of the target.
int target_drop_cache(const struct target *t, struct error *e);

#endif
