// SPDX-License-Identifier: Apache-2.0
#include "agent/procs_scan.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/procs_maps.h"
#include "agent/procs_mounts.h"
#include "agent/service.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/file.h"

#define CGROUP_MAX 65536

// On CLOCK_MONOTONIC, not later than the true start; the ticks are of a clock that also counts time asleep.
static uint64_t start_of(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);
	uint64_t asleep = clock_ns(CLOCK_BOOTTIME) - clock_monotonic();
	uint64_t second = 1000000000, ns = ticks / (uint64_t)hz * second + ticks % (uint64_t)hz * second / (uint64_t)hz;

	return ns > asleep ? ns - asleep : 0;
}

// The length of the path, 0 where there is no executable (kernel threads, zombies).
static size_t read_exe(pid_t pid, char out[PATH_MAX])
{
	char path[64];
	bool deleted;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, out, PATH_MAX - 1);
	if (n < 0)
		n = 0;
	n = (ssize_t)procmaps_strip_deleted(out, (size_t)n, &deleted);
	out[n] = 0;
	return (size_t)n;
}

static uint64_t cgroup_id(struct proctable *t, const struct proc *p, const char *text)
{
	char cgroup[PATH_MAX], controller[64], folder[PATH_MAX];
	struct proc *parent = p->ppid > 0 ? proctable_newest(t, p->ppid) : NULL;
	struct stat st;

	// Most are where their parent is: no need to go through the mounts again.
	if (parent && parent->cgroup && parent->end_ns == UINT64_MAX && parent->cgroup_text == p->cgroup_text)
		return parent->cgroup;
	if (service_cgroup_path(text, cgroup, sizeof(cgroup), controller, sizeof(controller)) ||
	    mounts_cgroup_folder(NULL, controller, cgroup, folder, sizeof(folder)) || stat(folder, &st))
		return 0;
	return st.st_ino;
}

void procs_scan_cgroup(struct proctable *t, struct proc *p, uint64_t now_ns)
{
	struct proc_text *before = p->cgroup_text;
	struct buf b = { 0 };
	char path[64];

	p->cgroup_read_ns = now_ns;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", p->pid);
	if (!file_read(path, CGROUP_MAX, &b) && b.len) {
		proctable_set(t, &p->cgroup_text, (const char *)b.data, b.len);
		if (p->cgroup_text != before) {
			proctable_drop(t, p->service);
			p->service = NULL;
		}
		if (p->cgroup_text != before || !p->cgroup)
			p->cgroup = cgroup_id(t, p, (const char *)b.data);
	}
	buf_free(&b);
}

struct scan {
	struct proctable *table;
	struct proc *proc;
	uint64_t time_ns;
};

static bool add_mapping(const struct procmaps_entry *e, void *context)
{
	struct scan *s = context;
	char path[PATH_MAX];
	struct proc_event ev = { .type = PROC_MMAP, .time_ns = s->time_ns };

	if (!e->executable)
		return true;
	ev.start = e->start;
	ev.limit = e->limit;
	ev.offset = e->offset;
	ev.dev = makedev(e->major, e->minor);
	ev.inode = e->inode;
	ev.text = path;
	ev.text_len = procmaps_unescape(path, sizeof(path), e->path, e->path_len);
	if (!ev.text_len) { // as perf names it
		memcpy(path, "//anon", 7);
		ev.text_len = 6;
	}
	proctable_map(s->table, s->proc, &ev);
	return true;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

// Whether what runs now under the pid is what the table has.
static bool is_same(const struct proc *p, const struct procs_stat *st, uint64_t start_ns, const char *exe)
{
	uint64_t tick = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);

	if (p->end_ns != UINT64_MAX && start_ns > p->end_ns)
		return false;
	if (p->starttime && p->starttime != st->starttime)
		return false;
	// A life that begins with an exec begins later than its process, never earlier.
	if (start_ns > p->start_ns + 2 * tick)
		return false;
	return !p->exe || !exe[0] || !strcmp(proc_text_string(p->exe), exe);
}

struct proc *procs_scan_one(struct proctable *t, pid_t pid, uint64_t since_ns)
{
	struct proc *p = proctable_newest(t, pid);
	struct scan s = { .table = t };
	struct procs_stat st;
	char exe[PATH_MAX];
	uint64_t now = clock_monotonic(), start;
	size_t exe_len;

	if (procs_stat_read(pid, &st))
		return NULL;
	exe_len = read_exe(pid, exe);
	start = start_of(st.starttime);
	s.time_ns = p ? later(later(p->start_ns, p->scanned_ns), later(start, since_ns)) : start;
	if (s.time_ns > now)
		s.time_ns = now;
	if (!p || !is_same(p, &st, start, exe)) {
		p = proctable_begin(t, pid, s.time_ns);
		if (!p)
			return NULL;
	}
	p->starttime = st.starttime;
	p->ppid = st.ppid;
	p->scanned_ns = now;
	p->incomplete = false;
	proctable_rename(t, p, st.comm, st.comm_len);
	if (exe_len) {
		proctable_set(t, &p->exe, exe, exe_len);
		s.proc = p;
		procs_maps_read(pid, add_mapping, &s);
	}
	if (!p->cgroup_read_ns)
		procs_scan_cgroup(t, p, now);
	return p;
}

int procs_scan_all(struct proctable *t, uint64_t since_ns)
{
	uint64_t began = clock_monotonic();
	DIR *folder = opendir("/proc");
	struct dirent *entry;

	if (!folder)
		return -errno;
	while ((entry = readdir(folder))) {
		char *end;
		unsigned long pid = strtoul(entry->d_name, &end, 10);

		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && !*end && pid <= INT_MAX)
			procs_scan_one(t, (pid_t)pid, since_ns);
	}
	closedir(folder);
	proctable_end_unscanned(t, began, clock_monotonic());
	return 0;
}
