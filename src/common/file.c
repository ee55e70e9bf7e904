// SPDX-License-Identifier: Apache-2.0
#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"

int file_read_fd(int fd, size_t max, struct buf *b)
{
	size_t start = b->len;

	for (;;) {
		uint8_t *to = buf_reserve(b, 16384);
		ssize_t n;

		if (!to)
			return b->error;
		n = read(fd, to, 16383);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		b->len += (size_t)n;
		if (b->len - start > max)
			return -EFBIG;
	}
	b->data[b->len] = 0;
	return 0;
}

int file_read(const char *path, size_t max, struct buf *b)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = file_read_fd(fd, max, b);
	close(fd);
	return err;
}

int file_read_line(const char *path, char *out, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	out[0] = 0;
	if (fd < 0)
		return -errno;
	n = read(fd, out, cap - 1);
	if (n < 0) {
		n = -errno;
		close(fd);
		return (int)n;
	}
	close(fd);
	out[n] = 0;
	out[strcspn(out, "\n")] = 0;
	return 0;
}

int file_write_explain(const char *path, int code, struct error *e)
{
	switch (-code) {
	case ENOSPC:
	case EDQUOT:
		return error_set(e, code, "cannot write %s: the file system is full; free space or name another with -o", path);
	case ENOENT:
		return error_set(e, code, "cannot write %s: its folder does not exist; create it or name another with -o", path);
	case EISDIR:
		return error_set(e, code, "cannot write %s: it is a folder; name a file with -o", path);
	default:
		return error_set(e, code, "cannot write %s: %s; name another file with -o", path, strerror(-code));
	}
}

int file_write_fd(int fd, const void *data, size_t len)
{
	const char *from = data;

	while (len) {
		ssize_t n = write(fd, from, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		from += n;
		len -= (size_t)n;
	}
	return 0;
}

static void sync_folder(const char *path)
{
	char copy[PATH_MAX];
	int fd;

	snprintf(copy, sizeof(copy), "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

// 1: a regular file or nothing there, to be replaced by rename; 0: written in place; negative: cannot.
static int replaceable(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno == ENOENT ? 1 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return S_ISREG(st.st_mode);
}

static int open_named(struct file_atomic *a)
{
	int fd;

	if ((size_t)snprintf(a->temporary, sizeof(a->temporary), "%s.XXXXXX", a->target) >= sizeof(a->temporary))
		return -ENAMETOOLONG;
	fd = mkostemp(a->temporary, O_CLOEXEC);
	if (fd >= 0)
		return fd;
	a->temporary[0] = 0;
	return -errno;
}

// Without a name where the file system can do that: whoever is killed leaves nothing.
static int open_temporary(struct file_atomic *a)
{
	char copy[PATH_MAX];
	int fd;

	snprintf(copy, sizeof(copy), "%s", a->target);
	fd = open(dirname(copy), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : open_named(a);
}

int file_atomic_open(struct file_atomic *a, const char *path, struct error *e)
{
	int err = replaceable(path);

	*a = (struct file_atomic){ .fd = -1, .path = path };
	if (err < 0)
		return file_write_explain(path, err, e);
	a->in_place = !err;
	if (a->in_place) {
		a->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		return a->fd < 0 ? file_write_explain(path, -errno, e) : 0;
	}
	// A symbolic link stays one: the file it points to is replaced.
	if (!realpath(path, a->target) && (size_t)snprintf(a->target, sizeof(a->target), "%s", path) >= sizeof(a->target))
		return file_write_explain(path, -ENAMETOOLONG, e);
	a->fd = open_temporary(a);
	return a->fd < 0 ? file_write_explain(path, a->fd, e) : 0;
}

// A file without a name cannot take the place of another: it gets one for the moment before it does.
static int give_name(struct file_atomic *a)
{
	char self[64];

	if (a->temporary[0])
		return 0;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", a->fd);
	for (unsigned i = 0; i < 100; i++) {
		uint64_t name = clock_monotonic() * 0x9e3779b97f4a7c15ull + i;

		if ((size_t)snprintf(a->temporary, sizeof(a->temporary), "%s.%06x", a->target, (unsigned)(name >> 40)) >=
		    sizeof(a->temporary))
			break;
		if (!linkat(AT_FDCWD, self, AT_FDCWD, a->temporary, AT_SYMLINK_FOLLOW))
			return 0;
		if (errno != EEXIST) {
			int err = -errno;

			a->temporary[0] = 0;
			return err;
		}
	}
	a->temporary[0] = 0;
	return -EEXIST;
}

static int replace(struct file_atomic *a)
{
	mode_t mask = umask(022);
	int err = 0;

	umask(mask);
	// A file system without modes: the file stays as it was made.
	if (fchmod(a->fd, 0666 & ~mask) && errno != EPERM && errno != EOPNOTSUPP)
		err = -errno;
	if (!err && fsync(a->fd))
		err = -errno;
	if (!err)
		err = give_name(a);
	if (!err && rename(a->temporary, a->target))
		err = -errno;
	return err;
}

int file_atomic_close(struct file_atomic *a, int keep, struct error *e)
{
	int err = keep && !a->in_place ? replace(a) : 0;

	if (a->temporary[0] && (!keep || err))
		unlink(a->temporary);
	if (close(a->fd) && keep && !err)
		err = -errno;
	a->fd = -1;
	if (!err && keep && !a->in_place)
		sync_folder(a->target);
	return err ? file_write_explain(a->path, err, e) : 0;
}

int file_write_atomic(const char *path, const void *data, size_t len, struct error *e)
{
	struct file_atomic a;
	int err = file_atomic_open(&a, path, e);

	if (err)
		return err;
	err = file_write_fd(a.fd, data, len);
	if (!err)
		return file_atomic_close(&a, 1, e);
	file_atomic_close(&a, 0, NULL);
	return file_write_explain(path, err, e);
}

int file_check_writable(const char *path, struct error *e)
{
	struct file_atomic a;
	int err = replaceable(path);

	if (err < 0)
		return file_write_explain(path, err, e);
	if (!err)
		return access(path, W_OK) ? file_write_explain(path, -errno, e) : 0;
	err = file_atomic_open(&a, path, e);
	return err ? err : file_atomic_close(&a, 0, e);
}
