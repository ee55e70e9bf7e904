// SPDX-License-Identifier: Apache-2.0
// Makes JVMs open their attach socket, by the file and the SIGQUIT that the protocol asks for. A SIGQUIT at the wrong time
// kills a process or prints a dump of its threads: it is sent only to what is certainly a HotSpot JVM, has started and will
// take it for that. Each process is sent one an hour at most, all together a few a minute. Any thread may call this.
#ifndef BLKPROF_AGENT_JVM_WAKE_H
#define BLKPROF_AGENT_JVM_WAKE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct jvm_wake;

// What was done, and what JVMs were let be for, each JVM once.
enum jvm_wake_count {
	JVM_WAKE_SENT,
	JVM_WAKE_OPENED,
	JVM_WAKE_SILENT,
	JVM_WAKE_SIGNALS_OFF,
	JVM_WAKE_ATTACH_OFF,
	JVM_WAKE_UNREAD,
	JVM_WAKE_GONE,
	JVM_WAKE_NO_PLACE,
	JVM_WAKE_NOT_ALLOWED,
	JVM_WAKE_LIMITED,
	JVM_WAKE_COUNTS
};

struct jvm_wake *jvm_wake_new(void); // NULL without memory
void jvm_wake_free(struct jvm_wake *w); // NULL too; kept while a thread that was left behind is still in jvm_wake_open

// 0 when the process has opened its socket. -ENOENT: no HotSpot JVM; -EAGAIN: it is still starting, is stopped, or others
// were sent so many; -EBUSY: somebody else attaches; other errors: it is let be. Waits for the JVM, at most a minute;
// `ends` (NULL = never) is asked whether to wait no longer.
int jvm_wake_open(struct jvm_wake *w, pid_t pid, bool (*ends)(void *context), void *context);

uint64_t jvm_wake_count(const struct jvm_wake *w, enum jvm_wake_count what);
const char *jvm_wake_count_name(enum jvm_wake_count what);
const char *jvm_wake_count_help(enum jvm_wake_count what);
bool jvm_wake_count_loss(enum jvm_wake_count what); // something has no name for it

#endif
