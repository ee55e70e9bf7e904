// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_PPROF_TOP_INTERNAL_H
#define BLKPROF_PPROF_TOP_INTERNAL_H

#include "pprof/top.h"

// A function as reports see it: by its name; where it has none, by the file of its mapping.
struct node_key {
	uint32_t name, file;
	int64_t start_line;
};

struct node {
	int64_t flat, cum, flat_events, cum_events;
	uint64_t seen; // number of the sample that was added last
	bool inlined, called;
};

struct sum {
	int64_t value, events;
};

struct label_key {
	uint32_t text, unit;
	int64_t number;
	uint64_t present;
};

// The nodes of a location: node_ids[first … first + n - 1], innermost first.
struct location_nodes {
	uint32_t n;
	size_t first;
};

struct top {
	struct top_options options;
	struct pprof_reader *reader;
	const struct profile *profile;
	struct memory_budget *budget;
	size_t type;
	bool ready, has_events, diff, time;
	bool no_stacks; // they were asked for and given up for memory
	uint64_t samples;
	int64_t total, base_total, events, base_events;
	int64_t *type_totals;
	struct intern nodes; // struct node_key
	struct node *node;
	size_t node_cap;
	struct location_nodes *locations; // by location id
	size_t locations_cap, n_locations;
	uint32_t *node_ids;
	size_t n_node_ids, node_ids_cap;
	struct intern stacks; // node ids, leaf first
	struct sum *stack_sums;
	size_t stack_sums_cap;
	uint32_t *stack;
	size_t stack_cap;
	struct intern labels; // struct label_key
	struct sum *label_sums;
	size_t label_sums_cap;
	char **names; // of nodes that have no name of their own
	size_t names_cap;
};

// "1.5 ms", "24 KiB", "7": a value of a unit as people read it.
const char *top_format(char *out, size_t cap, int64_t value, const char *unit);

#endif
