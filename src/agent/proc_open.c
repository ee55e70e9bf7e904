// SPDX-License-Identifier: Apache-2.0
#include "agent/proc_open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/procs_mounts.h"

// Others may lead to a mount that their text does not name.
static bool is_plain(const char *path)
{
	if (*path != '/')
		return false;
	while (*path == '/') {
		size_t len = strcspn(++path, "/");

		if ((!len && *path) || (len == 1 && *path == '.') || (len == 2 && !memcmp(path, "..", 2)))
			return false;
		path += len;
	}
	return !*path;
}

bool proc_path_is_remote(pid_t pid, const char *path)
{
	struct buf points = { 0 };
	bool remote = true;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/mountinfo", pid);
	if (is_plain(path) && !mounts_remote_points(name, &points))
		remote = mounts_path_is_remote(&points, path);
	buf_free(&points);
	return remote;
}

// To open it asks its server; to read where the link leads does not.
static bool leads_far(pid_t pid, const char *link)
{
	char target[PATH_MAX];
	ssize_t n = readlink(link, target, sizeof(target) - 1);

	if (n < 0)
		return false; // nor can it be opened
	target[n] = 0;
	return proc_path_is_remote(pid, target);
}

int proc_open_folder(pid_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	if (!strcmp(name, "cwd") && leads_far(pid, path))
		return -EREMOTE;
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int proc_open_below(int folder, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .mode = mode, .resolve = resolve | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static bool look_local(pid_t pid, int fd, struct statx *ret)
{
	enum mount_kind kind;
	char mounts[64];

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS | STATX_MNT_ID, ret))
		return false;
	snprintf(mounts, sizeof(mounts), "/proc/%d/mountinfo", pid);
	kind = mounts_kind(mounts, ret->stx_mnt_id);
	return kind == MOUNT_LOCAL || kind == MOUNT_LAYERED;
}

bool proc_is_local(pid_t pid, int fd)
{
	struct statx st;

	return look_local(pid, fd, &st);
}

int proc_open_to_read(pid_t pid, int found)
{
	struct statx st;
	char path[64];
	int fd;

	if (!look_local(pid, found, &st) || !S_ISREG(st.stx_mode))
		return -EACCES;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
