// SPDX-License-Identifier: Apache-2.0
// The inside of a diff, shared by the files that read the profiles (diff.c, diff_facts.c), rank (diff_rows.c), judge
// (diff_verdict.c) and show (diff_print.c, diff_json.c).
#ifndef BLKPROF_PPROF_DIFF_INTERNAL_H
#define BLKPROF_PPROF_DIFF_INTERNAL_H

#include "pprof/diff.h"
#include "pprof/intern.h"

// Sums of one side, not divided by time yet, and the variances of these sums.
struct diff_sum {
	double ops, time, bytes, value;
	double var_ops, var_time, var_value;
};

struct diff_cell {
	struct diff_sum side[DIFF_SIDES];
	double depth; // functions: frames between it and the leaf, weighted by value
	double weight;
	bool leaf, root; // functions: only ever seen there
};

struct diff_group {
	struct intern keys;
	struct diff_cell *cells; // by id
	size_t cap;
};

// How much more a (device, op) varies than independent arrivals would.
struct diff_spread {
	double ops, time;
};

struct diff_class {
	uint32_t device_op; // id in groups[DIFF_BY_DEVICE]
	uint32_t pad;
	int64_t class; // bytes or latency
};

// What a profile says of itself in its comments.
struct diff_facts {
	struct diff_coverage coverage;
	double weight;	  // operations that a sampled one stands for, on average
	double cpu_period; // ns
};

struct diff {
	const struct profile *profile[DIFF_SIDES];
	struct diff_facts facts[DIFF_SIDES];
	struct memory_budget budget;
	char *type, *unit;
	size_t type_index[DIFF_SIDES];
	int ops_index[DIFF_SIDES], time_index[DIFF_SIDES], read_index[DIFF_SIDES], write_index[DIFF_SIDES]; // -1 = none
	struct diff_group groups[DIFF_BYS];
	struct diff_group sizes, latencies; // struct diff_class
	struct diff_spread *spreads[DIFF_SIDES]; // by id in groups[DIFF_BY_DEVICE]
	size_t spreads_n;
	struct diff_sum total[DIFF_SIDES];
	struct diff_verdict verdict;
};

// diff_facts.c
int diff_read_facts(const struct profile *p, struct diff_facts *ret);
// From the comments "series": what a (device, op) varied by beyond `model`, the variances that independent requests
// would have. 1 where nothing is known.
// The comments "series" of the (device, op) in a table, sorted by its id there and in their order; `of` is the caller's.
struct diff_series {
	struct diff_series_comment {
		uint32_t id, comment;
	} *of;
	size_t n, at; // at: the first one that was not read yet
};
int diff_find_series(const struct profile *p, const struct intern *names, struct diff_series *ret);
// To be asked for with ascending ids.
struct diff_spread diff_read_spread(const struct profile *p, struct diff_series *series, uint32_t id, const struct diff_sum *model);

// diff_rows.c
double diff_rate(const struct diff *d, enum diff_side side, double sum); // per second and node
double diff_error(const struct diff *d, const struct diff_cell *c);	 // of the change of the value's rate
double diff_limit(size_t n); // standard errors that a change of one in n must have
struct diff_row diff_row_of(const struct diff *d, const char *name, const struct diff_cell *c, double limit);

// diff_verdict.c
void diff_judge(struct diff *d);

#endif
