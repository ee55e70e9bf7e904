// SPDX-License-Identifier: Apache-2.0
// Block devices as sysfs tells them: names, numbers, partitions, what is stacked on what, mapper names, mount points,
// schedulers. A snapshot; devices_refresh takes another. Roots are options so that tests can use a made-up tree.
#ifndef BLKPROF_AGENT_DEVICES_H
#define BLKPROF_AGENT_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct devices;

// Device numbers are the kernel's: major << 20 | minor.
#define KDEV(major, minor) (((uint32_t)(major) << 20) | (uint32_t)(minor))

struct device {
	uint32_t dev;
	uint32_t disk;	      // the whole disk's number (== dev for a disk)
	char name[32];	      // "vda", "vda1", "dm-0"
	char mapper[128];     // device-mapper name, or ""
	char mount[256];      // first mount point, or ""
	char scheduler[32];   // active I/O scheduler of the disk, or "none"
	bool has_holders;     // something is stacked on it
	bool bio_based;	      // no requests (dm, md, zram, loop is not)
};

struct devices_options {
	const char *sysfs;     // NULL = /sys
	const char *mountinfo; // NULL = /proc/self/mountinfo
};

struct devices *devices_new(const struct devices_options *options, struct error *e);
int devices_refresh(struct devices *d);
void devices_free(struct devices *d);
unsigned devices_count(const struct devices *d);
const struct device *devices_get(const struct devices *d, unsigned i);
const struct device *devices_find(const struct devices *d, uint32_t dev); // NULL when unknown
// What --device NAME means: the numbers of the disk or partition, its partitions and every device stacked above, at most
// cap. NAME is vda, /dev/vda, dm-0, a mapper name, /dev/mapper/x, a symbolic link to a device, or a mount point.
// Returns how many, or a negative errno with a message that lists the devices there are.
int devices_select(const struct devices *d, const char *name, uint32_t *ret, unsigned cap, struct error *e);

#endif
