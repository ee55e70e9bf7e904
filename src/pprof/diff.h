// SPDX-License-Identifier: Apache-2.0
// What changed between two profiles: rates of both by function, stack, device and service, the error of each change, the
// change of time split into more work and slower work, and one sentence that says what kind of change it is.
//
// Windows of any length and number of nodes are compared by rates per second and node. Both are samples: a change has a
// standard error (sampling, arrivals and, where the profiles carry it, how much the load varied from second to second),
// and what is within it is not ranked.
#ifndef BLKPROF_PPROF_DIFF_H
#define BLKPROF_PPROF_DIFF_H

#include <stdbool.h>

#include "common/buf.h"
#include "common/error.h"
#include "pprof/profile.h"

enum diff_side {
	DIFF_BASE,
	DIFF_INCIDENT,
	DIFF_SIDES,
};

enum diff_by {
	DIFF_BY_DEVICE, // and operation: "vda read"
	DIFF_BY_SERVICE,
	DIFF_BY_FUNCTION, // once per stack
	DIFF_BY_STACK,	  // "root;...;leaf"
	DIFF_BYS,
};

enum diff_kind {
	DIFF_NOISE,	// nothing beyond noise
	DIFF_SLOWER,	// the device got slower
	DIFF_FASTER,
	DIFF_QUEUED,	// more is asked of the device at once and it serves no more
	DIFF_TAIL,	// most requests as before, a few much slower
	DIFF_MORE,	// more of the same work
	DIFF_LESS,
	DIFF_OTHER,	// other functions do the I/O
	DIFF_SPLIT,	// the same bytes in requests of another size
	DIFF_KINDS,
};

struct diff_row {
	const char *name;	  // owned by the diff
	double value[DIFF_SIDES]; // of the type, per second and node
	double ops[DIFF_SIDES], mean_ns[DIFF_SIDES]; // mean latency; 0 without operations
	double error;		  // standard error of value[1] - value[0]
	bool beyond_noise, appeared, gone;
};

// How much of a side was covered.
struct diff_coverage {
	double node_seconds;
	unsigned nodes, windows;
	double stacks; // sampled
	bool series;   // the profile says how much its load varied
};

struct diff_verdict {
	enum diff_kind kind;
	char text[600]; // one sentence
	const char *row; // the "device op" it is about, or NULL
	double more, slower; // of the change of I/O time: seconds a second
};

struct diff_options {
	const char *type; // that rows are ranked by; NULL = the incident's default
	size_t memory;	  // bytes, 0 = 256 MiB
};

struct diff;

// Both stay the caller's and must outlive the diff. -EINVAL: no such type, or a diff profile; -E2BIG: more than memory.
int diff_new(const struct profile *base, const struct profile *incident, const struct diff_options *options, struct diff **ret,
	     struct error *e);
void diff_free(struct diff *d);

// What changed most first: everything that has a change beyond noise, then the rest by size. The caller frees *ret.
int diff_rows(struct diff *d, enum diff_by by, struct diff_row **ret, size_t *ret_n);
struct diff_row diff_total(const struct diff *d);
const struct diff_coverage *diff_get_coverage(const struct diff *d, enum diff_side side);
const struct diff_verdict *diff_get_verdict(const struct diff *d);
const char *diff_kind_name(enum diff_kind kind); // "slower"
const char *diff_type(const struct diff *d);	 // "io_time"
const char *diff_unit(const struct diff *d);	 // "nanoseconds"

// For people and for programs; `rows` of each ranking, 0 = all.
int diff_print(struct diff *d, unsigned rows, struct buf *out);
int diff_json(struct diff *d, unsigned rows, struct buf *out);

// The profile that `go tool pprof` shows as a difference: the base negative, scaled to the incident's node-seconds, each
// of its samples labelled pprof::base=true. The message, not compressed.
int diff_profile(const struct profile *base, const struct profile *incident, struct buf *out, struct error *e);

#endif
