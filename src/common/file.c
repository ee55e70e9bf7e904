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

static int explain(struct error *e, int code, const char *path)
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

static int write_direct(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = file_write_fd(fd, data, len);
	if (close(fd) && !err)
		err = -errno;
	return err;
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

static int open_temporary(const char *path, char *temporary, size_t cap)
{
	int fd;

	if ((size_t)snprintf(temporary, cap, "%s.XXXXXX", path) >= cap)
		return -ENAMETOOLONG;
	fd = mkostemp(temporary, O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int file_write_atomic(const char *path, const void *data, size_t len, struct error *e)
{
	char temporary[PATH_MAX], target[PATH_MAX];
	mode_t mask = umask(022);
	int fd, err = replaceable(path);

	umask(mask);
	if (err < 0)
		return explain(e, err, path);
	if (!err) {
		err = write_direct(path, data, len);
		return err ? explain(e, err, path) : 0;
	}
	// A symbolic link stays one: the file it points to is replaced.
	if (!realpath(path, target))
		snprintf(target, sizeof(target), "%s", path);
	fd = open_temporary(target, temporary, sizeof(temporary));
	if (fd < 0)
		return explain(e, fd, path);
	err = file_write_fd(fd, data, len);
	if (!err && fchmod(fd, 0666 & ~mask))
		err = -errno;
	if (!err && fsync(fd))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(temporary, target))
		err = -errno;
	if (err) {
		unlink(temporary);
		return explain(e, err, path);
	}
	sync_folder(target);
	return 0;
}

int file_check_writable(const char *path, struct error *e)
{
	char temporary[PATH_MAX];
	int fd, err = replaceable(path);

	if (err < 0)
		return explain(e, err, path);
	if (!err)
		return access(path, W_OK) ? explain(e, -errno, path) : 0;
	fd = open_temporary(path, temporary, sizeof(temporary));
	if (fd < 0)
		return explain(e, fd, path);
	close(fd);
	unlink(temporary);
	return 0;
}
