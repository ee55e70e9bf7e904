// SPDX-License-Identifier: Apache-2.0
// Java names of the threads of target processes, asked for in a thread of its own, of each JVM at most once a minute
// when its threads are known.
#ifndef BLKPROF_AGENT_REQUEST_NAMES_H
#define BLKPROF_AGENT_REQUEST_NAMES_H

#include <stdint.h>
#include <sys/types.h>

struct jvm_wake;
struct request_names;

typedef void (*request_name_fn)(void *context, uint32_t tid, const char *name);

// wake: not owned; NULL: JVMs without an attach socket are let be. NULL without memory or thread.
struct request_names *request_names_new(struct jvm_wake *wake);
void request_names_free(struct request_names *n); // waits for a JVM that is being asked, seconds; NULL too
void request_names_ask(struct request_names *n, pid_t pid); // from now on; at most 256 processes
uint64_t request_names_left_out(struct request_names *n); // processes above that
void request_names_forget(struct request_names *n, pid_t pid);
// The names that came since the last call.
void request_names_take(struct request_names *n, request_name_fn fn, void *context);

#endif
