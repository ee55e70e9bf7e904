// SPDX-License-Identifier: Apache-2.0
// Whether a process is a HotSpot JVM, where its library lies and what it was told.
#ifndef BLKPROF_AGENT_JVM_H
#define BLKPROF_AGENT_JVM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/jvm_options.h"

struct jvm {
	// The executable mapping of libjvm.so: /proc/PID/map_files/START-LIMIT (hexadecimal) is the file, whatever its name
	// leads to by now.
	uint64_t start, limit;
	uint64_t offset; // of start in the file
	struct jvm_options options;
	bool exact; // they are its flags, read from its memory, which is certainly a HotSpot JVM's; else what it was told
};

// 0, -ENOENT when it is none (OpenJ9 has a libjvm.so too and is none), or why that cannot be told. Reads /proc/PID/maps,
// its memory and files that it names, within bounds: for a thread that may wait.
int jvm_find(pid_t pid, struct jvm *ret);
// The library alone: what it was told stays unsaid. Reads only /proc/PID/maps.
int jvm_find_library(pid_t pid, struct jvm *ret);
// The file of its library, to be read; or negative errno: -EACCES for one that a server has to answer for.
int jvm_open(pid_t pid, const struct jvm *jvm);

#endif
