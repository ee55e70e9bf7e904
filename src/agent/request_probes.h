// SPDX-License-Identifier: Apache-2.0
// The kernel side of following requests: its programs, its maps, its ring. Attached while the object lives: every system
// call and every switch of the node passes a look at one bit, of target processes the rest.
#ifndef BLKPROF_AGENT_REQUEST_PROBES_H
#define BLKPROF_AGENT_REQUEST_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "bpf/request_rec.h"
#include "common/error.h"

struct request_probes;

typedef void (*request_event_fn)(void *context, const void *record, size_t size);
typedef void (*request_gone_fn)(void *context, pid_t pid);
typedef void (*request_thread_fn)(void *context, const struct req_thread *t);

// plugins: maps of the sources of others, n of them, at most REQ_PLUGINS. ring: bytes, a power of two of whole pages; 0 = 8 MiB.
int request_probes_new(uint32_t ring, const int *plugins, unsigned n, request_event_fn fn, void *context, struct request_probes **ret, struct error *e);
void request_probes_free(struct request_probes *p); // NULL too
int request_probes_add(struct request_probes *p, pid_t tgid, bool children); // with what it forks from now on
void request_probes_remove(struct request_probes *p, pid_t tgid); // with what is kept of its threads
// Children that were not added meanwhile are told of when they were there the last time already: they are no targets.
unsigned request_probes_born(struct request_probes *p, request_gone_fn fn, void *context);
// Takes in what has come, and waits for it at most timeout_ms. -EINTR after a signal.
int request_probes_poll(struct request_probes *p, int timeout_ms);
void request_probes_ignore(struct request_probes *p, uint64_t connection);
void request_probes_threads(struct request_probes *p, request_thread_fn fn, void *context);
// Drops connections that were silent for max_age ns, and block I/Os that never ended; how many of both.
unsigned request_probes_sweep(struct request_probes *p, uint64_t now, uint64_t max_age);
int request_probes_pauses(const struct request_probes *p); // the map of what JVMs stood still; its descriptor stays p's
void request_probes_set_jvms(struct request_probes *p, unsigned n); // how many are in it
uint64_t request_probes_loss(const struct request_probes *p, enum req_loss cause);
uint64_t request_probes_events(const struct request_probes *p);
uint64_t request_probes_skipped(const struct request_probes *p); // runs of programs that the kernel skipped
void request_probes_cost(const struct request_probes *p, uint64_t *ret_ns, uint64_t *ret_runs); // with bpf_stats
const char *request_loss_name(enum req_loss cause);
const char *request_loss_help(enum req_loss cause);

#endif
