// SPDX-License-Identifier: Apache-2.0
// A start on demand, so that a profiler can be attached before the first request.
#ifndef LOAD_START_H
#define LOAD_START_H

#include "common/error.h"

// Early, before any thread: a SIGUSR1 that comes before start_wait is then not lost.
void start_prepare(void);
// Prints "ready" and returns on a line (or the end) of standard input, or on SIGUSR1.
int start_wait(struct error *e);
// Returns when standard input ends.
void start_linger(void);

#endif
