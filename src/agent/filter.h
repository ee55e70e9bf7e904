// SPDX-License-Identifier: Apache-2.0
// What the filters of a recording mean on this node now: names resolved to the numbers that the BPF side compares.
#ifndef BLKPROF_AGENT_FILTER_H
#define BLKPROF_AGENT_FILTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/devices.h"
#include "common/error.h"

#define FILTER_MAX 64	       // of each kind on the command line
#define FILTER_DEVICES_MAX 256 // numbers that the devices come to

// As the user wrote them.
struct filter_options {
	const char *pid[FILTER_MAX], *comm[FILTER_MAX], *cgroup[FILTER_MAX], *device[FILTER_MAX], *op[FILTER_MAX];
	unsigned n_pid, n_comm, n_cgroup, n_device, n_op;
	// Kept out whatever the others say: a cgroup's path (begins with '/', or ends as units do) or a thread's name.
	const char *exclude[FILTER_MAX];
	unsigned n_exclude;
};

struct filter {
	pid_t pid[FILTER_MAX]; // process ids (tgid), as /proc of this node shows them
	char comm[FILTER_MAX][16];
	uint64_t cgroup[FILTER_MAX];	// ids (inode numbers); descendants are included by the BPF side
	bool cgroup_v1[FILTER_MAX];	// the id is of the v1 controller below, not of the unified hierarchy
	char controller[FILTER_MAX][16]; // "memory", "pids", "blkio", …
	uint32_t device[FILTER_DEVICES_MAX];
	uint32_t ops; // bit mask of 1 << enum op_class (bpf/record_rec.h); 0 = all
	unsigned n_pid, n_comm, n_cgroup, n_device;
	bool cgroup_exclude[FILTER_MAX]; // kept out, not wanted
	char exclude_comm[FILTER_MAX][16];
	unsigned n_exclude_comm, n_exclude_cgroup; // the latter are among n_cgroup
	unsigned n_exclude_missing;		   // cgroups to keep out that do not exist now
};

// -EINVAL for what is no pid, op and so on, -ENOENT for what does not exist here; the message says what to do. A cgroup is
// a path under any cgroup mount, or a name below one ("/system.slice/x.service"), unified first, then v1.
int filter_resolve(const struct filter_options *options, const struct devices *devices, struct filter *ret, struct error *e);
// "read", "write_zeroes": the names of enum op_class in filters, labels and reports.
const char *filter_op_name(unsigned op);

#endif
