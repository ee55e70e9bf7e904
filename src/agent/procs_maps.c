// SPDX-License-Identifier: Apache-2.0
#include "agent/procs_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/file.h"

// A line is at most PATH_MAX with every byte escaped, and some.
#define LINE_MAX_BYTES 17408
#define MAPS_MAX (64u << 20)
#define STAT_MAX 8192
#define PF_KTHREAD 0x00200000u

// Calls for each whole line; returns how much was taken, or -1 to stop.
static ssize_t take_lines(char *text, size_t len, bool (*each)(const struct procmaps_entry *e, void *context),
			  void *context)
{
	struct procmaps_entry e;
	size_t at = 0;
	char *end;

	while ((end = memchr(text + at, '\n', len - at))) {
		size_t line = (size_t)(end - text) - at;

		if (!procmaps_parse(text + at, line, &e) && !each(&e, context))
			return -1;
		at += line + 1;
	}
	return (ssize_t)at;
}

int procs_maps_read_fd(int fd, bool (*each)(const struct procmaps_entry *e, void *context), void *context)
{
	char text[2 * LINE_MAX_BYTES];
	size_t len = 0, total = 0;

	for (;;) {
		ssize_t n = read(fd, text + len, sizeof(text) - len), taken;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return 0;
		len += (size_t)n;
		total += (size_t)n;
		taken = take_lines(text, len, each, context);
		if (taken < 0)
			return 0;
		len -= (size_t)taken;
		memmove(text, text + taken, len);
		if (len == sizeof(text) || total > MAPS_MAX)
			return -EFBIG;
	}
}

int procs_maps_read(pid_t pid, bool (*each)(const struct procmaps_entry *e, void *context), void *context)
{
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = procs_maps_read_fd(fd, each, context);
	close(fd);
	return err;
}

int procs_stat_parse(const char *text, size_t len, struct procs_stat *ret)
{
	const char *open_paren = memchr(text, '(', len), *close_paren = memrchr(text, ')', len);
	struct procs_stat s = { 0 };
	char rest[1024];
	unsigned long long starttime;
	unsigned flags;
	size_t n;

	if (!open_paren || !close_paren || close_paren < open_paren)
		return -EINVAL;
	s.comm_len = (size_t)(close_paren - open_paren - 1);
	if (s.comm_len >= sizeof(s.comm))
		return -EINVAL;
	memcpy(s.comm, open_paren + 1, s.comm_len);
	n = (size_t)(text + len - close_paren - 1);
	if (n >= sizeof(rest))
		n = sizeof(rest) - 1;
	memcpy(rest, close_paren + 1, n);
	rest[n] = 0;
	// Fields 3 (state) to 22 (starttime).
	if (sscanf(rest, " %*c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &s.ppid,
		   &flags, &starttime) != 3)
		return -EINVAL;
	s.kernel_thread = flags & PF_KTHREAD;
	s.starttime = starttime;
	*ret = s;
	return 0;
}

int procs_stat_read(pid_t pid, struct procs_stat *ret)
{
	struct buf b = { 0 };
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	err = file_read(path, STAT_MAX, &b);
	if (!err)
		err = procs_stat_parse((const char *)b.data, b.len, ret);
	buf_free(&b);
	return err;
}
