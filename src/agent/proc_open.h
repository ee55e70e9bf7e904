// SPDX-License-Identifier: Apache-2.0
// Folders and files as a process sees them. Whoever rules them is not trusted: callers say how far links may lead, and that
// a server has to answer for a file is found before it is touched.
#ifndef BLKPROF_AGENT_PROC_OPEN_H
#define BLKPROF_AGENT_PROC_OPEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// Whether a walk to the absolute path in its root could wait for a server; also when nobody can tell.
bool proc_path_is_remote(pid_t pid, const char *path);
// An O_PATH descriptor of its folder, "root" or "cwd"; or negative errno: -EREMOTE for a cwd that a server has to answer for.
int proc_open_folder(pid_t pid, const char *name);
// As openat2(2), without magic links, for this program alone; or negative errno.
int proc_open_below(int folder, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve);
// Whether the kernel itself answers for it: no server on the network, and nobody's FUSE.
bool proc_is_local(pid_t pid, int fd);
// Reads anew what an O_PATH descriptor is of, if it is a regular file that is local; -EACCES if not.
int proc_open_to_read(pid_t pid, int found);

#endif
