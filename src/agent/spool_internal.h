// SPDX-License-Identifier: Apache-2.0
// What the files of the spool share: spool.c (interface), spool_list.c (what there is, what is dropped), spool_thread.c
// (writes, syncs and removes), spool_scan.c (finds what an earlier start left).
#ifndef BLKPROF_AGENT_SPOOL_INTERNAL_H
#define BLKPROF_AGENT_SPOOL_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

#include "agent/spool.h"
#include "agent/spool_file.h"
#include "common/hash.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes(key, len, 0))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#define SPOOL_ENTRIES_MAX 65536
#define SPOOL_GAPS_MAX 1024

enum entry_state {
	ENTRY_WAITING, // in memory, to be written
	ENTRY_WRITING, // the thread is at it
	ENTRY_DURABLE,
};

enum drop_cause {
	DROP_FULL,
	DROP_WAITING,
	DROP_DAMAGED,
};

struct spool_key {
	uint8_t instance[16];
	uint64_t sequence;
};

struct entry {
	struct spool_key key;
	uint64_t order;	 // in its file's name; 0 = it never had one
	uint64_t start, end, gap_first, gap_bytes;
	uint8_t *data;	 // encoded, while it waits; a gap is encoded when it is written
	uint64_t size;	 // of data, or of the file's batch
	uint64_t disk;	 // what its file takes, 0 = none
	const char *node; // interned in spool.nodes
	uint8_t kind;
	uint8_t state;
	bool sent;
	bool damaged; // what its file holds cannot be read
	uint8_t read_failures;
	uint8_t stale;	// answers that are still to come are those of the batch that it was before it became a gap
	bool emptied;	// its file is there and holds nothing
	struct entry *prev, *next;
	UT_hash_handle hh;
};

struct node_name {
	UT_hash_handle hh;
	char name[BATCH_NODE_MAX + 1];
};

// A file to be unlinked by the thread.
struct removal {
	char name[SPOOL_NAME_MAX];
	struct removal *next;
};

struct spool {
	pthread_mutex_t lock;
	pthread_cond_t work, idle; // for the thread; for those who wait for it
	pthread_t thread;
	bool started, stop, ended;
	bool scanned;
	int folder, lock_file, event;
	uint64_t max_size, max_waiting;
	uint8_t instance[16];
	const char *node;
	struct node_name *nodes;
	uint64_t sequence, order; // last given
	struct entry *list, *by_key; // oldest first
	unsigned n_entries, n_gaps, n_pending; // pending: waiting or being written
	struct removal *removals;
	unsigned made_room; // times since something was written or waited for
	struct spool_stats stats;
};

// All with the lock held.
const char *spool_intern(struct spool *s, const char *node);
struct entry *spool_find(struct spool *s, const uint8_t instance[16], uint64_t sequence);
int spool_insert(struct spool *s, struct entry *entry); // at the end; owned by the spool; -EEXIST, -ENOMEM
void spool_remove(struct spool *s, struct entry *entry); // with its file; frees it
// Makes a gap of it, joined with the gap right before. Its file is replaced when the gap is written.
void spool_drop(struct spool *s, struct entry *entry, enum drop_cause cause);
// The oldest that may be dropped in this state, or NULL. What is on its way to a collector only when there is no other.
struct entry *spool_victim(struct spool *s, enum entry_state state);
void spool_signal(struct spool *s); // the event says whether there is something to send
void spool_enforce_count(struct spool *s);

void *spool_thread(void *spool);
void spool_scan(struct spool *s); // without the lock

#endif
