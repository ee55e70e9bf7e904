// SPDX-License-Identifier: Apache-2.0
// What /proc/PID/status says of who a process is.
#ifndef BLKPROF_AGENT_PROC_STATUS_H
#define BLKPROF_AGENT_PROC_STATUS_H

#include <stdbool.h>
#include <sys/types.h>

struct proc_status {
	uid_t uid; // effective, as our user namespace sees it
	gid_t gid;
	pid_t inner_pid; // its number in its own pid namespace
	bool catches_quit; // it has a handler for SIGQUIT
	bool stopped;	   // by a signal or a debugger
};

int proc_status_read(pid_t pid, struct proc_status *ret);
// The same from the file's text. -EINVAL when a line is missing.
int proc_status_parse(const char *text, struct proc_status *ret);

#endif
