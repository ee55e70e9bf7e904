// SPDX-License-Identifier: Apache-2.0
#include "agent/cgroup.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/mountinfo.h"
#include "common/file.h"

struct search {
	const char *name; // without slashes at its ends
	bool absolute;	  // it began with one
	struct cgroup_id found;
	int rank;	  // of what was found; 0 = nothing
	bool any;	  // a cgroup hierarchy is mounted
	bool only_named;  // found, but in a hierarchy without a controller
};

// Controllers by how likely a group is there for what it does to memory and disks; the kernel's name, as in mount options.
static const char *const controllers[] = { "memory", "pids", "blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer",
					   "net_cls", "net_prio", "perf_event", "hugetlb", "rdma", "misc" };
#define N_CONTROLLERS (sizeof(controllers) / sizeof(*controllers))

// The mount's own controller, or N_CONTROLLERS for a named hierarchy (name=systemd).
static size_t controller_of(const struct mount *m)
{
	size_t i;

	for (i = 0; i < N_CONTROLLERS; i++)
		if (mountinfo_option(m->super, controllers[i]))
			break;
	return i;
}

// cgroup.events says it of a group with all below; v1 has no such file and only cgroup.procs of the group itself.
static bool is_populated(const char *folder)
{
	char path[PATH_MAX + 20], line[64];
	struct buf b = { 0 };
	bool populated;

	if ((size_t)snprintf(path, sizeof(path), "%s/cgroup.events", folder) >= sizeof(path))
		return false;
	if (!file_read(path, 4096, &b)) {
		populated = strstr((char *)b.data, "populated 1");
		buf_free(&b);
		return populated;
	}
	buf_free(&b);
	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	return !file_read_line(path, line, sizeof(line)) && line[0];
}

static void consider(struct search *s, const struct mount *m, const char *below)
{
	bool unified = !strcmp(m->type, "cgroup2");
	size_t controller = unified ? 0 : controller_of(m);
	char path[PATH_MAX];
	struct stat st;
	int rank;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", m->point, below) >= sizeof(path) || stat(path, &st) || !S_ISDIR(st.st_mode))
		return;
	if (!unified && controller == N_CONTROLLERS) {
		s->only_named = true;
		return;
	}
	rank = (unified ? 100 : 50 - (int)controller) + (is_populated(path) ? 1000 : 0);
	if (rank <= s->rank)
		return;
	s->rank = rank;
	s->found.id = st.st_ino;
	s->found.v1 = !unified;
	snprintf(s->found.controller, sizeof(s->found.controller), "%s", unified ? "" : controllers[controller]);
}

static bool is_cgroup(const struct mount *m)
{
	return !strcmp(m->type, "cgroup") || !strcmp(m->type, "cgroup2");
}

// NAME is a path that lies under this mount.
static int match_path(const struct mount *m, void *data)
{
	struct search *s = data;
	size_t len = strlen(m->point);

	// The name has lost its first slash.
	if (!is_cgroup(m) || len < 2 || strncmp(s->name, m->point + 1, len - 1) || (s->name[len - 1] && s->name[len - 1] != '/'))
		return 0;
	consider(s, m, s->name[len - 1] ? s->name + len : "");
	return 0;
}

static int match_name(const struct mount *m, void *data)
{
	struct search *s = data;

	if (!is_cgroup(m))
		return 0;
	s->any = true;
	consider(s, m, s->name);
	return 0;
}

static bool has_dots(const char *name)
{
	for (const char *p = name; *p; p += strcspn(p, "/"), p += *p == '/')
		if (p[0] == '.' && (!p[1] || p[1] == '/' || (p[1] == '.' && (!p[2] || p[2] == '/'))))
			return true;
	return false;
}

int cgroup_find(const char *mountinfo, const char *name, struct cgroup_id *ret, struct error *e)
{
	struct search s = { 0 };
	char copy[PATH_MAX];
	size_t start = strspn(name, "/"), len = strlen(name);
	int err;

	while (len > start && name[len - 1] == '/')
		len--;
	if (!*name || len - start >= sizeof(copy))
		return error_set(e, -EINVAL, "--cgroup: '%.60s' is no cgroup's path", name);
	memcpy(copy, name + start, len - start);
	copy[len - start] = 0;
	if (has_dots(copy))
		return error_set(e, -EINVAL, "--cgroup %.100s: give the path without '.' and '..'", name);
	s.name = copy;
	s.absolute = start;
	err = s.absolute ? mountinfo_each(mountinfo, match_path, &s) : 0;
	if (!err && !s.rank)
		err = mountinfo_each(mountinfo, match_name, &s);
	if (err)
		return error_set(e, err, "--cgroup: cannot read the mounts: %s", strerror(-err));
	if (s.rank) {
		*ret = s.found;
		return 0;
	}
	if (s.only_named)
		return error_set(e, -EOPNOTSUPP, "--cgroup %.100s is in a v1 hierarchy without a controller; name the group that holds "
				 "the same processes in memory, pids or blkio", name);
	if (!s.any)
		return error_set(e, -ENOENT, "--cgroup %.100s: no cgroup file system is mounted here", name);
	return error_set(e, -ENOENT, "no cgroup %.100s in any hierarchy; `systemd-cgls` or /proc/PID/cgroup show the names there are",
			 name);
}
