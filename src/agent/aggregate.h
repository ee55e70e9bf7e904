// SPDX-License-Identifier: Apache-2.0
// Sampled bios added up to the rows of a window. Pure: records in, rows out; no kernel, no clock.
//
// Time belongs to the window in which it was spent, operations and bytes to the window of submission. A window is ended
// by aggregate_cut with the bios that were in flight then: each is charged with its part so far, and its completion later
// charges the rest, so that the parts of a bio add up to its latency.
#ifndef BLKPROF_AGENT_AGGREGATE_H
#define BLKPROF_AGENT_AGGREGATE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/record_rec.h"

#define AGGREGATE_DISKS 256 // different disks; the last one takes the rest
#define AGGREGATE_NO_DISK 0xffff

struct aggregate;
struct rows;
struct series;

// Who it was, as numbers of the resolver (resolver.h); 0 = none, or not told apart.
struct row_who {
	uint32_t stack, process, service, comm;
	uint32_t tgid; // folded away when there are too many
};

struct row_key {
	struct row_who who;
	uint32_t bytes;	  // lower bound of its power-of-two class
	uint64_t latency; // lower bound of its 1-2-5 class, ns
	uint16_t disk;	  // AGGREGATE_NO_DISK for CPU samples
	uint8_t op;
	uint8_t in_flight;   // charged at the end of the recording
	uint8_t cpu;	     // a CPU sample: no disk, op, bytes, latency
	uint8_t not_sampled; // stands for operations of which none was sampled
	uint8_t unseen; // nobody knows when they ended: operations and bytes, no latency, no time of their own
	uint8_t pad;
};

struct row {
	struct row_key key;
	double ops, bytes, time_ns; // weighted; after rows_scale ops and bytes are whole numbers
	double cpu;		    // CPU samples
	uint64_t samples;
};

struct aggregate_options {
	unsigned max_rows;    // beyond it bios are added to a row of their process without stack, and counted
	bool latency, bytes; // whether rows are told apart by these classes
};

struct aggregate *aggregate_new(const struct aggregate_options *options);
void aggregate_free(struct aggregate *a);

// The first window begins. Records before are of no window. 0 or -ENOMEM, as aggregate_cut.
int aggregate_begin(struct aggregate *a, uint32_t window, uint64_t start);
// Who a bio is of, where that was said before (aggregate_in_flight, aggregate_remember); else NULL.
const struct row_who *aggregate_known(struct aggregate *a, const struct in_flight *e);
// A record from the ring; `disk` is the index of its slot's disk.
int aggregate_record(struct aggregate *a, const struct bio_rec *rec, const struct row_who *who, uint16_t disk);
// A scan of the bios in flight begins: who was not seen by the last two is forgotten. aggregate_cut begins one too.
void aggregate_scan(struct aggregate *a);
// Keeps who a bio in flight is of while its process is still known.
int aggregate_remember(struct aggregate *a, const struct in_flight *e, const struct row_who *who);
// Window `window` ends at `end`, the next begins. Then: aggregate_record for what the ring held, aggregate_in_flight for
// each entry of the map, aggregate_record again for what completed meanwhile, aggregate_take.
int aggregate_cut(struct aggregate *a, uint64_t end);
int aggregate_in_flight(struct aggregate *a, const struct in_flight *e, const struct row_who *who, uint16_t disk);
// As aggregate_in_flight at the end of the recording: charged up to `now` under a leaf [in flight], nothing follows.
int aggregate_in_flight_last(struct aggregate *a, const struct in_flight *e, const struct row_who *who, uint16_t disk,
			     uint64_t now);
// The rows of the window that was cut (or, without a cut, of the current one, which is empty then). Owned by the caller.
struct rows *aggregate_take(struct aggregate *a);
struct rows *aggregate_current(struct aggregate *a); // of the window that runs; still the aggregate's
uint64_t aggregate_rows_full(const struct aggregate *a); // records folded away for max_rows

// Everybody whom rows and bios in flight name.
typedef void (*aggregate_who_fn)(const struct row_who *who, void *context);
void aggregate_each_who(const struct aggregate *a, aggregate_who_fn fn, void *context);
// Where there are many rows: those of processes that are `gone` are added to rows without process id. Returns how many
// samples they had.
uint64_t aggregate_fold_pids(struct aggregate *a, bool (*gone)(uint32_t tgid, void *context), void *context);

struct rows_info {
	uint64_t start, end; // ns, CLOCK_MONOTONIC
	uint32_t window;
};

void rows_free(struct rows *r);
void rows_each_who(const struct rows *r, aggregate_who_fn fn, void *context);
// Adds the rows and exact counters of a later window, both after rows_scale; then rows_sort before rows_get.
int rows_merge(struct rows *into, const struct rows *from);
int rows_sort(struct rows *r); // by device and operation: equal input, equal order
unsigned rows_count(const struct rows *r);
const struct row *rows_get(const struct rows *r, unsigned i);
const struct rows_info *rows_get_info(const struct rows *r);
// Exact operations and bytes of (disk, op) in this window. Adds up when called twice.
void rows_exact(struct rows *r, uint16_t disk, uint8_t op, uint64_t ops, uint64_t bytes);
uint64_t rows_exact_ops(const struct rows *r, uint16_t disk, uint8_t op);
uint64_t rows_exact_bytes(const struct rows *r, uint16_t disk, uint8_t op);
// Scales operations and bytes to the exact counters of each (disk, op) by largest remainder and time by the operations'
// factor; what has operations and no sample becomes a row `not_sampled`. Sorts the rows: equal input, equal order.
int rows_scale(struct rows *r);

// After rows_scale: the share of the sampled operations of (disk, op) whose completion nobody showed us.
double rows_missed(const struct rows *r, uint16_t disk, uint8_t op);
// How the window went, before rows_scale too. Owned by the rows.
const struct series *rows_series(const struct rows *r);

uint64_t latency_class(uint64_t ns);  // 0, 1 us, 2 us, 5 us, 10 us …: the lower bound
uint32_t bytes_class(uint32_t bytes); // 0, 1, 2, 4 …: the lower bound

#endif
