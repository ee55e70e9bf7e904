// SPDX-License-Identifier: Apache-2.0
// Whether stacks through the Java code of processes are whole: HotSpot keeps frame pointers only when it is told to
// (-XX:+PreserveFramePointer). Processes are looked at by a thread of its own, when asked for and again from time to time:
// they may be JVMs that are still starting, or run another program later. Any thread may call this.
#ifndef BLKPROF_AGENT_JVM_QUALITY_H
#define BLKPROF_AGENT_JVM_QUALITY_H

#include <stdint.h>
#include <sys/types.h>

#include "agent/jvm.h"

struct jvm_quality;

enum jvm_stacks {
	JVM_STACKS_NONE,    // no JVM, or not looked at yet
	JVM_STACKS_UNKNOWN, // its flags cannot be read, and it may have been told in a way that nobody sees
	JVM_STACKS_CUT,
	JVM_STACKS_WHOLE,
};

struct jvm_quality *jvm_quality_new(void); // NULL without memory or thread
// All take NULL for one that could not be made: then nothing is known.
void jvm_quality_free(struct jvm_quality *q);
void jvm_quality_ask(struct jvm_quality *q, pid_t pid); // from now on; returns at once. At most 256 processes
void jvm_quality_forget(struct jvm_quality *q, pid_t pid); // in a minute
enum jvm_stacks jvm_quality_of(struct jvm_quality *q, pid_t pid);
uint64_t jvm_quality_left_out(struct jvm_quality *q); // processes that were asked for when there were too many

enum jvm_stacks jvm_stacks_of(const struct jvm *jvm);
const char *jvm_stacks_name(enum jvm_stacks stacks); // "" of none

#endif
