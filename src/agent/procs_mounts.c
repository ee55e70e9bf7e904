// SPDX-License-Identifier: Apache-2.0
#include "agent/procs_mounts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/mountinfo.h"

static bool listed(const char *type, const char *const *names)
{
	for (; *names; names++) {
		if (!strcmp(type, *names))
			return true;
	}
	return false;
}

enum mount_kind mounts_kind_of_type(const char *type)
{
	static const char *const remote[] = {
		"nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "afs", "9p", "glusterfs", "lustre", "beegfs", "orangefs",
		"pvfs2", "coda", "gpfs", "fuse", "fuseblk", "autofs", NULL,
	};
	static const char *const layered[] = { "overlay", "btrfs", "bcachefs", "aufs", NULL };

	if (listed(type, remote) || !strncmp(type, "fuse.", 5))
		return MOUNT_REMOTE;
	return listed(type, layered) ? MOUNT_LAYERED : MOUNT_LOCAL;
}

struct kind_search {
	uint64_t id;
	enum mount_kind kind;
};

static int find_kind(const struct mount *m, void *data)
{
	struct kind_search *s = data;

	if (m->id != s->id)
		return 0;
	s->kind = mounts_kind_of_type(m->type);
	return 1;
}

enum mount_kind mounts_kind(const char *mountinfo, uint64_t mount_id)
{
	struct kind_search s = { mount_id, MOUNT_UNKNOWN };

	mountinfo_each(mountinfo, find_kind, &s);
	return s.kind;
}

static int add_remote(const struct mount *m, void *data)
{
	struct buf *points = data;

	if (mounts_kind_of_type(m->type) == MOUNT_REMOTE)
		buf_append(points, m->point, strlen(m->point) + 1);
	return points->error;
}

int mounts_remote_points(const char *mountinfo, struct buf *ret)
{
	int err = mountinfo_each(mountinfo, add_remote, ret);

	if (err)
		return err;
	buf_byte(ret, 0);
	return ret->error;
}

// The rest of path behind the folder ("" for the folder itself), or NULL when it does not lie in it.
static const char *below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	if (n && folder[n - 1] == '/')
		n--;
	if (strncmp(path, folder, n) || (path[n] && path[n] != '/'))
		return NULL;
	return path + n;
}

bool mounts_path_is_remote(const struct buf *points, const char *path)
{
	for (const char *at = (const char *)points->data; at && *at; at += strlen(at) + 1) {
		if (below(path, at))
			return true;
	}
	return false;
}

struct cgroup_search {
	const char *controller, *cgroup;
	char *out;
	size_t cap;
};

static int find_folder(const struct mount *m, void *data)
{
	struct cgroup_search *s = data;
	const char *rest;

	if (strcmp(m->type, s->controller[0] ? "cgroup" : "cgroup2"))
		return 0;
	if (s->controller[0] && !mountinfo_option(m->super, s->controller))
		return 0;
	rest = below(s->cgroup, m->root);
	if (!rest)
		return 0;
	return (size_t)snprintf(s->out, s->cap, "%s%s", m->point, rest) < s->cap ? 1 : -ENAMETOOLONG;
}

int mounts_cgroup_folder(const char *mountinfo, const char *controller, const char *cgroup, char *out, size_t cap)
{
	struct cgroup_search s = { controller, cgroup, out, cap };
	int err = mountinfo_each(mountinfo, find_folder, &s);

	return err == 1 ? 0 : err ? err : -ENOENT;
}
