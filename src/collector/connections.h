// SPDX-License-Identifier: Apache-2.0
// The connections of the collector's socket, by file descriptor, so that some of them can be ended: libzmq limits
// neither their number nor the parts of a message that has not ended yet. May be used by any thread.
#ifndef BLKPROF_COLLECTOR_CONNECTIONS_H
#define BLKPROF_COLLECTOR_CONNECTIONS_H

#include "collector/counters.h"

struct connections;

// max: how many at once; 0 = as many as the process may open files, less those for everything else.
struct connections *connections_new(unsigned max, struct collector_counters *counters);
void connections_free(struct connections *c);

// Beyond the limit one goes: one that never sent a message, the oldest of them, or else the one silent for longest.
void connections_opened(struct connections *c, int fd);
void connections_closed(struct connections *c, int fd);
// A whole message came.
void connections_heard(struct connections *c, int fd);
void connections_cut(struct connections *c, int fd);
// Ends those that sent more than any message may have since their last message ended. Once a second or so.
void connections_check(struct connections *c, uint64_t max_bytes);

#endif
