// SPDX-License-Identifier: Apache-2.0
// Which threads a process has, by their names.
#ifndef BLKPROF_AGENT_PROC_THREADS_H
#define BLKPROF_AGENT_PROC_THREADS_H

#include <sys/types.h>

// Bit i is set when a thread is called names[i] (n of them, at most 32), as far as the first 16384 threads tell.
unsigned proc_threads_named(pid_t pid, const char *const *names, unsigned n);

#endif
