// SPDX-License-Identifier: Apache-2.0
#include "agent/io_snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/mountinfo.h"
#include "common/file.h"
#include "common/text.h"

#define UNSEEN_MOUNTS	 256 // mounts of such kinds that are remembered
#define FILES_OF_PROCESS 256 // open files of a process that are looked at

struct unseen_mount {
	uint32_t id;
	enum unseen kind;
	unsigned open;
	char type[32], point[64];
};

struct unseen_mounts {
	struct unseen_mount mount[UNSEEN_MOUNTS];
	unsigned n;
};

// -1: its I/O is block I/O of this node, or there is none (proc, sysfs, …).
static int kind_of(const struct mount *m)
{
	static const struct {
		const char *type;
		enum unseen kind;
	} types[] = {
		{ "nfs", UNSEEN_NETWORK },   { "nfs4", UNSEEN_NETWORK },      { "cifs", UNSEEN_NETWORK },    { "smb3", UNSEEN_NETWORK },
		{ "smbfs", UNSEEN_NETWORK }, { "ceph", UNSEEN_NETWORK },      { "9p", UNSEEN_NETWORK },	     { "afs", UNSEEN_NETWORK },
		{ "coda", UNSEEN_NETWORK },  { "lustre", UNSEEN_NETWORK },    { "gpfs", UNSEEN_NETWORK },    { "beegfs", UNSEEN_NETWORK },
		{ "ncpfs", UNSEEN_NETWORK }, { "orangefs", UNSEEN_NETWORK },  { "virtiofs", UNSEEN_NETWORK }, { "vboxsf", UNSEEN_NETWORK },
		{ "tmpfs", UNSEEN_MEMORY },  { "ramfs", UNSEEN_MEMORY },      { "hugetlbfs", UNSEEN_MEMORY }, { "rootfs", UNSEEN_MEMORY },
		{ "fuse", UNSEEN_FUSE },
	};

	if (mountinfo_option(m->super, "dax") || mountinfo_option(m->options, "dax"))
		return UNSEEN_DAX;
	// fuse.sshfs, fuse.s3fs; fuseblk is a disk's, by way of its server.
	if (!strncmp(m->type, "fuse.", 5))
		return UNSEEN_FUSE;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(types[i].type, m->type))
			return (int)types[i].kind;
	return -1;
}

static int add_mount(const struct mount *m, void *data)
{
	struct unseen_mounts *all = data;
	struct unseen_mount *to;
	int kind = kind_of(m);
	char type[32];

	if (kind < 0 || all->n == UNSEEN_MOUNTS)
		return 0;
	to = &all->mount[all->n++];
	to->id = m->id;
	to->kind = (enum unseen)kind;
	to->open = 0;
	snprintf(type, sizeof(type), "%.20s%s", m->type, kind == UNSEEN_DAX ? " (dax)" : "");
	text_sanitize(to->type, sizeof(to->type), type, strlen(type));
	text_sanitize(to->point, sizeof(to->point), m->point, strlen(m->point));
	return 0;
}

static bool read_field(const char *text, const char *name, uint64_t *ret)
{
	size_t len = strlen(name);

	for (const char *p = text; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
		if (strncmp(p, name, len) || (p[len] != ' ' && p[len] != ':'))
			continue;
		*ret = strtoull(p + len + 1, NULL, 10);
		return true;
	}
	return false;
}

static void count_file(struct unseen_mounts *all, const char *fdinfo)
{
	struct buf b = { 0 };
	uint64_t id;

	if (!file_read(fdinfo, 65536, &b) && read_field((char *)b.data, "mnt_id", &id)) {
		for (unsigned i = 0; i < all->n; i++) {
			if (all->mount[i].id != id)
				continue;
			all->mount[i].open++;
			break;
		}
	}
	buf_free(&b);
}

// Which mounts the open files of a process are on. Asks the kernel for the mount's number and not the file for its
// device: a network file system whose server is gone would not answer.
static void count_files(struct unseen_mounts *all, const char *proc, pid_t pid)
{
	char path[512];
	struct dirent *item;
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%.200s/%d/fdinfo", proc, (int)pid);
	dir = opendir(path);
	while (dir && n++ < FILES_OF_PROCESS && (item = readdir(dir))) {
		if (item->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%.200s/%d/fdinfo/%.20s", proc, (int)pid, item->d_name);
		count_file(all, path);
	}
	if (dir)
		closedir(dir);
}

static void sum_up(const struct unseen_mounts *all, struct unseen_fs *ret)
{
	for (unsigned i = 0; i < all->n; i++) {
		const struct unseen_mount *m = &all->mount[i];

		if (!ret->mounts[m->kind]++ || m->open > ret->most[m->kind]) {
			ret->most[m->kind] = m->open;
			memcpy(ret->type[m->kind], m->type, sizeof(m->type));
			memcpy(ret->point[m->kind], m->point, sizeof(m->point));
		}
		ret->open[m->kind] += m->open;
	}
}

static void read_vmstat(const char *proc, struct io_snapshot *s)
{
	char path[512];
	struct buf b = { 0 };
	uint64_t in, out;

	snprintf(path, sizeof(path), "%.200s/vmstat", proc);
	if (!file_read(path, 1 << 20, &b) && read_field((char *)b.data, "pgpgin", &in) &&
	    read_field((char *)b.data, "pgpgout", &out)) {
		s->vmstat = true;
		s->paged_in = in * 1024;
		s->paged_out = out * 1024;
	}
	buf_free(&b);
}

// Of a kernel without task I/O accounting, or of a process that has just gone: nothing.
static void read_process(const char *proc, pid_t pid, struct io_snapshot *s)
{
	struct process_io io = { .pid = pid };
	char path[512], line[64];
	struct buf b = { 0 };

	snprintf(path, sizeof(path), "%.200s/%d/io", proc, (int)pid);
	if (!file_read(path, 4096, &b) && read_field((char *)b.data, "rchar", &io.rchar) &&
	    read_field((char *)b.data, "wchar", &io.wchar)) {
		read_field((char *)b.data, "read_bytes", &io.read_bytes);
		read_field((char *)b.data, "write_bytes", &io.write_bytes);
		snprintf(path, sizeof(path), "%.200s/%d/comm", proc, (int)pid);
		file_read_line(path, line, sizeof(line));
		text_sanitize(io.comm, sizeof(io.comm), line, strlen(line));
		s->process[s->n++] = io;
	}
	buf_free(&b);
}

static void read_all(const char *proc, struct io_snapshot *s)
{
	struct dirent *item;
	pid_t self = getpid();
	DIR *dir = opendir(proc);

	while (dir && (item = readdir(dir))) {
		pid_t pid = (pid_t)atoi(item->d_name);

		if (pid <= 0 || pid == self)
			continue;
		if (s->n == IO_PROCESSES) {
			s->truncated = true;
			break;
		}
		read_process(proc, pid, s);
	}
	if (dir)
		closedir(dir);
}

static int by_pid(const void *a, const void *b)
{
	pid_t x = ((const struct process_io *)a)->pid, y = ((const struct process_io *)b)->pid;

	return x < y ? -1 : x > y;
}

// Mounts as the process sees them: those of a container are not in our table.
static void read_mounts(const char *proc, pid_t pid, struct io_snapshot *s, struct unseen_mounts *mounts)
{
	char path[512], who[16] = "self";

	mounts->n = 0;
	if (pid)
		snprintf(who, sizeof(who), "%d", (int)pid);
	snprintf(path, sizeof(path), "%.200s/%s/mountinfo", proc, who);
	mountinfo_each(path, add_mount, mounts);
	if (pid)
		count_files(mounts, proc, pid);
	sum_up(mounts, &s->unseen);
}

struct io_snapshot *io_snapshot_new(const struct io_snapshot_options *options)
{
	const char *proc = options && options->proc ? options->proc : "/proc";
	unsigned n_pid = options ? options->n_pid : 0;
	struct io_snapshot *s = calloc(1, sizeof(*s));
	struct unseen_mounts *mounts = calloc(1, sizeof(*mounts));

	if (s)
		s->process = calloc(n_pid && n_pid < IO_PROCESSES ? n_pid : IO_PROCESSES, sizeof(*s->process));
	if (!s || !mounts || !s->process) {
		io_snapshot_free(s);
		free(mounts);
		return NULL;
	}
	read_vmstat(proc, s);
	if (!n_pid) {
		read_mounts(proc, 0, s, mounts);
		read_all(proc, s);
	}
	for (unsigned i = 0; i < n_pid && i < IO_PROCESSES; i++) {
		read_process(proc, options->pid[i], s);
		read_mounts(proc, options->pid[i], s, mounts);
	}
	if (s->n)
		qsort(s->process, s->n, sizeof(*s->process), by_pid);
	free(mounts);
	return s;
}

void io_snapshot_free(struct io_snapshot *s)
{
	if (!s)
		return;
	free(s->process);
	free(s);
}
