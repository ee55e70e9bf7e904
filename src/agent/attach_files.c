// SPDX-License-Identifier: Apache-2.0
#include "agent/attach_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/proc_open.h"

#define STALE_S 120 // no JVM takes so long; who made it was killed

// The system calls themselves change this thread alone.
int as_user_begin(struct as_user *a, const struct proc_status *status)
{
	a->changed = false;
	if (geteuid() || !status->uid)
		return geteuid() && geteuid() != status->uid ? -EPERM : 0;
	a->group = getegid();
	a->n_groups = getgroups(sizeof(a->groups) / sizeof(*a->groups), a->groups);
	if (a->n_groups < 0)
		return -errno;
	a->changed = true;
	if (!syscall(SYS_setgroups, 0, NULL) && !syscall(SYS_setresgid, -1, status->gid, -1) &&
	    !syscall(SYS_setresuid, -1, status->uid, -1))
		return 0;
	as_user_end(a);
	return -EPERM;
}

void as_user_end(struct as_user *a)
{
	if (!a->changed)
		return;
	syscall(SYS_setresuid, -1, 0, -1);
	syscall(SYS_setresgid, -1, a->group, -1);
	syscall(SYS_setgroups, a->n_groups, a->groups);
	a->changed = false;
}

int attach_socket_find(pid_t pid, const struct proc_status *status)
{
	char path[64];
	struct stat st;
	int root, fd;

	snprintf(path, sizeof(path), "/tmp/.java_pid%d", status->inner_pid);
	if (proc_path_is_remote(pid, path))
		return -EREMOTE;
	root = proc_open_folder(pid, "root");
	if (root < 0)
		return root;
	fd = proc_open_below(root, path, O_PATH | O_NOFOLLOW, 0, RESOLVE_IN_ROOT);
	close(root);
	if (fd < 0)
		return fd;
	if (!fstat(fd, &st) && S_ISSOCK(st.st_mode) && st.st_uid == status->uid)
		return fd;
	close(fd);
	return -EACCES;
}

static int open_tmp(pid_t pid)
{
	int root, fd;

	if (proc_path_is_remote(pid, "/tmp"))
		return -EREMOTE;
	root = proc_open_folder(pid, "root");
	if (root < 0)
		return root;
	fd = proc_open_below(root, "/tmp", O_PATH | O_DIRECTORY, 0, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
	close(root);
	return fd;
}

static int make(struct attach_trigger *t, int folder, const struct proc_status *status)
{
	int fd = proc_open_below(folder, t->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	struct stat st;
	int err = fd < 0 ? fd : 0;

	// A JVM does not trust another user's.
	if (!err && (fstat(fd, &st) || st.st_uid != status->uid)) {
		unlinkat(folder, t->name, 0);
		err = -EACCES;
	}
	if (fd >= 0)
		close(fd);
	if (err)
		return err;
	t->dev = st.st_dev;
	t->inode = st.st_ino;
	return 0;
}

// Whether what is there was left behind by somebody who was killed.
static bool is_stale(int folder, const char *name, const struct proc_status *status)
{
	struct stat st;

	return !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) && st.st_uid == status->uid && !st.st_size &&
	       time(NULL) - st.st_mtime > STALE_S;
}

static int make_in(struct attach_trigger *t, int folder, const struct proc_status *status)
{
	int err = make(t, folder, status);

	if (err == -EEXIST && is_stale(folder, t->name, status) && !unlinkat(folder, t->name, 0))
		err = make(t, folder, status);
	return err == -EEXIST ? -EBUSY : err;
}

// The JVM looks into its own folder first, and no further when there is such a file, whosever it is.
static bool is_there(int folder, const char *name)
{
	struct stat st;

	return !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || (errno != ENOENT && errno != EACCES);
}

int attach_trigger_place(struct attach_trigger *t, pid_t pid, const struct proc_status *status)
{
	int folder = proc_open_folder(pid, "cwd"), tmp = open_tmp(pid), err = folder < 0 ? folder : 0;
	struct as_user user;

	snprintf(t->name, sizeof(t->name), ".attach_pid%d", status->inner_pid);
	t->folder = -1;
	if (!err && (!proc_is_local(pid, folder) || tmp == -EREMOTE || (tmp >= 0 && !proc_is_local(pid, tmp))))
		err = -EREMOTE;
	if (!err)
		err = as_user_begin(&user, status);
	if (!err) {
		err = make_in(t, folder, status);
		if (!err) {
			t->folder = folder;
		} else if (err != -EBUSY && tmp >= 0 && !is_there(folder, t->name)) {
			err = make_in(t, tmp, status);
			t->folder = err ? -1 : tmp;
		}
		as_user_end(&user);
	}
	if (folder >= 0 && folder != t->folder)
		close(folder);
	if (tmp >= 0 && tmp != t->folder)
		close(tmp);
	return err;
}

void attach_trigger_remove(struct attach_trigger *t, const struct proc_status *status)
{
	struct as_user user;
	struct stat st;

	if (t->folder < 0)
		return;
	if (!as_user_begin(&user, status)) {
		if (!fstatat(t->folder, t->name, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == t->dev && st.st_ino == t->inode)
			unlinkat(t->folder, t->name, 0);
		as_user_end(&user);
	}
	close(t->folder);
	t->folder = -1;
}
