// SPDX-License-Identifier: Apache-2.0
// The flags of a process that has libjvm.so mapped.
#ifndef BLKPROF_AGENT_JVM_MEMORY_H
#define BLKPROF_AGENT_JVM_MEMORY_H

#include <stdint.h>
#include <sys/types.h>

#include "agent/jvm_options.h"

// library: a descriptor of the file, not taken; start: where in memory what is at `offset` of it lies. 0 when the memory is
// that of a HotSpot JVM of 64 bits, or negative errno.
int jvm_memory_read(pid_t pid, int library, uint64_t start, uint64_t offset, struct jvm_options *ret);

#endif
