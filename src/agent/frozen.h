// SPDX-License-Identifier: Apache-2.0
// Whether a process's cgroup is frozen (a container that is paused): it takes no signal until it is thawed.
#ifndef BLKPROF_AGENT_FROZEN_H
#define BLKPROF_AGENT_FROZEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

bool process_is_frozen(pid_t pid); // false also when that cannot be told
// The path in one line of /proc/PID/cgroup, when it is of the unified hierarchy (controller "") or of v1's freezer; else NULL.
// The line is terminated.
const char *frozen_cgroup_path(const char *line, const char **ret_controller);

#endif
