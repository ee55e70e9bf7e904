// SPDX-License-Identifier: Apache-2.0
#include "agent/jvm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/jvm_memory.h"
#include "agent/proc_open.h"
#include "agent/proc_threads.h"
#include "agent/procs_maps.h"
#include "common/file.h"

#define TEXT_MAX (2u << 20) // of arguments, and of the environment
#define FILE_BYTES_MAX (1u << 20)

struct search {
	struct jvm *jvm;
	bool found, other; // other: a JVM of another kind
};

static bool take_mapping(const struct procmaps_entry *e, void *context)
{
	size_t len = procmaps_strip_deleted(e->path, e->path_len, &(bool){ false });
	const char *slash = memrchr(e->path, '/', len), *name = slash ? slash + 1 : e->path;
	struct search *s = context;

	if (!slash || !e->inode)
		return true;
	len -= (size_t)(name - e->path);
	s->other |= len > 5 && !memcmp(name, "libj9", 5);
	if (!s->found && e->executable && len == 9 && !memcmp(name, "libjvm.so", 9)) {
		s->found = true;
		s->jvm->start = e->start;
		s->jvm->limit = e->limit;
		s->jvm->offset = e->offset;
	}
	return true;
}

static int find_library(pid_t pid, struct jvm *jvm)
{
	struct search s = { .jvm = jvm };
	int err = procs_maps_read(pid, take_mapping, &s);

	if (err)
		return err;
	return s.found && !s.other ? 0 : -ENOENT;
}

// A whole path in the process's root, another one below its folder: no link leads out of them, nor to a server that does not
// answer.
static int find_file(pid_t pid, const char *path)
{
	bool whole = *path == '/';
	uint64_t resolve = whole ? RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS : RESOLVE_BENEATH | RESOLVE_NO_XDEV;
	int folder, fd;

	if (whole && proc_path_is_remote(pid, path))
		return -EREMOTE;
	folder = proc_open_folder(pid, whole ? "root" : "cwd");
	if (folder < 0)
		return folder;
	fd = proc_open_below(folder, path, O_PATH, 0, resolve);
	close(folder);
	return fd;
}

static bool read_file(void *context, const char *name, size_t len, struct buf *ret)
{
	pid_t pid = *(pid_t *)context;
	char path[PATH_MAX];
	int found, fd, err;

	if (!len || len >= sizeof(path) || memchr(name, 0, len))
		return false;
	memcpy(path, name, len);
	path[len] = 0;
	found = find_file(pid, path);
	if (found < 0)
		return false;
	fd = proc_open_to_read(pid, found);
	close(found);
	if (fd < 0)
		return false;
	err = file_read_fd(fd, FILE_BYTES_MAX, ret);
	close(fd);
	return !err;
}

static bool is_launcher(pid_t pid)
{
	char path[64], target[PATH_MAX];
	const char *slash;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, target, sizeof(target));
	if (n <= 0)
		return false;
	n = (ssize_t)procmaps_strip_deleted(target, (size_t)n, &(bool){ false });
	slash = memrchr(target, '/', (size_t)n);
	return slash && target + n - slash == 5 && !memcmp(slash, "/java", 5);
}

// What was read before it became too much is there.
static int read_text(pid_t pid, const char *name, struct buf *b, bool *unread)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	err = file_read(path, TEXT_MAX, b);
	*unread |= err == -EFBIG;
	return err == -EFBIG ? 0 : err;
}

static int read_options(pid_t pid, struct jvm_options *ret)
{
	struct buf arguments = { 0 }, environment = { 0 };
	bool unread = false;
	int err = read_text(pid, "cmdline", &arguments, &unread);

	if (!err)
		err = read_text(pid, "environ", &environment, &unread);
	if (!err) {
		struct jvm_options_source source = {
			.arguments = (char *)arguments.data, .arguments_len = arguments.len,
			.environment = (char *)environment.data, .environment_len = environment.len,
			.launcher = is_launcher(pid), .file = read_file, .context = &pid,
		};

		jvm_options_parse(&source, ret);
		ret->unread |= unread;
	}
	buf_free(&arguments);
	buf_free(&environment);
	return err;
}

int jvm_open(pid_t pid, const struct jvm *jvm)
{
	char path[96];
	int found, fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)jvm->start, (unsigned long long)jvm->limit);
	found = open(path, O_PATH | O_CLOEXEC);
	if (found < 0)
		return -errno;
	fd = proc_open_to_read(pid, found);
	close(found);
	return fd;
}

static int read_flags(pid_t pid, const struct jvm *jvm, struct jvm_options *ret)
{
	// One of the first that it starts once it has read its options: before, its flags say nothing.
	static const char *const started = "VM Thread";
	int fd = jvm_open(pid, jvm), err;

	if (fd < 0)
		return fd;
	err = proc_threads_named(pid, &started, 1) ? jvm_memory_read(pid, fd, jvm->start, jvm->offset, ret) : -EAGAIN;
	close(fd);
	return err;
}

int jvm_find_library(pid_t pid, struct jvm *ret)
{
	struct jvm jvm = { 0 };
	int err = find_library(pid, &jvm);

	if (!err)
		*ret = jvm;
	return err;
}

int jvm_find(pid_t pid, struct jvm *ret)
{
	struct jvm jvm = { 0 };
	int err = find_library(pid, &jvm);

	if (!err)
		jvm.exact = !read_flags(pid, &jvm, &jvm.options);
	if (!err && !jvm.exact)
		err = read_options(pid, &jvm.options);
	if (!err)
		*ret = jvm;
	return err;
}
