// SPDX-License-Identifier: Apache-2.0
#include "timeline/disks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/text.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes(key, len, 0))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define DISKS_MAX 1024
#define LANE_BLOCK 32

struct device {
	struct disk disk;
	struct lane *lanes[DISK_LANES / LANE_BLOCK]; // which do not move
};

struct flight {
	struct io io;
	UT_hash_handle hh; // by io.id
};

struct disks {
	struct device *devices[DISKS_MAX];
	size_t n;
	struct flight *flights;
	size_t max;
	uint64_t refused;
};

struct disks *disks_new(size_t max_in_flight)
{
	struct disks *d = calloc(1, sizeof(*d));

	if (d)
		d->max = max_in_flight;
	return d;
}

void disks_free(struct disks *d)
{
	struct flight *f, *next;

	if (!d)
		return;
	HASH_ITER(hh, d->flights, f, next) {
		HASH_DEL(d->flights, f);
		free(f);
	}
	for (size_t i = 0; i < d->n; i++) {
		for (unsigned b = 0; b < DISK_LANES / LANE_BLOCK; b++)
			free(d->devices[i]->lanes[b]);
		free(d->devices[i]);
	}
	free(d);
}

struct disk *disks_get(struct disks *d, uint32_t device)
{
	struct device *new;

	for (size_t i = 0; i < d->n; i++)
		if (d->devices[i]->disk.device == device)
			return &d->devices[i]->disk;
	if (d->n == DISKS_MAX)
		return &d->devices[DISKS_MAX - 1]->disk;
	new = calloc(1, sizeof(*new));
	if (!new)
		return NULL;
	new->disk.device = device;
	snprintf(new->disk.name, sizeof(new->disk.name), "%u:%u", device >> 20, device & 0xfffff);
	d->devices[d->n++] = new;
	return &new->disk;
}

int disks_name(struct disks *d, uint32_t device, const char *name)
{
	struct disk *disk = disks_get(d, device);

	if (!disk)
		return -ENOMEM;
	if (*name)
		text_sanitize(disk->name, sizeof(disk->name), name, strlen(name));
	return 0;
}

size_t disks_count(const struct disks *d)
{
	return d->n;
}

struct disk *disks_at(struct disks *d, size_t i)
{
	return &d->devices[i]->disk;
}

static struct lane *lane_at(struct device *v, unsigned i)
{
	struct lane **block = &v->lanes[i / LANE_BLOCK];

	if (!*block)
		*block = calloc(LANE_BLOCK, sizeof(**block));
	return *block ? &(*block)[i % LANE_BLOCK] : NULL;
}

static struct lane *free_lane(struct device *v)
{
	for (unsigned i = 0; i < DISK_LANES; i++) {
		struct lane *lane = lane_at(v, i);

		if (!lane)
			return NULL;
		if (lane->busy)
			continue;
		lane->busy = true;
		return lane;
	}
	return NULL;
}

struct io *disks_submit(struct disks *d, const struct event *e)
{
	struct disk *disk = disks_get(d, e->device);
	struct flight *f = disk && HASH_COUNT(d->flights) < d->max ? calloc(1, sizeof(*f)) : NULL;

	if (!f) {
		d->refused++;
		return NULL;
	}
	f->io = (struct io){ .id = e->id, .submit = e->submit, .start = e->time, .disk = disk, .size = e->size, .op = e->op % DISK_OPS };
	HASH_ADD(hh, d->flights, io.id, sizeof(f->io.id), f);
	if (!f->hh.tbl) {
		free(f);
		d->refused++;
		return NULL;
	}
	f->io.lane = free_lane((struct device *)disk);
	d->refused += !f->io.lane;
	if (++disk->in_flight > disk->most)
		disk->most = disk->in_flight;
	return &f->io;
}

struct io *disks_stale(struct disks *d, uint64_t id)
{
	struct flight *f;

	HASH_FIND(hh, d->flights, &id, sizeof(id), f);
	return f ? &f->io : NULL;
}

struct io *disks_find(struct disks *d, uint64_t id, uint64_t submit)
{
	struct io *io = disks_stale(d, id);

	return io && io->submit == submit ? io : NULL;
}

struct io *disks_next(struct disks *d, struct io *io)
{
	struct flight *f = io ? ((struct flight *)io)->hh.next : d->flights; // uthash keeps the order of insertion

	return f ? &f->io : NULL;
}

void disks_ended(struct disks *d, struct io *io, uint64_t time, bool counted)
{
	struct flight *f = (struct flight *)io;
	struct disk *disk = io->disk;

	if (counted) {
		disk->ops[io->op]++;
		disk->bytes[io->op] += io->size;
		disk->time[io->op] += time > io->start ? time - io->start : 0;
	}
	disk->in_flight--;
	if (io->lane)
		io->lane->busy = false;
	HASH_DEL(d->flights, f);
	free(f);
}

uint64_t disks_refused(const struct disks *d)
{
	return d->refused;
}
