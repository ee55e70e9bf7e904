// SPDX-License-Identifier: Apache-2.0
// What /proc/PID/stat says of a process or a thread.
#ifndef BLKPROF_AGENT_PROCSTAT_H
#define BLKPROF_AGENT_PROCSTAT_H

#include <stdbool.h>
#include <stdint.h>

struct procstat {
	char comm[64];
	char state;   // 'R', 'S', 'D', ...
	bool kernel;  // a thread of the kernel
	uint32_t cpu; // it ran on last
};

// Of the folder "/proc/PID" or "/proc/PID/task/TID". Negative errno.
int procstat_read(const char *folder, struct procstat *ret);
int procstat_parse(const char *text, struct procstat *ret);

#endif
