// SPDX-License-Identifier: Apache-2.0
// Shared by devices.c (takes the snapshot) and devices_select.c (what a name means in it).
#ifndef BLKPROF_AGENT_DEVICES_INTERNAL_H
#define BLKPROF_AGENT_DEVICES_INTERNAL_H

#include <unistd.h>

#include "agent/devices.h"
#include "agent/mountinfo.h"

#define DEVICES_MAX 65536 // of disks and partitions, and of links between them
#define DEVICE_PATH 4096

struct entry {
	struct device device;
	uint64_t sectors; // 0: no medium, a loop device without a file
	bool whole_mount; // the mount point is of the file system's root
};

struct holder {
	uint32_t below;
	char above[32];
};

// A loop device and what its file lies on.
struct backing {
	uint32_t loop, below; // below 0: no block device that is known
	char *file;	      // owned; the kernel adds " (deleted)" where it is
	size_t matched;
	bool is_device;
};

struct snapshot {
	struct entry *entries; // sorted by number
	size_t n_entries, cap_entries;
	struct holder *holders;
	size_t n_holders, cap_holders;
	struct backing *backings;
	size_t n_backings, cap_backings;
};

struct devices {
	char *sysfs, *mountinfo;
	struct snapshot now;
};

bool device_number_parse(const char *text, uint32_t *ret);
struct entry *snapshot_find(const struct snapshot *s, uint32_t dev);
struct entry *snapshot_find_name(const struct snapshot *s, const char *name); // its own name, else the mapper's
struct entry *snapshot_find_source(const struct snapshot *s, const char *source); // "/dev/…" of a mount
struct entry *snapshot_find_mount(const struct snapshot *s, const struct mount *m);

#endif
