// SPDX-License-Identifier: Apache-2.0
// The inside of a recording, shared by the files that drive it (recorder.c), take records in (intake.c), end windows
// (window.c), read the kernel's maps (kernel_maps.c, in_flight.c) and write its results (profile.c, report.c).
#ifndef BLKPROF_AGENT_RECORDER_INTERNAL_H
#define BLKPROF_AGENT_RECORDER_INTERNAL_H

#include <bpf/libbpf.h>

#include "agent/aggregate.h"
#include "agent/probes.h"
#include "agent/procs.h"
#include "agent/recorder.h"
#include "agent/unwinder.h"
#include "bpf/unwind_rec.h"
#include "agent/resolver.h"
#include "agent/stacks.h"
#include "agent/whyempty.h"

#define RECORD_STEER_CPUS 1024

// A record whose stack is still to be resolved.
struct pending {
	struct bio_rec rec;
	uint16_t disk;
};

struct window {
	struct recorder *recorder;
	struct rows *rows;
	struct window_info info;
	struct window *prev, *next; // of those that the recorder's user holds
};

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
	struct resolver *resolver;
	struct aggregate *aggregate;
	struct pending *pending;
	size_t n_pending, cap_pending;
	uint32_t room; // records that may still be taken from the ring before something else is done
	uint64_t asked, waiting; // when a process was last asked for; since when resolving waits for that, 0 = it does not
	struct window *windows; // held
	struct window *last;	// from the last cut, or the start, to the stop
	struct io_snapshot *before, *after;

	char disks[AGGREGATE_DISKS][32]; // names by index
	uint32_t disk_devs[AGGREGATE_DISKS];
	unsigned n_disks;
	uint16_t slot_disk[RECORD_SLOTS]; // AGGREGATE_NO_DISK = not asked yet
	struct op_counter counted[2][RECORD_SLOTS][OP_CLASSES]; // what was taken from each bank so far

	uint64_t start, stop;		  // ns, CLOCK_MONOTONIC
	uint64_t start_real;		  // ns since the epoch
	uint64_t housekeeping, second;	  // when they are due
	unsigned turns;			  // of housekeeping
	uint64_t steered;		  // when the sampling target was last looked at
	uint64_t steer_samples[RECORD_STEER_CPUS]; // taken by each CPU until then
	struct cpu_state kernel;	  // sums over CPUs, refreshed by kernel_maps_totals
	uint64_t losses[LOSS_CAUSES];	  // of user space
	uint64_t unseen;		  // entries that scans found ended
	uint64_t pids_folded;
	struct cpu_state cut_kernel;	  // of the last cut
	uint64_t cut_losses[LOSS_CAUSES];
	int record_error; // of a callback of the ring
};

// kernel_maps.c
uint16_t kernel_maps_disk(struct recorder *r, uint32_t slot);
void kernel_maps_steer(struct recorder *r, uint64_t now);      // about once a second
int kernel_maps_totals(struct recorder *r);		       // fills r->kernel
int kernel_maps_counters(struct recorder *r, uint32_t window, struct rows *rows); // what a bank gained, into rows
int kernel_maps_renamed(struct recorder *r);		       // slots whose device number is another disk's now
void kernel_maps_lower(struct recorder *r);		       // tells the programs which devices carry others

// intake.c
int intake_record(void *context, void *data, size_t size); // of the ring
int intake_poll(struct recorder *r, int timeout_ms);
int intake_drain(struct recorder *r); // all that the ring holds now
// Who a bio is of, and what is done with a record that did not come from the ring.
int intake_who(struct recorder *r, const struct in_flight *e, struct row_who *ret);
int intake_take(struct recorder *r, const struct bio_rec *rec, uint16_t disk);
void intake_sweep(struct recorder *r);
void intake_forget_stack(uint64_t hash, void *context); // of struct stacks

// window.c
int window_new(struct recorder *r, struct rows *rows, uint64_t start, uint64_t end, uint64_t end_real, struct window **ret);
// What was aggregated for kernel window `window`, scaled. With an error of what came before it is dropped, and the error given back.
int window_take(struct recorder *r, uint32_t window, uint64_t end, uint64_t end_real, int err, struct window **ret);

// in_flight.c
typedef int (*in_flight_fn)(struct recorder *r, uint64_t address, const struct in_flight *e, void *context);
int in_flight_each(struct recorder *r, in_flight_fn fn, void *context);
// Takes an entry out; false when it is not there any more: it may have completed as it should, and another bio have come to
// its address, since the scan read it.
bool in_flight_take_out(struct recorder *r, uint64_t address, const struct in_flight *e);
// True when the entry's bio has ended without our hooks; its record is then taken in and the entry is gone.
bool in_flight_ended(struct recorder *r, uint64_t address, const struct in_flight *e);
// Takes in what ended unseen, ages entries out, gives back what the LRU evicted to the filter's counters.
int in_flight_housekeep(struct recorder *r);

#define SERVICE_NOT_SAMPLED UINT32_MAX // of operations of which none was sampled

struct window_view;

// profile.c: of one service, or of the node when it is 0. view may be NULL.
int profile_make(const struct window *w, uint32_t service, const struct window_view *view, struct buf *ret_gz);
void recorder_sum_losses(struct recorder *r); // into r->losses, from the kernel and from procs

#endif
