// SPDX-License-Identifier: Apache-2.0
// The thread that puts groups of batches into the store, one transaction each, while the next group is received.
#ifndef BLKPROF_COLLECTOR_RECEIVE_STORE_H
#define BLKPROF_COLLECTOR_RECEIVE_STORE_H

#include "collector/receive_internal.h"

struct storer;

struct storer *storer_new(struct store *store); // NULL: no memory, no thread
// It ends after the transaction at hand, which is done as always.
void storer_stop(struct storer *s);
void storer_free(struct storer *s);
// Readable when a group is done.
int storer_fd(const struct storer *s);
// Takes a group of at least one batch; there is none at hand. It is the storer's until storer_done gives it back.
void storer_give(struct storer *s, struct group *g);
// The group that is done: of each batch its result, of the group its error. NULL when none is.
struct group *storer_done(struct storer *s);
bool storer_busy(const struct storer *s);

#endif
