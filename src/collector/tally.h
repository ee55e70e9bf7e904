// SPDX-License-Identifier: Apache-2.0
// Operations, seconds and bytes by service, device and operation, as they are received: for metrics. A thread of its own
// reads what was committed since it last looked, so that ingestion does nothing for it.
#ifndef BLKPROF_COLLECTOR_TALLY_H
#define BLKPROF_COLLECTOR_TALLY_H

#include "collector/store.h"

#define TALLY_CELLS 1000 // sets of labels; what there is beyond them is "[other]"

struct tally;

// Counts what is committed from now on.
int tally_new(struct store *s, struct tally **ret, struct error *e);
void tally_free(struct tally *t);
// Reads what is new at once, for tests; the thread does it every few seconds.
int tally_look(struct tally *t, struct error *e);
// Prometheus text; waits for nothing but the sums.
void tally_print(struct tally *t, struct buf *to);

#endif
