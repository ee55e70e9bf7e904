// SPDX-License-Identifier: Apache-2.0
// The inside of a recording, shared by the files that drive it (recorder.c), read the kernel's maps (kernel_maps.c,
// in_flight.c) and write its results (profile.c, report.c).
#ifndef BLKPROF_AGENT_RECORDER_INTERNAL_H
#define BLKPROF_AGENT_RECORDER_INTERNAL_H

#include <bpf/libbpf.h>

#include "agent/aggregate.h"
#include "agent/frames.h"
#include "agent/probes.h"
#include "agent/procs.h"
#include "agent/recorder.h"
#include "agent/unwinder.h"
#include "bpf/unwind_rec.h"
#include "agent/whyempty.h"

#define RECORD_STEER_CPUS 1024

struct recorder {
	struct recorder_options options;
	char node[65];
	enum backend backend;
	char reason[512]; // why no better backend
	struct probes *probes;
	struct ring_buffer *ring;
	struct symbolizer *symbolizer;
	struct procs *procs;
	struct devices *devices;
	struct unwinder *unwinder; // NULL: stacks are walked by frame pointer
	struct stacks *stacks;
	struct aggregate *aggregate;
	struct rows *rows; // of the whole recording, after stop
	struct io_snapshot *before, *after;

	char disks[AGGREGATE_DISKS][32]; // names by index
	uint32_t disk_devs[AGGREGATE_DISKS];
	unsigned n_disks;
	uint16_t slot_disk[RECORD_SLOTS]; // AGGREGATE_NO_DISK = not asked yet
	struct op_counter counted[2][RECORD_SLOTS][OP_CLASSES]; // what was taken from each bank so far

	uint64_t start, stop;		  // ns, CLOCK_MONOTONIC
	uint64_t start_real;		  // ns since the epoch
	uint64_t housekeeping;		  // when it is due
	uint64_t steered;		  // when the sampling target was last looked at
	uint64_t steer_samples[RECORD_STEER_CPUS]; // taken by each CPU until then
	struct cpu_state kernel;	  // sums over CPUs, refreshed by kernel_maps_totals
	uint64_t losses[LOSS_CAUSES];	  // of user space
	uint64_t unseen;		  // entries that scans found ended
	uint64_t recovered, resolved;	  // samples whose skipped caller was recovered, of all
	bool procs_failed;
	int record_error; // of a callback of the ring
};

// kernel_maps.c
uint16_t kernel_maps_disk(struct recorder *r, uint32_t slot);
void kernel_maps_steer(struct recorder *r, uint64_t now);      // about once a second
int kernel_maps_totals(struct recorder *r);		       // fills r->kernel
int kernel_maps_counters(struct recorder *r, uint32_t window, struct rows *rows); // what a bank gained, into rows
void kernel_maps_lower(struct recorder *r);		       // tells the programs which devices carry others

// in_flight.c
typedef int (*in_flight_fn)(struct recorder *r, uint64_t address, const struct in_flight *e, void *context);
int in_flight_each(struct recorder *r, in_flight_fn fn, void *context);
// True when the entry's bio has ended without our hooks; its record is then taken in and the entry is gone.
bool in_flight_ended(struct recorder *r, uint64_t address, const struct in_flight *e);
// Takes in what ended unseen, ages entries out, gives back what the LRU evicted to the filter's counters.
int in_flight_housekeep(struct recorder *r);

// profile.c: the profile of rows; the resolver is of this moment.
int profile_make(struct recorder *r, struct rows *rows, uint64_t time_real, uint64_t duration, struct buf *ret_gz);
void recorder_sum_losses(struct recorder *r); // into r->losses, from the kernel and from procs

#endif
