// SPDX-License-Identifier: Apache-2.0
// Reads /proc/PID/maps, /proc/PID/stat within bounds.
#ifndef BLKPROF_AGENT_PROCS_MAPS_H
#define BLKPROF_AGENT_PROCS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbolize/procmaps.h"

// Calls `each` for every line until it returns false. Lines that the kernel would not write are passed over.
int procs_maps_read(pid_t pid, bool (*each)(const struct procmaps_entry *e, void *context), void *context);
// The same for lines from a descriptor.
int procs_maps_read_fd(int fd, bool (*each)(const struct procmaps_entry *e, void *context), void *context);

struct procs_stat {
	char comm[64]; // as it is, terminated
	size_t comm_len;
	pid_t ppid;
	bool kernel_thread;
	uint64_t starttime; // clock ticks since boot
};

// The text of /proc/PID/stat: "PID (comm) S ppid …"; the comm may hold anything. -EINVAL.
int procs_stat_parse(const char *text, size_t len, struct procs_stat *ret);
int procs_stat_read(pid_t pid, struct procs_stat *ret);

#endif
