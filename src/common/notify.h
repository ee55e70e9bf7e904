// SPDX-License-Identifier: Apache-2.0
// The service manager's notification socket (sd_notify(3)), by a datagram of our own.
#ifndef BLKPROF_COMMON_NOTIFY_H
#define BLKPROF_COMMON_NOTIFY_H

// "READY=1", "STOPPING=1", "RELOADING=1\nMONOTONIC_USEC=…", "STATUS=…", "WATCHDOG=1": assignments, one a line. 0 sent,
// 1 nobody wants to know ($NOTIFY_SOCKET is not set), or a negative errno; never waits.
int notify_send(const char *state);
// "RELOADING=1" with the time that the manager wants beside it. "READY=1" ends it.
int notify_reloading(void);
// The variable is not for the programs that we start.
void notify_forget(void);

#endif
