// SPDX-License-Identifier: Apache-2.0
// Finds a cgroup by what a user calls it, in whichever hierarchies this host has mounted.
#ifndef BLKPROF_AGENT_CGROUP_H
#define BLKPROF_AGENT_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct cgroup_id {
	uint64_t id; // inode of its folder, which is the kernel's id of it
	bool v1;
	char controller[16]; // of the v1 hierarchy: "memory"; "" for unified
};

// NAME is a path under a cgroup mount (/sys/fs/cgroup/memory/web), or a name below one (/system.slice/x.service, with or
// without its slash). For a name the unified hierarchy comes first, then v1 memory, pids, blkio, the rest; a group without
// processes only when no other hierarchy has it with some. mountinfo NULL = /proc/self/mountinfo.
int cgroup_find(const char *mountinfo, const char *name, struct cgroup_id *ret, struct error *e);

#endif
