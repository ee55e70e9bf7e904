// SPDX-License-Identifier: Apache-2.0
// I/O in flight, each in a lane of its device that it has to itself, and what each device did.
#ifndef BLKPROF_TIMELINE_DISKS_H
#define BLKPROF_TIMELINE_DISKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "timeline/event.h"

#define DISK_OPS 8
#define DISK_LANES 4096 // of one device; what comes on top has none

struct disk {
	uint32_t device;
	char name[64];
	uint64_t track, counter; // of whoever shows it
	uint64_t in_flight, most;
	uint64_t ops[DISK_OPS], bytes[DISK_OPS], time[DISK_OPS]; // ended ones
	uint64_t open, unseen; // in flight at the end; whose end was not seen
};

struct lane {
	uint64_t track; // of whoever shows it
	bool busy;
};

struct io {
	uint64_t id, submit; // with which its end names it
	uint64_t start;	     // since when it is shown
	struct disk *disk;
	struct lane *lane; // NULL: beyond DISK_LANES
	uint32_t size;
	uint8_t op;
};

struct disks;

struct disks *disks_new(size_t max_in_flight);
void disks_free(struct disks *d);
// NULL without memory.
struct disk *disks_get(struct disks *d, uint32_t device);
int disks_name(struct disks *d, uint32_t device, const char *name);
size_t disks_count(const struct disks *d);
struct disk *disks_at(struct disks *d, size_t i); // in the order of their coming

// NULL beyond max_in_flight or without memory, which is counted; so is one that gets no lane. e->submit is its time as its end
// will have it, e->time since when it is shown.
struct io *disks_submit(struct disks *d, const struct event *e);
struct io *disks_find(struct disks *d, uint64_t id, uint64_t submit);
// One with the same id whose end was not seen, for a submission is there again; or NULL.
struct io *disks_stale(struct disks *d, uint64_t id);
struct io *disks_next(struct disks *d, struct io *io); // in flight, behind io (NULL: the first), by submission; NULL: no more
// It ended (counted, at `time`) or nobody knows when: out of its lane and gone.
void disks_ended(struct disks *d, struct io *io, uint64_t time, bool counted);
uint64_t disks_refused(const struct disks *d);

#endif
