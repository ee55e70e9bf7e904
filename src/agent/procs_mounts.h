// SPDX-License-Identifier: Apache-2.0
// What a mountinfo file says about the file systems that mapped files lie on, and about cgroup hierarchies.
#ifndef BLKPROF_AGENT_PROCS_MOUNTS_H
#define BLKPROF_AGENT_PROCS_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

enum mount_kind {
	MOUNT_UNKNOWN,
	MOUNT_LOCAL,
	MOUNT_LAYERED, // device numbers of its files differ between stat and /proc/PID/maps; inodes agree
	MOUNT_REMOTE   // a server or a daemon answers, or does not
};

enum mount_kind mounts_kind_of_type(const char *type);
// The kind of a mount by its id (of statx); MOUNT_UNKNOWN when that namespace has no such mount.
enum mount_kind mounts_kind(const char *mountinfo, uint64_t mount_id);
// Appends the points of remote mounts, each terminated, and one empty one behind the last.
int mounts_remote_points(const char *mountinfo, struct buf *ret);
// Whether a walk to the absolute path enters one of them.
bool mounts_path_is_remote(const struct buf *points, const char *path);
// Folder of a cgroup: of the unified hierarchy (controller ""), or of a v1 controller. -ENOENT when its hierarchy is not
// mounted, or no mount shows that cgroup.
int mounts_cgroup_folder(const char *mountinfo, const char *controller, const char *cgroup, char *out, size_t cap);

#endif
