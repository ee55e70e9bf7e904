// SPDX-License-Identifier: Apache-2.0
// Threads beside the main one.
#ifndef BLKPROF_COMMON_THREAD_H
#define BLKPROF_COMMON_THREAD_H

#include <pthread.h>
#include <stdbool.h>

// Signals stay the main thread's. 0 or negative errno.
int thread_start(pthread_t *ret, void *(*run)(void *context), void *context);
// Waits for one that was told to end. False when it has not after so long: it is left to itself, and what it uses must stay.
bool thread_end(pthread_t thread, unsigned timeout_ms);

#endif
