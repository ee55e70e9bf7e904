// SPDX-License-Identifier: Apache-2.0
// The snapshot: /sys/block/DISK and its partitions, holders, mount points. What a name means is in devices_select.c.
#include "agent/devices.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/devices_internal.h"
#include "agent/mountinfo.h"
#include "common/file.h"
#include "common/text.h"

static int compare_entries(const void *a, const void *b)
{
	uint32_t x = ((const struct entry *)a)->device.dev, y = ((const struct entry *)b)->device.dev;

	return x < y ? -1 : x > y;
}

static int grow(void **array, size_t *cap, size_t n, size_t size, size_t max)
{
	size_t want = *cap ? *cap * 2 : 64;
	void *to;

	if (n < *cap)
		return 0;
	if (n >= max)
		return -E2BIG;
	to = realloc(*array, want * size);
	if (!to)
		return -ENOMEM;
	*array = to;
	*cap = want;
	return 0;
}

bool device_number_parse(const char *text, uint32_t *ret)
{
	unsigned major, minor;
	int end = 0;

	if (sscanf(text, "%4u:%7u%n", &major, &minor, &end) != 2 || text[end] || major > 0xfff || minor > 0xfffff)
		return false;
	*ret = KDEV(major, minor);
	return true;
}

// A name in sysfs has '!' where the device's has '/' (cciss!c0d0).
static void copy_name(char *out, size_t cap, const char *sysfs_name)
{
	text_sanitize(out, cap, sysfs_name, strlen(sysfs_name));
	for (char *p = out; *p; p++)
		if (*p == '!')
			*p = '/';
}

static int join(char *out, size_t cap, const char *folder, const char *name)
{
	return (size_t)snprintf(out, cap, "%s/%s", folder, name) < cap ? 0 : -ENAMETOOLONG;
}

static int read_attribute(const char *folder, const char *name, char *line, size_t cap)
{
	char path[DEVICE_PATH];
	int err = join(path, sizeof(path), folder, name);

	line[0] = 0;
	return err ? err : file_read_line(path, line, cap);
}

static bool exists(const char *folder, const char *name)
{
	char path[DEVICE_PATH];

	return !join(path, sizeof(path), folder, name) && !access(path, F_OK);
}

// "mq-deadline" of "none [mq-deadline] kyber". Old kernels write just "none"; disks without requests have no file.
static void read_scheduler(const char *folder, char *out, size_t cap)
{
	char line[256], *open_bracket;

	snprintf(out, cap, "none");
	read_attribute(folder, "queue/scheduler", line, sizeof(line));
	open_bracket = strchr(line, '[');
	if (open_bracket)
		text_sanitize(out, cap, open_bracket + 1, strcspn(open_bracket + 1, "]"));
}

static void read_mapper(const char *folder, char *out, size_t cap)
{
	char line[256];

	read_attribute(folder, "dm/name", line, sizeof(line));
	text_sanitize(out, cap, line, strlen(line));
}

static uint64_t read_sectors(const char *folder)
{
	char line[32];

	read_attribute(folder, "size", line, sizeof(line));
	return strtoull(line, NULL, 10);
}

static int add_holders(struct snapshot *s, const char *folder, struct entry *below)
{
	char path[DEVICE_PATH];
	struct dirent *item;
	DIR *dir;
	int err = 0;

	dir = join(path, sizeof(path), folder, "holders") ? NULL : opendir(path);
	if (!dir)
		return 0;
	while (!err && (item = readdir(dir))) {
		if (item->d_name[0] == '.')
			continue;
		err = grow((void **)&s->holders, &s->cap_holders, s->n_holders, sizeof(*s->holders), DEVICES_MAX);
		if (err)
			break;
		s->holders[s->n_holders].below = below->device.dev;
		copy_name(s->holders[s->n_holders].above, sizeof(s->holders[0].above), item->d_name);
		s->n_holders++;
		below->device.has_holders = true;
	}
	closedir(dir);
	return err;
}

// One disk or partition; 0 also for what has no number (a hidden path of a multipath device) or has just gone.
static int add_entry(struct snapshot *s, const char *folder, const char *sysfs_name, const struct device *disk,
		     struct device *ret)
{
	struct entry *e;
	char line[64];
	uint32_t dev;
	int err;

	if (read_attribute(folder, "dev", line, sizeof(line)) || !device_number_parse(line, &dev))
		return 0;
	err = grow((void **)&s->entries, &s->cap_entries, s->n_entries, sizeof(*s->entries), DEVICES_MAX);
	if (err)
		return err;
	e = &s->entries[s->n_entries];
	memset(e, 0, sizeof(*e));
	e->device.dev = dev;
	e->device.disk = disk ? disk->dev : dev;
	e->sectors = read_sectors(folder);
	copy_name(e->device.name, sizeof(e->device.name), sysfs_name);
	if (disk) {
		memcpy(e->device.scheduler, disk->scheduler, sizeof(e->device.scheduler));
		e->device.bio_based = disk->bio_based;
	} else {
		read_scheduler(folder, e->device.scheduler, sizeof(e->device.scheduler));
		read_mapper(folder, e->device.mapper, sizeof(e->device.mapper));
		// Every driver that makes requests has had hardware queues, and this folder, since 5.0.
		e->device.bio_based = !exists(folder, "mq");
	}
	err = add_holders(s, folder, e);
	if (err)
		return err;
	s->n_entries++;
	if (ret)
		*ret = e->device;
	return 1;
}

static int add_partitions(struct snapshot *s, const char *folder, const struct device *disk)
{
	char path[DEVICE_PATH];
	struct dirent *item;
	DIR *dir = opendir(folder);
	int err = 0;

	if (!dir)
		return 0;
	while (err >= 0 && (item = readdir(dir))) {
		if (item->d_name[0] == '.' || (item->d_type != DT_DIR && item->d_type != DT_UNKNOWN))
			continue;
		if (!join(path, sizeof(path), folder, item->d_name) && exists(path, "partition"))
			err = add_entry(s, path, item->d_name, disk, NULL);
	}
	closedir(dir);
	return err < 0 ? err : 0;
}

// A loop device has no holders link from the disk under its file: the mount that the file lies on says it. The file
// itself is not looked at, since it may be on a network file system that does not answer.
static int add_backing_file(struct snapshot *s, const char *folder, uint32_t dev)
{
	char file[DEVICE_PATH];
	struct backing *to;
	int err;

	if (read_attribute(folder, "loop/backing_file", file, sizeof(file)) || file[0] != '/')
		return 0;
	err = grow((void **)&s->backings, &s->cap_backings, s->n_backings, sizeof(*s->backings), DEVICES_MAX);
	if (err)
		return err;
	to = &s->backings[s->n_backings];
	memset(to, 0, sizeof(*to));
	to->loop = dev;
	to->file = strdup(file);
	if (!to->file)
		return -ENOMEM;
	s->n_backings++;
	return 0;
}

static int add_disk(struct snapshot *s, const char *blocks, const char *sysfs_name)
{
	char folder[DEVICE_PATH];
	struct device disk;
	int err;

	if (join(folder, sizeof(folder), blocks, sysfs_name))
		return 0;
	err = add_entry(s, folder, sysfs_name, NULL, &disk);
	if (err <= 0)
		return err;
	err = add_backing_file(s, folder, disk.dev);
	return err ? err : add_partitions(s, folder, &disk);
}

static int read_disks(struct snapshot *s, const char *sysfs)
{
	char blocks[DEVICE_PATH];
	struct dirent *item;
	DIR *dir;
	int err = 0;

	if (join(blocks, sizeof(blocks), sysfs, "block"))
		return -ENAMETOOLONG;
	dir = opendir(blocks);
	if (!dir)
		return -errno;
	while (!err && (item = readdir(dir)))
		if (item->d_name[0] != '.')
			err = add_disk(s, blocks, item->d_name);
	closedir(dir);
	return err;
}

struct entry *snapshot_find(const struct snapshot *s, uint32_t dev)
{
	struct entry key = { .device.dev = dev };

	return s->n_entries ? bsearch(&key, s->entries, s->n_entries, sizeof(*s->entries), compare_entries) : NULL;
}

struct entry *snapshot_find_name(const struct snapshot *s, const char *name)
{
	for (size_t i = 0; i < s->n_entries; i++)
		if (!strcmp(s->entries[i].device.name, name))
			return &s->entries[i];
	for (size_t i = 0; i < s->n_entries; i++)
		if (s->entries[i].device.mapper[0] && !strcmp(s->entries[i].device.mapper, name))
			return &s->entries[i];
	return NULL;
}

struct entry *snapshot_find_source(const struct snapshot *s, const char *source)
{
	struct entry *e = NULL;
	struct stat st;

	if (strncmp(source, "/dev/", 5))
		return NULL;
	e = snapshot_find_name(s, strncmp(source + 5, "mapper/", 7) ? source + 5 : source + 12);
	if (!e && !stat(source, &st) && S_ISBLK(st.st_mode))
		e = snapshot_find(s, KDEV(major(st.st_rdev), minor(st.st_rdev)));
	return e;
}

// Btrfs and the like give each mount a number of its own without a major; their source names the device.
struct entry *snapshot_find_mount(const struct snapshot *s, const struct mount *m)
{
	return m->dev >> 20 ? snapshot_find(s, m->dev) : snapshot_find_source(s, m->source);
}

static int add_mount(const struct mount *m, void *data)
{
	struct entry *e = snapshot_find_mount(data, m);
	bool whole = !strcmp(m->root, "/");

	// The first mount of the file system's root; a bind mount of a folder of it only when there is none.
	if (!e || (e->device.mount[0] && (e->whole_mount || !whole)))
		return 0;
	text_sanitize(e->device.mount, sizeof(e->device.mount), m->point, strlen(m->point));
	e->whole_mount = whole;
	return 0;
}

// The mount whose point is the longest beginning of each file's path; of several on one point, the last.
static int match_backings(const struct mount *m, void *data)
{
	struct snapshot *s = data;
	size_t len = strlen(m->point);
	struct entry *e;

	for (size_t i = 0; i < s->n_backings; i++) {
		struct backing *b = &s->backings[i];

		if (b->is_device || len < b->matched || strncmp(m->point, b->file, len) || (len > 1 && b->file[len] != '/'))
			continue;
		e = snapshot_find_mount(s, m);
		b->matched = len;
		b->below = e ? e->device.dev : 0;
	}
	return 0;
}

static void resolve_backings(struct snapshot *s, const char *mountinfo)
{
	for (size_t i = 0; i < s->n_backings; i++) {
		// losetup takes a block device as well.
		struct entry *e = snapshot_find_source(s, s->backings[i].file);

		s->backings[i].is_device = e;
		s->backings[i].below = e ? e->device.dev : 0;
	}
	if (s->n_backings)
		mountinfo_each(mountinfo, match_backings, s);
}

static void snapshot_clear(struct snapshot *s)
{
	for (size_t i = 0; i < s->n_backings; i++)
		free(s->backings[i].file);
	free(s->entries);
	free(s->holders);
	free(s->backings);
	memset(s, 0, sizeof(*s));
}

int devices_refresh(struct devices *d)
{
	struct snapshot s = { 0 };
	int err = read_disks(&s, d->sysfs);

	if (err) {
		snapshot_clear(&s);
		return err;
	}
	if (s.n_entries)
		qsort(s.entries, s.n_entries, sizeof(*s.entries), compare_entries);
	// Without mount points everything else still holds.
	mountinfo_each(d->mountinfo, add_mount, &s);
	resolve_backings(&s, d->mountinfo);
	snapshot_clear(&d->now);
	d->now = s;
	return 0;
}

struct devices *devices_new(const struct devices_options *options, struct error *e)
{
	struct devices *d = calloc(1, sizeof(*d));
	int err = d ? 0 : -ENOMEM;

	if (!err) {
		d->sysfs = strdup(options && options->sysfs ? options->sysfs : "/sys");
		d->mountinfo = strdup(options && options->mountinfo ? options->mountinfo : "/proc/self/mountinfo");
		err = d->sysfs && d->mountinfo ? devices_refresh(d) : -ENOMEM;
	}
	if (!err)
		return d;
	error_set(e, err, "cannot read the block devices in %.100s/block: %s; is sysfs mounted there?",
		  d && d->sysfs ? d->sysfs : "/sys", strerror(-err));
	devices_free(d);
	return NULL;
}

void devices_free(struct devices *d)
{
	if (!d)
		return;
	snapshot_clear(&d->now);
	free(d->sysfs);
	free(d->mountinfo);
	free(d);
}

unsigned devices_count(const struct devices *d)
{
	return (unsigned)d->now.n_entries;
}

const struct device *devices_get(const struct devices *d, unsigned i)
{
	return i < d->now.n_entries ? &d->now.entries[i].device : NULL;
}

const struct device *devices_find(const struct devices *d, uint32_t dev)
{
	const struct entry *e = snapshot_find(&d->now, dev);

	return e ? &e->device : NULL;
}
