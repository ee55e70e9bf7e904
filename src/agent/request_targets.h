// SPDX-License-Identifier: Apache-2.0
// Which processes' requests are followed: by pid, command name, cgroup or command line, looked for again and again, so
// that a server that was restarted is found.
#ifndef BLKPROF_AGENT_REQUEST_TARGETS_H
#define BLKPROF_AGENT_REQUEST_TARGETS_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/error.h"

#define REQUEST_RULES_MAX 64
#define REQUEST_TARGETS_MAX 2048

struct request_rules {
	const char *pid[REQUEST_RULES_MAX], *comm[REQUEST_RULES_MAX], *cgroup[REQUEST_RULES_MAX], *cmdline[REQUEST_RULES_MAX];
	unsigned n_pid, n_comm, n_cgroup, n_cmdline;
};

struct request_targets;

typedef void (*request_target_fn)(void *context, pid_t pid, bool came); // came, or went

// proc NULL = /proc. The rules' texts live as long as the object. -EINVAL for what is no pid.
int request_targets_new(const struct request_rules *rules, const char *proc, struct request_targets **ret, struct error *e);
void request_targets_free(struct request_targets *t);
// Looks at all processes and tells of those that came and went. A pid that was used again went and came.
void request_targets_scan(struct request_targets *t, request_target_fn fn, void *context);
bool request_targets_has(const struct request_targets *t, pid_t pid);
unsigned request_targets_count(const struct request_targets *t);
unsigned request_targets_left_out(const struct request_targets *t); // above REQUEST_TARGETS_MAX, at the last look

#endif
