// SPDX-License-Identifier: Apache-2.0
// What --device NAME means: the device of that name, its partitions, and whatever is stacked above them.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/devices_internal.h"

struct by_point {
	const struct snapshot *snapshot;
	const char *point;
	const struct entry *found;
	char type[32]; // of the file system that is mounted there, "" = none is
};

// The last mount on a point is the one that is seen.
static int match_point(const struct mount *m, void *data)
{
	struct by_point *b = data;

	if (strcmp(m->point, b->point))
		return 0;
	b->found = snapshot_find_mount(b->snapshot, m);
	snprintf(b->type, sizeof(b->type), "%s", m->type);
	return 0;
}

// Hosts with containers or snaps have dozens of them: they stand behind the disks.
static bool is_minor(const struct device *d)
{
	return !strncmp(d->name, "loop", 4) || !strncmp(d->name, "ram", 3);
}

// False when there is no room for it.
static bool list_device(const struct device *v, char *out, size_t cap, size_t *n)
{
	const char *mapper = v->mapper, *mount = v->mount;
	char item[512];
	int len = snprintf(item, sizeof(item), "%s%s%s%s%s%s%s", *n ? ", " : "", v->name, *mapper || *mount ? " (" : "", mapper,
			   *mapper && *mount ? ", " : "", mount, *mapper || *mount ? ")" : "");

	if (*n + (size_t)len + sizeof(", …") > cap) {
		snprintf(out + *n, cap - *n, "%s", cap - *n > sizeof(", …") ? ", …" : "");
		return false;
	}
	memcpy(out + *n, item, (size_t)len + 1);
	*n += (size_t)len;
	return true;
}

// The devices there are, as far as the message has room; those without a medium are left out.
static void list_devices(const struct devices *d, char *out, size_t cap)
{
	size_t n = 0;

	out[0] = 0;
	for (unsigned minor = 0; minor < 2; minor++)
		for (size_t i = 0; i < d->now.n_entries; i++)
			if (d->now.entries[i].sectors && is_minor(&d->now.entries[i].device) == minor &&
			    !list_device(&d->now.entries[i].device, out, cap, &n))
				return;
	if (!n)
		snprintf(out, cap, "none");
}

static int unknown_device(const struct devices *d, const char *name, struct error *e)
{
	char list[320];

	list_devices(d, list, sizeof(list));
	return error_set(e, -ENOENT, "no block device '%.100s' here; there are: %s", name, list);
}

static const struct entry *find_point(const struct devices *d, const char *path, char *ret_type, size_t cap)
{
	char real[PATH_MAX];
	struct by_point b = { .snapshot = &d->now, .point = path };

	mountinfo_each(d->mountinfo, match_point, &b);
	if (!b.type[0] && realpath(path, real)) {
		b.point = real;
		mountinfo_each(d->mountinfo, match_point, &b);
	}
	snprintf(ret_type, cap, "%s", b.type);
	return b.found;
}

static const struct entry *find_path(const struct devices *d, const char *name, struct error *e, int *ret_err)
{
	const struct entry *found = NULL;
	char type[32] = "";
	struct stat st;
	bool there = !stat(name, &st);

	if (there && S_ISBLK(st.st_mode))
		found = snapshot_find(&d->now, KDEV(major(st.st_rdev), minor(st.st_rdev)));
	else if (!strncmp(name, "/dev/", 5))
		found = snapshot_find_source(&d->now, name);
	if (!found)
		found = find_point(d, name, type, sizeof(type));
	if (found)
		return found;
	if (type[0])
		*ret_err = error_set(e, -ENOENT, "the file system at %.100s (%s) is on no block device of this node", name, type);
	else if (there && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
		*ret_err = error_set(e, -ENOENT, "%.100s is neither a device nor a mount point; `findmnt -T %.100s` names both for it",
				     name, name);
	else
		*ret_err = unknown_device(d, name, e);
	return NULL;
}

static const struct entry *find(const struct devices *d, const char *name, struct error *e, int *ret_err)
{
	const struct entry *found;
	char path[300];
	struct stat st;
	uint32_t dev;

	if (name[0] == '/')
		return find_path(d, name, e, ret_err);
	found = *name ? snapshot_find_name(&d->now, name) : NULL;
	if (!found && device_number_parse(name, &dev))
		found = snapshot_find(&d->now, dev);
	// "disk/by-label/data"
	if (!found && *name && (size_t)snprintf(path, sizeof(path), "/dev/%s", name) < sizeof(path) && !stat(path, &st) &&
	    S_ISBLK(st.st_mode))
		found = snapshot_find(&d->now, KDEV(major(st.st_rdev), minor(st.st_rdev)));
	if (!found)
		*ret_err = unknown_device(d, name, e);
	return found;
}

// The set that grows while it is walked; a device is put in once, so a cycle ends.
struct selection {
	const struct snapshot *snapshot;
	uint32_t *dev;
	unsigned n, cap;
	bool full;
};

static void select_one(struct selection *s, const struct entry *e)
{
	if (!e)
		return;
	for (unsigned i = 0; i < s->n; i++)
		if (s->dev[i] == e->device.dev)
			return;
	if (s->n == s->cap)
		s->full = true;
	else
		s->dev[s->n++] = e->device.dev;
}

static void select_above(struct selection *s, uint32_t dev)
{
	const struct snapshot *now = s->snapshot;

	for (size_t i = 0; i < now->n_entries; i++)
		if (now->entries[i].device.disk == dev)
			select_one(s, &now->entries[i]);
	for (size_t i = 0; i < now->n_holders; i++)
		if (now->holders[i].below == dev)
			select_one(s, snapshot_find_name(now, now->holders[i].above));
	for (size_t i = 0; i < now->n_backings; i++)
		if (now->backings[i].below == dev)
			select_one(s, snapshot_find(now, now->backings[i].loop));
}

int devices_select(const struct devices *d, const char *name, uint32_t *ret, unsigned cap, struct error *e)
{
	struct selection s = { .snapshot = &d->now, .dev = ret, .cap = cap };
	int err = -ENOENT;
	const struct entry *found = find(d, name, e, &err);

	if (!found)
		return err;
	select_one(&s, found);
	for (unsigned i = 0; i < s.n; i++)
		select_above(&s, s.dev[i]);
	if (s.full)
		return error_set(e, -E2BIG, "--device %.100s comes to more than %u devices with all that is stacked above; name fewer",
				 name, cap);
	return (int)s.n;
}
