// SPDX-License-Identifier: Apache-2.0
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/file.h"

enum {
	CHUNK = 1 << 20,
	EXTENTS_MAX = 65536,
};

struct target {
	char *path;
	uint64_t size;
	bool device, cache, zeroes;
	char disk[64];
	struct fiemap *map; // NULL for a device
};

static int fail(struct error *e, const char *what, const char *path)
{
	int code = -errno;

	return error_set(e, code, "%s %s: %s", what, path, strerror(-code));
}

static int fill_file(int fd, const char *path, uint64_t size, struct error *e)
{
	unsigned char *chunk = malloc(CHUNK);
	uint64_t state = 88172645463325252u;
	int r = 0;

	if (!chunk)
		return error_set(e, -ENOMEM, "no memory");
	for (uint64_t at = 0; at < size && !r; at += CHUNK) {
		size_t n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;

		for (size_t i = 0; i < CHUNK; i += 8) {
			state ^= state << 13, state ^= state >> 7, state ^= state << 17;
			memcpy(chunk + i, &state, 8);
		}
		if (pwrite(fd, chunk, n, (off_t)at) != (ssize_t)n)
			r = fail(e, "cannot write", path);
	}
	free(chunk);
	return r;
}

static int create_file(const char *path, uint64_t size, struct error *e)
{
	struct stat st;
	int fd, r = 0;

	if (stat(path, &st) == 0 && (!S_ISREG(st.st_mode) || (uint64_t)st.st_size >= size))
		return 0;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(e, "cannot create", path);
	if (fallocate(fd, 0, 0, (off_t)size) && errno != EOPNOTSUPP)
		r = fail(e, "cannot allocate", path);
	if (!r)
		r = fill_file(fd, path, size, e);
	if (!r && fsync(fd))
		r = fail(e, "cannot sync", path);
	close(fd);
	return r;
}

static int read_extents(struct target *t, int fd)
{
	struct fiemap *map = calloc(1, sizeof(*map) + EXTENTS_MAX * sizeof(struct fiemap_extent));

	if (!map)
		return -ENOMEM;
	map->fm_length = FIEMAP_MAX_OFFSET;
	map->fm_flags = FIEMAP_FLAG_SYNC;
	map->fm_extent_count = EXTENTS_MAX;
	if (ioctl(fd, FS_IOC_FIEMAP, map) || map->fm_mapped_extents == 0 || map->fm_mapped_extents == EXTENTS_MAX) {
		free(map);
		return 0;
	}
	t->map = map;
	return 0;
}

static void read_disk(struct target *t, dev_t dev)
{
	char path[128], real[512], line[64];
	char *name;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	if (!realpath(path, real))
		return;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major(dev), minor(dev));
	if (access(path, F_OK) == 0)
		*strrchr(real, '/') = '\0';
	name = strrchr(real, '/') + 1;
	snprintf(t->disk, sizeof(t->disk), "%s", name);
	snprintf(path, sizeof(path), "/sys/block/%s/queue/write_cache", t->disk);
	t->cache = file_read_line(path, line, sizeof(line)) >= 0 && strcmp(line, "write back") == 0;
	snprintf(path, sizeof(path), "/sys/block/%s/queue/write_zeroes_max_bytes", t->disk);
	t->zeroes = file_read_line(path, line, sizeof(line)) >= 0 && strcmp(line, "0") != 0;
}

static int examine(struct target *t, uint64_t size_limit, struct error *e)
{
	struct stat st;
	int fd = open(t->path, O_RDONLY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return fail(e, "cannot open", t->path);
	if (fstat(fd, &st)) {
		r = fail(e, "cannot stat", t->path);
		goto out;
	}
	t->device = S_ISBLK(st.st_mode);
	t->size = (uint64_t)st.st_size;
	if (t->device && ioctl(fd, BLKGETSIZE64, &t->size))
		r = fail(e, "cannot get the size of", t->path);
	if (!r && !t->device)
		r = read_extents(t, fd);
	if (size_limit && t->size > size_limit)
		t->size = size_limit;
	read_disk(t, t->device ? st.st_rdev : st.st_dev);
out:
	close(fd);
	return r;
}

int target_open(const char *path, uint64_t create, uint64_t size_limit, struct target **ret, struct error *e)
{
	struct target *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return error_set(e, -ENOMEM, "no memory");
	t->path = strdup(path);
	r = t->path ? 0 : error_set(e, -ENOMEM, "no memory");
	if (!r && create)
		r = create_file(path, create, e);
	if (!r)
		r = examine(t, size_limit, e);
	if (r) {
		target_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

void target_free(struct target *t)
{
	if (!t)
		return;
	free(t->map);
	free(t->path);
	free(t);
}

const char *target_path(const struct target *t)
{
	return t->path;
}

uint64_t target_size(const struct target *t)
{
	return t->size;
}

bool target_is_device(const struct target *t)
{
	return t->device;
}

const char *target_disk(const struct target *t)
{
	return t->disk;
}

bool target_has_cache(const struct target *t)
{
	return t->cache;
}

bool target_zeroes(const struct target *t)
{
	return t->zeroes;
}

unsigned target_extents(const struct target *t)
{
	return t->map ? t->map->fm_mapped_extents : 0;
}

unsigned target_pieces(const struct target *t, uint64_t offset, uint64_t size)
{
	unsigned n = 0;

	if (!t->map)
		return 1;
	for (unsigned i = 0; i < t->map->fm_mapped_extents; i++) {
		const struct fiemap_extent *x = &t->map->fm_extents[i];

		if (x->fe_logical < offset + size && offset < x->fe_logical + x->fe_length)
			n++;
	}
	return n ? n : 1;
}

int target_fd(const struct target *t, bool writes, bool direct, struct error *e)
{
	int fd = open(t->path, (writes ? O_RDWR : O_RDONLY) | (direct ? O_DIRECT : 0) | O_CLOEXEC);

	return fd < 0 ? fail(e, "cannot open", t->path) : fd;
}

int target_drop_cache(const struct target *t, struct error *e)
{
	int fd = open(t->path, O_RDONLY | O_CLOEXEC), r;

	if (fd < 0)
		return fail(e, "cannot open", t->path);
	r = fsync(fd) ? fail(e, "cannot sync", t->path) : 0;
	if (!r) {
		r = -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		if (r)
			error_set(e, r, "cannot drop the cached pages of %s: %s", t->path, strerror(-r));
	}
	close(fd);
	return r;
}
