// SPDX-License-Identifier: Apache-2.0
// What this host is and what it allows, as files under /proc and /sys say it; nothing is loaded or attached. What cannot
// be read stays "unknown". Roots are options so that tests can use a made-up tree.
#ifndef BLKPROF_AGENT_HOSTINFO_H
#define BLKPROF_AGENT_HOSTINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/capability.h>

struct hostinfo_options {
	const char *proc; // NULL = /proc
	const char *sysfs; // NULL = /sys
};

// The answer of a question that some kernels and privileges leave open.
enum answer {
	ANSWER_UNKNOWN,
	ANSWER_NO,
	ANSWER_YES
};

enum lockdown {
	LOCKDOWN_UNKNOWN, // securityfs is not mounted: none in force, or it cannot be seen
	LOCKDOWN_NONE,
	LOCKDOWN_INTEGRITY,
	LOCKDOWN_CONFIDENTIALITY // BPF must not read kernel memory: only BTF-typed programs load
};

enum cgroup_layout {
	CGROUP_NONE,   // no cgroup file system is mounted here
	CGROUP_V1,
	CGROUP_HYBRID, // v1 controllers with cgroup2 beside them
	CGROUP_UNIFIED
};

struct hostinfo {
	char node[65];	  // host name; sanitised: letters, digits, '.', '-', '_'; never empty
	char release[65]; // "6.1.0-18-amd64"
	char machine[65]; // "x86_64"

	enum lockdown lockdown;
	bool btf;		// /sys/kernel/btf/vmlinux
	bool kprobes;		// the kernel has kprobe perf events
	bool uprobes;		// the same for uprobes
	bool perf_events;	// the kernel has perf_event_open
	char tracefs[128];	// where tracefs is mounted, "" = nowhere (raw tracepoints do not need it)
	int perf_event_paranoid; // -1..4; INT_MIN = unknown
	int kptr_restrict;	// 0, 1, 2; -1 = unknown
	bool kallsyms;		// /proc/kallsyms shows us addresses (not all zero)
	int unprivileged_bpf_disabled; // 0, 1, 2; -1 = unknown
	int bpf_jit;		// net.core.bpf_jit_enable; -1 = unknown (a kernel with the JIT always on has no file)

	// Kernels before 5.11 charge BPF maps to RLIMIT_MEMLOCK; later ones to the memory cgroup.
	enum answer memlock_accounting; // ANSWER_YES: maps count against the limit below
	uint64_t memlock_limit;		  // bytes; UINT64_MAX = unlimited

	uint64_t capabilities;		// CapEff
	bool initial_user_ns;		// capabilities of another user namespace do not count for BPF
	bool initial_pid_ns;		// false: in a container, pids of the kernel's records are not ours
	bool initial_cgroup_ns;		// false: cgroup paths are seen from below
	char container[32];		// "docker", "podman", "systemd-nspawn", "lxc", … as files and init's environment say; a hint only

	enum cgroup_layout cgroup_layout;
	char cgroup2[128];		// mount point of the unified hierarchy, or ""
	char cgroup_controllers[128];	// v1 controllers that are mounted, comma-separated, or ""
	unsigned cpus;			// possible CPUs, at least 1
};

int hostinfo_read(const struct hostinfo_options *options, struct hostinfo *ret);

// Whether the effective set has the capability (CAP_BPF …) or, for CAP_BPF, CAP_PERFMON and CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN
// that the kernel takes instead. False in a user namespace of its own.
bool hostinfo_capable(const struct hostinfo *h, unsigned capability);
// One capability that blkprof uses: its name, what for, and whether it is needed or only makes profiles better.
struct hostinfo_need {
	unsigned capability;
	const char *name; // "CAP_BPF"
	const char *why;  // "load BPF programs"
	bool required;	  // record fails without it
};
const struct hostinfo_need *hostinfo_needs(unsigned *ret_count);
// "CAP_BPF, CAP_PERFMON": the required ones that are missing, or "". Returns how many.
unsigned hostinfo_missing(const struct hostinfo *h, char *out, size_t cap);

const char *lockdown_name(enum lockdown l);	      // "unknown", "none", "integrity", "confidentiality"
const char *cgroup_layout_name(enum cgroup_layout l); // "v2", "v1 with v2 beside it", …
// A name for a node from outside (host name): out has only letters, digits, '.', '-', '_', and is never empty.
void hostinfo_node_name(const char *in, char *out, size_t cap);

#endif
