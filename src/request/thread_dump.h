// SPDX-License-Identifier: Apache-2.0
// A JVM's thread dump (jcmd Thread.print): which native thread has which Java name. The text is hostile.
#ifndef BLKPROF_REQUEST_THREAD_DUMP_H
#define BLKPROF_REQUEST_THREAD_DUMP_H

#include <stddef.h>
#include <stdint.h>

// nid: the thread's number in the JVM's own pid namespace. name: not terminated.
typedef void (*thread_dump_fn)(void *context, uint32_t nid, const char *name, size_t len);

// How many were told of; at most max.
unsigned thread_dump_parse(const char *text, size_t size, unsigned max, thread_dump_fn fn, void *context);

#endif
