// SPDX-License-Identifier: Apache-2.0
// The files of HotSpot's attach protocol, where the JVM sees them: its socket /tmp/.java_pidNSPID, and the file
// .attach_pidNSPID that tells it to open one when it gets a SIGQUIT. Whoever rules the JVM's folders is not trusted: no
// link is followed out of them, and files are made with the rights of the JVM's user.
#ifndef BLKPROF_AGENT_ATTACH_FILES_H
#define BLKPROF_AGENT_ATTACH_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/proc_status.h"

// This thread alone takes the process's user and group, where we are root and it is not, and comes back. -EPERM without the
// capabilities for it (CAP_SETUID, CAP_SETGID).
struct as_user {
	bool changed;
	int n_groups;
	gid_t groups[64], group;
};
int as_user_begin(struct as_user *a, const struct proc_status *status);
void as_user_end(struct as_user *a);

// An O_PATH descriptor of the socket, its user's; -ENOENT when there is none, -EREMOTE when a server has to answer for /tmp.
int attach_socket_find(pid_t pid, const struct proc_status *status);

struct attach_trigger {
	int folder; // owned; -1 = none
	char name[32];
	uint64_t dev, inode;
};

// Makes the file in the process's folder, else in its /tmp. -EBUSY when it is there already: somebody else attaches; -EREMOTE
// when a server has to answer for one of them.
int attach_trigger_place(struct attach_trigger *t, pid_t pid, const struct proc_status *status);
// Takes the file away, if it is still the one.
void attach_trigger_remove(struct attach_trigger *t, const struct proc_status *status);

#endif
