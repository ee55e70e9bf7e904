// SPDX-License-Identifier: Apache-2.0
// The table of requests on a terminal: the slowest, where their time went, and sums by handler. Rows may come from records
// of this node or from a collector.
#ifndef BLKPROF_CLI_REQUESTS_TABLE_H
#define BLKPROF_CLI_REQUESTS_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Times in milliseconds; below 0 = not known.
struct requests_row {
	uint64_t start; // ns since the epoch
	double duration, io, oncpu, runq, lock, client;
	double disk, net, poll, pipe, sleep, other; // waits: with oncpu, runq, lock and client all of the duration
	double stopped; // the whole JVM, whatever the thread did
	double disk_max;
	uint64_t read_bytes, write_bytes;
	uint64_t requests; // that it stands for, 1 or more
	double longest;	   // of those
	int status;
	bool incomplete;
	char host[64], method[16], core[64], handler[128], target[512]; // target: path and query
	char device[32];
};

struct requests_table;

struct requests_table *requests_table_new(unsigned slowest); // NULL without memory
void requests_table_free(struct requests_table *t);
void requests_table_add(struct requests_table *t, const struct requests_row *row); // one request
void requests_table_add_row(struct requests_table *t, const struct requests_row *row); // one request: not among the handlers
void requests_table_add_sum(struct requests_table *t, const struct requests_row *row); // several: only among the handlers
// by: what the sums are by, "handler".
void requests_table_print(const struct requests_table *t, const char *by, FILE *to);
uint64_t requests_table_requests(const struct requests_table *t);

#endif
