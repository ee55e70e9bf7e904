// SPDX-License-Identifier: Apache-2.0
#include "agent/hostinfo.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/mountinfo.h"
#include "common/file.h"
#include "common/text.h"

// Inode numbers of the namespaces that the kernel starts with (include/linux/proc_ns.h); the same since 3.8.
#define INITIAL_CGROUP_NS 0xEFFFFFFBu
#define INITIAL_PID_NS	  0xEFFFFFFCu
#define INITIAL_USER_NS	  0xEFFFFFFDu

#define HOST_PATH 512

struct roots {
	const char *proc, *sysfs;
};

void hostinfo_node_name(const char *in, char *out, size_t cap)
{
	size_t n = 0;

	for (; *in && n + 1 < cap; in++) {
		bool ok = (*in >= 'a' && *in <= 'z') || (*in >= 'A' && *in <= 'Z') || (*in >= '0' && *in <= '9') ||
			  strchr(".-_", *in);

		out[n++] = ok ? *in : '_';
	}
	out[n] = 0;
	// "." and ".." would be folders where the name becomes a file's.
	if (strspn(out, ".") == n)
		snprintf(out, cap, "%s", n ? "node" : "localhost");
}

static int read_int(const char *root, const char *name, int otherwise)
{
	char path[HOST_PATH], line[32], *end;
	long n;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (file_read_line(path, line, sizeof(line)))
		return otherwise;
	n = strtol(line, &end, 10);
	return end == line || n < INT_MIN || n > INT_MAX ? otherwise : (int)n;
}

static bool there(const char *root, const char *name)
{
	char path[HOST_PATH];

	return (size_t)snprintf(path, sizeof(path), "%s/%s", root, name) < sizeof(path) && !access(path, F_OK);
}

static enum lockdown read_lockdown(const char *sysfs)
{
	char path[HOST_PATH], line[128];

	snprintf(path, sizeof(path), "%s/kernel/security/lockdown", sysfs);
	if (file_read_line(path, line, sizeof(line)))
		return LOCKDOWN_UNKNOWN;
	return strstr(line, "[confidentiality]") ? LOCKDOWN_CONFIDENTIALITY
	       : strstr(line, "[integrity]")	 ? LOCKDOWN_INTEGRITY
	       : strstr(line, "[none]")		 ? LOCKDOWN_NONE
						 : LOCKDOWN_UNKNOWN;
}

// Without the capability every address reads as 0, and so does the first symbol on some kernels with it: look at a few.
static bool read_kallsyms(const char *proc)
{
	char path[HOST_PATH], line[512];
	bool shown = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/kallsyms", proc);
	f = fopen(path, "re");
	for (int i = 0; f && i < 200000 && !shown && fgets(line, sizeof(line), f); i++)
		shown = strtoull(line, NULL, 16) > 0xffffffffu;
	if (f)
		fclose(f);
	return shown;
}

// What is asked of /proc/self/status; capabilities in hexadecimal.
static uint64_t read_capabilities(const char *proc)
{
	char path[HOST_PATH];
	struct buf b = { 0 };
	const char *at = NULL;
	uint64_t set = 0;

	snprintf(path, sizeof(path), "%s/self/status", proc);
	if (!file_read(path, 65536, &b))
		at = strstr((char *)b.data, "\nCapEff:");
	if (at)
		set = strtoull(at + 8, NULL, 16);
	buf_free(&b);
	return set;
}

static bool is_initial(const char *proc, const char *name, uint32_t inode)
{
	char path[HOST_PATH];
	struct stat st;

	snprintf(path, sizeof(path), "%s/self/ns/%s", proc, name);
	// A kernel without this kind of namespace has only the initial one.
	return stat(path, &st) || st.st_ino == inode;
}

// Kernels that charge maps to the memory cgroup got this helper in the same release (5.11): asks whether it is there.
static enum answer read_memlock_accounting(void)
{
	const struct bpf_insn program[] = {
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_ktime_get_coarse_ns },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, NULL, "GPL", program, 2, NULL);

	if (fd >= 0) {
		close(fd);
		return ANSWER_NO;
	}
	return fd == -EINVAL ? ANSWER_YES : ANSWER_UNKNOWN;
}

static void read_memlock(struct hostinfo *h)
{
	struct rlimit limit;

	h->memlock_accounting = read_memlock_accounting();
	h->memlock_limit = 0;
	if (!getrlimit(RLIMIT_MEMLOCK, &limit))
		h->memlock_limit = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

static const char *const v1_controllers[] = { "cpu", "cpuacct", "cpuset", "memory", "blkio", "pids", "devices", "freezer",
					      "net_cls", "net_prio", "perf_event", "hugetlb", "rdma", "misc" };

static void add_controllers(struct hostinfo *h, const char *super)
{
	for (size_t i = 0; i < sizeof(v1_controllers) / sizeof(*v1_controllers); i++) {
		size_t n = strlen(h->cgroup_controllers);

		if (!mountinfo_option(super, v1_controllers[i]) || mountinfo_option(h->cgroup_controllers, v1_controllers[i]))
			continue;
		snprintf(h->cgroup_controllers + n, sizeof(h->cgroup_controllers) - n, "%s%s", n ? "," : "", v1_controllers[i]);
	}
}

static int read_mount(const struct mount *m, void *data)
{
	struct hostinfo *h = data;

	if (!strcmp(m->type, "tracefs") && !h->tracefs[0])
		text_sanitize(h->tracefs, sizeof(h->tracefs), m->point, strlen(m->point));
	if (!strcmp(m->type, "cgroup2") && !h->cgroup2[0])
		text_sanitize(h->cgroup2, sizeof(h->cgroup2), m->point, strlen(m->point));
	if (!strcmp(m->type, "cgroup"))
		add_controllers(h, m->super);
	return 0;
}

static void read_mounts(const char *proc, struct hostinfo *h)
{
	char path[HOST_PATH];

	snprintf(path, sizeof(path), "%s/self/mountinfo", proc);
	mountinfo_each(path, read_mount, h);
	h->cgroup_layout = h->cgroup_controllers[0] ? h->cgroup2[0] ? CGROUP_HYBRID : CGROUP_V1
			   : h->cgroup2[0]	    ? CGROUP_UNIFIED
						    : CGROUP_NONE;
}

// What systemd's container interface, docker and podman leave: the manager's environment, or a file at the root.
static void read_container(const char *proc, char *out, size_t cap)
{
	char path[HOST_PATH], root[HOST_PATH];
	struct buf b = { 0 };

	out[0] = 0;
	snprintf(path, sizeof(path), "%s/1/environ", proc);
	if (!file_read(path, 1 << 20, &b)) {
		for (size_t i = 0; i < b.len; i += strlen((char *)b.data + i) + 1)
			if (!strncmp((char *)b.data + i, "container=", 10))
				text_sanitize(out, cap, (char *)b.data + i + 10, strlen((char *)b.data + i + 10));
	}
	buf_free(&b);
	snprintf(root, sizeof(root), "%s/self/root", proc);
	if (!out[0] && there(root, ".dockerenv"))
		snprintf(out, cap, "docker");
	if (!out[0] && there(root, "run/.containerenv"))
		snprintf(out, cap, "podman");
}

static void read_names(struct hostinfo *h)
{
	struct utsname u;

	if (uname(&u))
		memset(&u, 0, sizeof(u));
	hostinfo_node_name(u.nodename, h->node, sizeof(h->node));
	text_sanitize(h->release, sizeof(h->release), u.release, strlen(u.release));
	text_sanitize(h->machine, sizeof(h->machine), u.machine, strlen(u.machine));
}

int hostinfo_read(const struct hostinfo_options *options, struct hostinfo *ret)
{
	const char *proc = options && options->proc ? options->proc : "/proc";
	const char *sysfs = options && options->sysfs ? options->sysfs : "/sys";
	struct hostinfo h;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	// Leaves room for what is put behind them.
	if (strlen(proc) > HOST_PATH / 2 || strlen(sysfs) > HOST_PATH / 2)
		return -ENAMETOOLONG;
	memset(&h, 0, sizeof(h));
	read_names(&h);
	h.lockdown = read_lockdown(sysfs);
	h.btf = there(sysfs, "kernel/btf/vmlinux");
	h.kprobes = there(sysfs, "bus/event_source/devices/kprobe/type");
	h.uprobes = there(sysfs, "bus/event_source/devices/uprobe/type");
	h.perf_event_paranoid = read_int(proc, "sys/kernel/perf_event_paranoid", INT_MIN);
	h.perf_events = h.perf_event_paranoid != INT_MIN;
	h.kptr_restrict = read_int(proc, "sys/kernel/kptr_restrict", -1);
	h.kallsyms = read_kallsyms(proc);
	h.unprivileged_bpf_disabled = read_int(proc, "sys/kernel/unprivileged_bpf_disabled", -1);
	h.bpf_jit = read_int(proc, "sys/net/core/bpf_jit_enable", -1);
	read_memlock(&h);
	h.capabilities = read_capabilities(proc);
	h.initial_user_ns = is_initial(proc, "user", INITIAL_USER_NS);
	h.initial_pid_ns = is_initial(proc, "pid", INITIAL_PID_NS);
	h.initial_cgroup_ns = is_initial(proc, "cgroup", INITIAL_CGROUP_NS);
	read_container(proc, h.container, sizeof(h.container));
	read_mounts(proc, &h);
	h.cpus = cpus > 0 ? (unsigned)cpus : 1;
	*ret = h;
	return 0;
}

static bool has(const struct hostinfo *h, unsigned capability)
{
	return capability < 64 && h->capabilities >> capability & 1;
}

bool hostinfo_capable(const struct hostinfo *h, unsigned capability)
{
	if (!h->initial_user_ns)
		return false;
	if (has(h, capability))
		return true;
	// The kernel falls back to CAP_SYS_ADMIN for what was part of it once.
	return (capability == CAP_BPF || capability == CAP_PERFMON || capability == CAP_CHECKPOINT_RESTORE) && has(h, CAP_SYS_ADMIN);
}

const struct hostinfo_need *hostinfo_needs(unsigned *ret_count)
{
	static const struct hostinfo_need needs[] = {
		{ CAP_BPF, "CAP_BPF", "load BPF programs and maps", true },
		{ CAP_PERFMON, "CAP_PERFMON", "attach them to the block layer and read kernel structures", true },
		{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "read the memory maps and files of other users' processes, for names", true },
		{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "open their executables in folders closed to others", false },
		{ CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", "open executables that were deleted or replaced, through map_files",
		  false },
		{ CAP_SYSLOG, "CAP_SYSLOG", "see kernel addresses in /proc/kallsyms, for kernel stacks", false },
		{ CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE", "raise the limit of locked memory before kernel 5.11", false },
	};

	*ret_count = sizeof(needs) / sizeof(*needs);
	return needs;
}

unsigned hostinfo_missing(const struct hostinfo *h, char *out, size_t cap)
{
	unsigned count, missing = 0;
	const struct hostinfo_need *needs = hostinfo_needs(&count);
	size_t n = 0;

	if (cap)
		out[0] = 0;
	for (unsigned i = 0; i < count; i++) {
		if (!needs[i].required || hostinfo_capable(h, needs[i].capability))
			continue;
		if (n < cap)
			n += (size_t)snprintf(out + n, cap - n, "%s%s", missing ? ", " : "", needs[i].name);
		missing++;
	}
	return missing;
}

const char *lockdown_name(enum lockdown l)
{
	static const char *const names[] = { "unknown", "none", "integrity", "confidentiality" };

	return l < sizeof(names) / sizeof(*names) ? names[l] : names[0];
}

const char *cgroup_layout_name(enum cgroup_layout l)
{
	static const char *const names[] = { "not mounted", "v1", "v1 with v2 beside it", "v2" };

	return l < sizeof(names) / sizeof(*names) ? names[l] : names[0];
}
