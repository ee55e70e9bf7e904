// SPDX-License-Identifier: Apache-2.0
// Questions about the records of requests in stores.
#ifndef BLKPROF_COLLECTOR_STORE_REQUESTS_H
#define BLKPROF_COLLECTOR_STORE_REQUESTS_H

#include "collector/store.h"
#include "request/where.h"

#define REQUESTS_MOST 10000 // records of one answer
#define REQUESTS_FACETS 8
#define REQUESTS_FACET_VALUES 1000 // of one; what there is beyond them is "[other]"

struct store_requests {
	uint64_t from, to; // of event_timestamp_dt, ns since the epoch
	const char *node;  // NULL = all
	const char *kind;  // kind_s: "request", "handler", "thread"; NULL = requests one by one, in sums and facets with the
			   // handlers' sums of those that were too many to be told; "all"
	unsigned n_where;
	const struct where *where; // all must hold
	const char *sort;	   // a field of numbers or of time, NULL = duration_ms_f; the largest first
	unsigned limit;		   // records, at most REQUESTS_MOST
	unsigned n_facets;
	const char *const *facet; // fields
	bool count; // read everything, so that the sums are of all that match; facets do that too
	const struct store_limits *limits; // NULL = none
};

struct requests_sum {
	uint64_t requests;
	double io, io_max, duration, duration_max, oncpu, lock; // ms
};

struct requests_facet_value {
	char *value;
	struct requests_sum sum;
};

struct requests_facet {
	const char *field; // the question's
	unsigned n;
	struct requests_facet_value *value; // most requests first
};

struct requests_record {
	double key;
	char *document; // terminated
	size_t size;
};

struct requests_answer {
	bool whole; // everything was read: sums are of all that match
	uint64_t read, unreadable; // records
	struct requests_sum sum;
	unsigned n;
	struct requests_record *record; // in order
	unsigned n_facets;
	struct requests_facet facet[REQUESTS_FACETS];
};

// A batch that is in several of the stores counts once. -EINVAL, or of reading.
int store_requests(struct store *const *stores, unsigned n, const struct store_requests *q, struct requests_answer **ret, struct error *e);
void requests_answer_free(struct requests_answer *a);

#endif
