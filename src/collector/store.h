// SPDX-License-Identifier: Apache-2.0
// The collector's embedded store (SQLite, WAL): batches in, merged profiles of any window out.
#ifndef BLKPROF_COLLECTOR_STORE_H
#define BLKPROF_COLLECTOR_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "pprof/builder.h"
#include "wire/batch.h"

struct store;

struct store_options {
	const char *directory;
	uint64_t max_age_ns; // 0 = for ever
	uint64_t max_size;   // bytes on disk, 0 = no limit
	bool read_only;	     // queries beside a running collector
	bool no_background;  // roll-ups and retention only when store_maintain is called: for tests
	// What may be there at most, so that nobody who may send fills the store with what no retention takes away: nodes; of a
	// node, starts of its agent and ranges of received and lost numbers; of a node and a minute, windows. 0 = the default.
	unsigned max_nodes, max_entries, max_windows;
};

int store_open(const struct store_options *options, struct store **ret, struct error *e);
void store_close(struct store *s);

// Commits all of them in one transaction that is durable when this returns 0 (synchronous=FULL); results[i] is 0 stored,
// -EEXIST a duplicate by (node, instance, sequence), -EFBIG its profiles are too large when decompressed, -EBADMSG a profile
// in it is refused, -EUSERS there is no room for more of its node (nothing of the batch is kept).
// A failure (disk full) keeps none of them: the caller acknowledges nothing.
int store_put(struct store *s, const struct batch *const *batches, unsigned n, int *results, struct error *e);
// The same; *whys[i] says why a batch is refused.
int store_put_why(struct store *s, const struct batch *const *batches, unsigned n, int *results, struct error *const *whys,
		  struct error *e);

// What a store does in a thread of its own, unless no_background: a short step of roll-ups, retention, clearing. 1 when there
// is more to do at once. now is ns since the epoch.
int store_maintain(struct store *s, uint64_t now, struct error *e);
// What went wrong in the last step of that thread (it tries again): 0 or an error to log.
int store_trouble(struct store *s, struct error *e);

// Bytes on disk: the database, and the log beside it.
void store_size(const struct store *s, uint64_t *ret_file, uint64_t *ret_log);

// What a query may take; all zero = as much as it needs.
struct store_limits {
	size_t memory; // bytes of its sums and its profile, each: -E2BIG
	// Asked again and again while the query runs: what it returns other than 0 ends it, with e as it set it.
	int (*go_on)(void *context, struct error *e);
	void *context;
};

struct store_query {
	uint64_t from, to; // ns since the epoch
	const char *node, *service, *device; // NULL = all
	unsigned n_labels;
	const struct batch_label *labels; // of the batches (agent.conf [labels]) or of the samples (op, comm …)
	const char *type;		  // the profile's default sample type, by name; NULL = io_time
	const struct store_limits *limits; // NULL = none
};

// How much of the window is covered and how: shown by query and diff.
struct store_coverage {
	uint64_t node_seconds_ns; // of all nodes together
	unsigned nodes, windows, straddling; // windows that an edge cuts: shared out by time
	unsigned rollups;		     // windows of roll-ups that had to stand for windows that are gone
	unsigned ambiguous;		     // windows left out: in roll-ups that overlap what another store had
	uint64_t lost, lost_ns;		     // batches that agents had to drop (gaps), and how long those were
	bool empty;			     // no sample in all of it is of what was asked for
};

// One merged profile, gzipped. -ENODATA when nothing is there (with what is: the nearest window).
int store_query(struct store *s, const struct store_query *q, struct buf *ret_gz, struct store_coverage *ret, struct error *e);
// The same over several stores; a batch that is in more than one of them counts once.
int store_query_many(struct store *const *stores, unsigned n, const struct store_query *q, struct buf *ret_gz,
		     struct store_coverage *ret, struct error *e);

// In words: "36 windows of 3 nodes: 120 node-seconds, 98.0% of the time asked for; ...".
void store_coverage_print(const struct store_coverage *c, const struct store_query *q, struct buf *to);

// How values went over time: [from, to) in buckets of `step` from `from` on, the last one perhaps shorter.
#define STORE_BUCKETS_MAX 2000
#define STORE_SERIES_MAX 200 // names; what there is beyond them is "[other]"

struct store_point {
	int64_t value[PPROF_TYPES];
};

struct store_series {
	char *name; // "" where `by` is NULL or the samples have no such label
	struct store_point *point;
};

struct store_series_set {
	size_t buckets, n;
	struct store_series series[STORE_SERIES_MAX]; // by name
	uint64_t *node_seconds_ns; // covered, of each bucket
	struct store_coverage coverage;
};

// `by` is "node", the name of a label of the samples, or NULL: all in one. -EINVAL, -ERANGE (too many buckets), -ENODATA.
int store_series(struct store *s, const struct store_query *q, uint64_t step, const char *by, struct store_series_set **ret,
		 struct error *e);
void store_series_free(struct store_series_set *set);

enum store_list { STORE_NODES, STORE_SERVICES, STORE_WINDOWS };
typedef int (*store_list_fn)(void *context, const char *name, uint64_t from, uint64_t to, uint64_t windows);
int store_list(struct store *s, enum store_list what, const struct store_query *q, store_list_fn fn, void *context, struct error *e);
// The same over several stores; what is in more than one of them is there once. Windows in the order of node and time.
int store_list_many(struct store *const *stores, unsigned n, enum store_list what, const struct store_query *q, store_list_fn fn,
		    void *context, struct error *e);

// Reads everything and tells what is wrong, a line each; also beside a running collector.
typedef void (*store_check_fn)(void *context, const char *what);
int store_check(struct store *s, store_check_fn fn, void *context, uint64_t *ret_found, struct error *e);
// Gives the pages that are free back to the file system; also beside a running collector. Bytes of the file.
int store_compact(const char *directory, uint64_t *ret_before, uint64_t *ret_after, struct error *e);

#endif
