// SPDX-License-Identifier: Apache-2.0
// The inside of a store, shared by the files that write it (store_ingest.c, store_rollup.c, store_retention.c) and read it
// (store_query.c …). DESIGN: docs/store.md.
#ifndef BLKPROF_COLLECTOR_STORE_INTERNAL_H
#define BLKPROF_COLLECTOR_STORE_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "collector/store.h"
#include "collector/store_columns.h"
#include "collector/store_db.h"
#include "collector/store_dict.h"
#include "collector/store_hash.h"

#define STORE_FILE "blkprof.db"
#define STORE_VERSION 4
#define WINDOW_MAX_NS (86400ull * 1000000000u) // of one batch
#define HOUR_NS (3600ull * 1000000000u)

// Levels of spans: what was received, and roll-ups.
enum level {
	LEVEL_WINDOW,
	LEVEL_MINUTE,
	LEVEL_TEN_MINUTES,
	LEVEL_HOUR,
	LEVELS
};

static inline uint64_t level_ns(unsigned level)
{
	static const uint64_t seconds[LEVELS] = { 0, 60, 600, 3600 };

	return seconds[level] * 1000000000u;
}

// Columns of the k-th service of a span have the id span * COLUMNS_PER_SPAN + k.
#define COLUMNS_PER_SPAN BATCH_PROFILES_MAX

struct maintenance;

struct store {
	struct store_options options;
	char *directory, *path;
	int lock_fd;	     // held while it may write
	sqlite3 *db;	     // of the writer; of a read-only store its only one
	pthread_mutex_t lock; // over db, when it may write
	struct hash_secret secret;
	struct dict *dict;
	struct packer *packer;
	struct sums sums;
	struct buf scratch;
	struct ingest *ingest;
	struct maintenance *maintenance;
	// Of the last step in the background. A lock of its own: who asks does not wait for a transaction.
	pthread_mutex_t trouble_lock;
	int trouble;
	struct error trouble_text;
};

// store_schema.c
int schema_open(sqlite3 *db, bool read_only, struct hash_secret *ret, struct error *e);
// A connection for reading; the caller closes it.
int store_reader(struct store *s, sqlite3 **ret, struct error *e);
// A store of another process's, which may be running on it: the caller closes it.
int store_beside(const char *directory, sqlite3 **ret, struct error *e);
int store_begin(struct store *s, struct error *e);
int store_commit(struct store *s, struct error *e); // on failure everything is undone
void store_rollback(struct store *s);

// store_ingest.c
struct ingest;
struct ingest *ingest_new(struct store *s, struct error *e);
void ingest_free(struct ingest *in);

// Rows of a node that stay for ever: starts of its agent, ranges of received and of lost numbers.
#define MAX_NODES 100000
#define MAX_ENTRIES (1u << 20)
#define MAX_WINDOWS 4096 // of a node in a minute

struct entries {
	int64_t used, max, before; // before this batch
};

int entries_take(struct entries *n, struct error *e); // 0 or -EUSERS

// store_seen.c: which batches were received.
struct seen;
struct seen *seen_new(sqlite3 *db, const struct store_options *options, struct error *e);
void seen_free(struct seen *n);
// Each that adds something: also -EUSERS.
int seen_node(struct seen *n, const char *node, uint64_t length, int64_t *ret, struct entries *ret_entries, struct error *e);
int seen_agent(struct seen *n, int64_t node, const uint8_t instance[16], int64_t *ret, struct entries *entries, struct error *e);
int seen_has(struct seen *n, int64_t agent, uint64_t sequence, struct error *e); // 1, 0
int seen_entries(struct seen *n, int64_t node, const struct entries *entries, struct error *e); // writes them down
// -EEXIST when the sequence was seen before; else it is now.
int seen_add(struct seen *n, int64_t agent, uint64_t sequence, struct entries *entries, struct error *e);

// store_gaps.c: which batches an agent had to drop.
struct gaps;
struct gaps *gaps_new(sqlite3 *db, struct error *e);
void gaps_free(struct gaps *g);
// Those of the record that are neither here nor known to be lost; -EEXIST when that is none of them.
int gaps_add(struct gaps *g, int64_t agent, const struct batch *b, struct entries *entries, struct error *e);
// Batches that the store had and had to drop: 1 when that is a gap of its own, 0 when it continues one.
int gaps_forgot(struct gaps *g, int64_t agent, uint64_t first, uint64_t last, uint64_t start, uint64_t end, struct error *e);
// A batch that was taken for lost is here.
int gaps_found(struct gaps *g, int64_t agent, uint64_t sequence, struct entries *entries, struct error *e);

#endif
