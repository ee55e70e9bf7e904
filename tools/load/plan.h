// SPDX-License-Identifier: Apache-2.0
// One line of a plan: FUNCTION:METHOD:KEY=VALUE,… with the keys
//   target=PATH      file or block device (the program's default when absent)
//   size=BYTES       of each request (4096); K and M are understood
//   count=N          requests, over all threads (1009)
//   threads=N        (1)
//   depth=N          requests in flight per thread, for aio and io_uring (1)
//   rate=N           requests a second over all threads; 0 as fast as it goes (0)
//   order=seq|random each place of the target at most once until all had their turn (seq)
//   seed=N           of the random order and of the data (1)
//   skip=BYTES       start of the range of the target that is used (0)
//   data=random|zero what is written (random)
//   name=TEXT        threads are named TEXT0, TEXT1, …
#ifndef LOAD_PLAN_H
#define LOAD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "functions.h"

struct entry {
	char function[32];
	issue_fn issue;
	enum method method;
	char target[256]; // "" = default
	uint64_t size, count, rate, seed, skip;
	unsigned threads, depth;
	bool random, zero;
	char name[12];
};

int entry_parse(const char *text, struct entry *ret, struct error *e);

struct plan {
	struct entry *entries; // owned
	unsigned count;
};

int plan_add(struct plan *p, const char *text, struct error *e);
// One entry a line; blank lines and lines that begin with '#' are skipped.
int plan_read(struct plan *p, const char *path, struct error *e);
void plan_free(struct plan *p);

#endif
