// SPDX-License-Identifier: Apache-2.0
// Ends a query that takes too much: in the middle of a statement too.
#ifndef BLKPROF_COLLECTOR_STORE_WATCH_H
#define BLKPROF_COLLECTOR_STORE_WATCH_H

#include <sqlite3.h>

#include "collector/store.h"

struct watch {
	const struct store_limits *limits; // NULL = none
	int err; // why it was ended
	struct error why;
};

// Statements of db are ended too; the watch outlives the connection.
void watch_db(struct watch *w, sqlite3 *db);
int watch_ask(struct watch *w, struct error *e); // 0 or why it ends
int watch_memory(struct watch *w, size_t used, struct error *e); // 0 or -E2BIG
// What is said of a query that ended with err: why it was ended, rather than what failed then.
int watch_end(const struct watch *w, int err, struct error *e);

#endif
