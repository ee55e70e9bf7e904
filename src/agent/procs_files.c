// SPDX-License-Identifier: Apache-2.0
#include "agent/procs_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "agent/procs_maps.h"
#include "agent/proc_open.h"
#include "agent/procs_mounts.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/hash.h"

#define MOUNTS_AGE_NS 3000000000u
#define MOUNTS_KNOWN 64
#define SWEEP_FIRST 1024
#define ANCESTORS_MAX 8
#define BIT32 (1ull << 32)

struct opened_key {
	uint64_t dev, inode, size, ctime_s, ctime_ns;
};

struct opened {
	struct proc_module handle; // first: what mappings hold
	UT_hash_handle hh;
	struct opened_key key;
};

struct known_mount {
	uint64_t id, time_ns;
	enum mount_kind kind;
};

struct procs_files {
	struct symbolizer *symbolizer;
	struct opened *opened;
	unsigned sweep_at;
	uint64_t missing;
	struct known_mount mounts[MOUNTS_KNOWN];
	struct buf remote; // remote mount points of our own namespace
	uint64_t remote_ns;
	uint64_t namespace_dev, namespace_inode; // of our mounts
};

// A file found but not opened: an O_PATH descriptor.
struct found {
	int fd;
	struct statx st;
	pid_t viewer; // whose mount namespace shows it, 0 = ours
};

struct procs_files *procs_files_new(struct symbolizer *symbolizer)
{
	struct procs_files *f = calloc(1, sizeof(*f));
	struct stat st;

	if (!f)
		return NULL;
	f->symbolizer = symbolizer;
	f->sweep_at = SWEEP_FIRST;
	if (!stat("/proc/self/ns/mnt", &st)) {
		f->namespace_dev = st.st_dev;
		f->namespace_inode = st.st_ino;
	}
	return f;
}

static void opened_free(struct procs_files *f, struct opened *o)
{
	HASH_DEL(f->opened, o);
	sym_module_put(o->handle.module);
	free(o);
}

void procs_files_sweep(struct procs_files *f)
{
	struct opened *o, *next;

	HASH_ITER(hh, f->opened, o, next)
	{
		if (!o->handle.users)
			opened_free(f, o);
	}
	f->sweep_at = 2 * HASH_COUNT(f->opened);
	if (f->sweep_at < SWEEP_FIRST)
		f->sweep_at = SWEEP_FIRST;
}

void procs_files_free(struct procs_files *f)
{
	struct opened *o, *next;

	if (!f)
		return;
	HASH_ITER(hh, f->opened, o, next)
		opened_free(f, o);
	buf_free(&f->remote);
	free(f);
}

uint64_t procs_files_missing(const struct procs_files *f)
{
	return f->missing;
}

// Whether the process sees the same files under the same paths as we do.
static bool same_view(const struct procs_files *f, pid_t pid)
{
	char path[64], root[8];
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	if (stat(path, &st) || st.st_dev != f->namespace_dev || st.st_ino != f->namespace_inode)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	n = readlink(path, root, sizeof(root));
	return n == 1 && root[0] == '/';
}

// Asks no server: what the kernel knows already is enough, and a server may not answer.
static int look_at(int fd, struct found *ret)
{
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS | STATX_MNT_ID, &ret->st))
		return -errno;
	ret->fd = fd;
	return 0;
}

static enum mount_kind ask_kind(const struct found *file)
{
	enum mount_kind kind = mounts_kind(NULL, file->st.stx_mnt_id);
	char path[64];

	if (kind == MOUNT_UNKNOWN && file->viewer) {
		snprintf(path, sizeof(path), "/proc/%d/mountinfo", file->viewer);
		kind = mounts_kind(path, file->st.stx_mnt_id);
	}
	// Mounted nowhere that we see, but on a disk.
	if (kind == MOUNT_UNKNOWN && file->st.stx_dev_major)
		kind = MOUNT_LOCAL;
	return kind;
}

static enum mount_kind kind_of(struct procs_files *f, const struct found *file)
{
	struct known_mount *k = &f->mounts[file->st.stx_mnt_id % MOUNTS_KNOWN];
	uint64_t now = clock_monotonic();

	// Ids are given again, but not at once.
	if (k->id != file->st.stx_mnt_id || now - k->time_ns > MOUNTS_AGE_NS)
		*k = (struct known_mount){ file->st.stx_mnt_id, now, ask_kind(file) };
	return k->kind;
}

// Whether a walk to the path could wait for a server; also when nobody can tell.
static bool remote_for_us(struct procs_files *f, const char *path)
{
	uint64_t now = clock_monotonic();

	if (!f->remote.data || now - f->remote_ns > MOUNTS_AGE_NS) {
		buf_free(&f->remote);
		f->remote_ns = now;
		if (mounts_remote_points(NULL, &f->remote))
			buf_free(&f->remote);
	}
	return !f->remote.data || mounts_path_is_remote(&f->remote, path);
}

static bool in_kernel_memory(const struct proc_text *file)
{
	const char *s = proc_text_string(file);

	return !strncmp(s, "/memfd:", 7) || !strncmp(s, "/SYSV", 5) || !strcmp(s, "/dev/zero");
}

// Whether what was found is what was mapped; `exact` when it was found by the mapping itself under the same path.
static bool agrees(struct procs_files *f, const struct found *found, const struct proc_text *file, bool exact)
{
	dev_t dev = makedev(found->st.stx_dev_major, found->st.stx_dev_minor);

	if (!S_ISREG(found->st.stx_mode))
		return false;
	if (dev == proc_text_dev(file) && found->st.stx_ino == proc_text_inode(file))
		return true;
	if (!exact && found->st.stx_ino != proc_text_inode(file))
		return false;
	return kind_of(f, found) == MOUNT_LAYERED;
}

static bool link_is(int folder, const char *name, const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(folder, name, target, sizeof(target));

	return n > 0 && (size_t)n == strlen(path) && !memcmp(target, path, (size_t)n);
}

static int find_range(struct procs_files *f, struct proc *p, struct proc_text *file, uint64_t start, uint64_t limit,
		      struct found *ret)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", p->pid, (unsigned long long)start,
		 (unsigned long long)limit);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret->viewer = p->pid;
	if (!look_at(fd, ret) && agrees(f, ret, file, link_is(AT_FDCWD, path, proc_text_string(file))))
		return 0;
	close(fd);
	return -ESTALE;
}

struct range_search {
	const struct proc_mapping *mapping;
	uint64_t start, limit; // found; 0 = none
};

static bool range_of(const struct procmaps_entry *e, void *context)
{
	struct range_search *search = context;

	if (e->start > search->mapping->start || search->mapping->start >= e->limit ||
	    e->inode != proc_text_inode(search->mapping->file))
		return true;
	search->start = e->start;
	search->limit = e->limit;
	return false;
}

static int find_mapped(struct procs_files *f, struct proc *p, const struct proc_mapping *m, struct found *ret)
{
	struct range_search search = { .mapping = m };
	int err = find_range(f, p, m->file, m->start, m->limit, ret);

	if (err != -ENOENT)
		return err;
	// Later mappings may have cut the range.
	if (procs_maps_read(p->pid, range_of, &search) || !search.limit)
		return -ENOENT;
	return find_range(f, p, m->file, search.start, search.limit, ret);
}

// Without symbolic links: the kernel's paths have none, so one that is there now was put there since.
static int open_below(int root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int find_path(struct procs_files *f, pid_t viewer, struct proc_text *file, struct found *ret)
{
	const char *path = proc_text_string(file);
	char name[64] = "/";
	int root, fd;

	if (path[0] != '/' || path[1] == '/')
		return -ENOENT;
	if (viewer ? proc_path_is_remote(viewer, path) : remote_for_us(f, path))
		return -EREMOTE;
	if (viewer)
		snprintf(name, sizeof(name), "/proc/%d/root", viewer);
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = open_below(root, path);
	close(root);
	if (fd < 0)
		return fd;
	ret->viewer = viewer;
	if (!look_at(fd, ret) && agrees(f, ret, file, false))
		return 0;
	close(fd);
	return -ESTALE;
}

// Its own root, its ancestors' (a container's files when the process itself has ended), the host's.
static int find_by_path(struct procs_files *f, struct proctable *t, struct proc *p, struct proc_text *file,
			struct found *ret)
{
	struct proc *at = p;
	int err;

	for (unsigned i = 0; at && i < ANCESTORS_MAX; i++) {
		if (at->end_ns == UINT64_MAX) {
			if (same_view(f, at->pid))
				break;
			err = find_path(f, at->pid, file, ret);
			if (!err)
				return 0;
		}
		at = at->ppid > 0 && at->ppid != at->pid ? proctable_find(t, at->ppid, at->start_ns) : NULL;
	}
	return find_path(f, 0, file, ret);
}

// A file without a name that is no ELF file holds generated code (memfd, shared memory).
static bool is_generated(int fd, const struct statx *st)
{
	unsigned char magic[4] = { 0 };

	if (st->stx_nlink)
		return false;
	return pread(fd, magic, sizeof(magic), 0) != sizeof(magic) || memcmp(magic, "\177ELF", 4);
}

// A descriptor to read from, or why there is none. file may be NULL.
static int open_found(struct procs_files *f, const struct found *found, const struct proc_text *file)
{
	enum mount_kind kind = kind_of(f, found);
	char path[64];
	int fd;

	if (kind == MOUNT_REMOTE || (kind == MOUNT_UNKNOWN && !(file && in_kernel_memory(file))))
		return -EREMOTE;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", found->fd);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

// 0 with *ret, a hold (NULL for generated code), or why it is not opened.
static int open_module(struct procs_files *f, const struct found *found, const struct proc_text *file,
		       struct sym_module **ret)
{
	int fd = open_found(f, found, file);
	char root[64];
	bool ours;

	if (fd < 0)
		return fd;
	*ret = NULL;
	if (!is_generated(fd, &found->st)) {
		// The way through a process ends with it: it is taken only where there is no other.
		snprintf(root, sizeof(root), "/proc/%d/root", found->viewer);
		ours = !found->viewer || same_view(f, found->viewer);
		*ret = symbolizer_module(f->symbolizer, fd, proc_text_string(file), ours ? NULL : root);
		if (!*ret) {
			close(fd);
			return -ENOMEM;
		}
	}
	close(fd);
	return 0;
}

static struct opened_key key_of_file(const struct statx *st)
{
	return (struct opened_key){
		.dev = makedev(st->stx_dev_major, st->stx_dev_minor),
		.inode = st->stx_ino,
		.size = st->stx_size,
		.ctime_s = (uint64_t)st->stx_ctime.tv_sec,
		.ctime_ns = st->stx_ctime.tv_nsec,
	};
}

// Files that are not at hand have no time; their path tells them apart.
static struct opened_key key_of_path(const char *path, uint64_t dev, uint64_t inode)
{
	return (struct opened_key){
		.dev = dev, .inode = inode, .size = hash_bytes(path, strlen(path), 0), .ctime_s = UINT64_MAX,
	};
}

static struct opened *opened_find(struct procs_files *f, const struct opened_key *key)
{
	struct opened *o;

	HASH_FIND(hh, f->opened, key, sizeof(*key), o);
	return o;
}

// Takes over the hold on the module.
static struct opened *opened_add(struct procs_files *f, const struct opened_key *key, struct sym_module *module)
{
	struct opened *o;

	if (HASH_COUNT(f->opened) >= f->sweep_at)
		procs_files_sweep(f);
	o = calloc(1, sizeof(*o));
	if (!o) {
		sym_module_put(module);
		return NULL;
	}
	o->key = *key;
	o->handle.module = module;
	HASH_ADD(hh, f->opened, key, sizeof(o->key), o);
	if (o->hh.tbl)
		return o;
	sym_module_put(module);
	free(o);
	return NULL;
}

static struct proc_module *handle(struct opened *o)
{
	return o ? &o->handle : NULL;
}

static struct proc_module *missing_module(struct procs_files *f, const char *path, uint64_t dev, uint64_t inode)
{
	struct opened_key key = key_of_path(path, dev, inode);
	struct opened *o = opened_find(f, &key);
	struct sym_module *module;

	if (o)
		return handle(o);
	module = symbolizer_missing(f->symbolizer, path, dev, inode);
	f->missing += inode != 0;
	return module ? handle(opened_add(f, &key, module)) : NULL;
}

static struct proc_module *special_module(struct procs_files *f, const struct proc_mapping *m)
{
	struct opened_key key = key_of_path("[vdso]", 0, 1);
	struct opened *o = opened_find(f, &key);
	struct sym_module *module;

	if (strcmp(proc_text_string(m->file), "[vdso]"))
		return NULL;
	// That of a 32-bit process is not ours.
	if (sizeof(void *) == 8 && m->start < BIT32)
		return missing_module(f, "[vdso]", 0, 0);
	if (o)
		return handle(o);
	module = symbolizer_vdso(f->symbolizer);
	return module ? handle(opened_add(f, &key, module)) : missing_module(f, "[vdso]", 0, 0);
}

// 0 with *ret (its module is NULL for generated code), or why there is none.
static int found_module(struct procs_files *f, const struct found *found, const struct proc_text *file,
			struct proc_module **ret)
{
	struct opened_key key = key_of_file(&found->st);
	struct opened *o = opened_find(f, &key);
	struct sym_module *module = NULL;
	int err;

	if (!o) {
		err = open_module(f, found, file, &module);
		if (err)
			return err;
		o = opened_add(f, &key, module);
		if (!o)
			return -ENOMEM;
	}
	*ret = handle(o);
	return 0;
}

static struct proc_module *file_module(struct procs_files *f, struct proctable *t, struct proc *p,
				       const struct proc_mapping *m)
{
	struct proc_module *module = NULL;
	struct found found = { .fd = -1 };
	int err = -ENOENT;

	if (p->end_ns == UINT64_MAX)
		err = find_mapped(f, p, m, &found);
	if (err)
		err = find_by_path(f, t, p, m->file, &found);
	if (!err) {
		err = found_module(f, &found, m->file, &module);
		close(found.fd);
	}
	if (!err) {
		proc_text_set_module(m->file, module);
		return module;
	}
	// Gone now, but it was seen when another process had it mapped.
	module = proc_text_module(m->file);
	if (module)
		return module;
	return missing_module(f, proc_text_string(m->file), proc_text_dev(m->file), proc_text_inode(m->file));
}

void procs_files_reopen(struct procs_files *f, struct proctable *t, struct proc *p, const struct proc_mapping *m)
{
	struct found found = { .fd = -1 };
	int err = p->end_ns == UINT64_MAX ? find_mapped(f, p, m, &found) : -ENOENT, fd;

	if (err)
		err = find_by_path(f, t, p, m->file, &found);
	if (err)
		return;
	fd = open_found(f, &found, m->file);
	close(found.fd);
	if (fd < 0)
		return;
	sym_module_reopen(m->module->module, fd);
	close(fd);
}

int procs_files_open(struct procs_files *f, pid_t viewer, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	struct found found = { .viewer = viewer };
	char name[64];
	int root, fd;

	if (proc_path_is_remote(viewer, path))
		return -EREMOTE;
	snprintf(name, sizeof(name), "/proc/%d/root", viewer);
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	found.fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	fd = -errno;
	close(root);
	if (found.fd < 0)
		return fd;
	fd = look_at(found.fd, &found);
	if (!fd)
		fd = S_ISREG(found.st.stx_mode) ? open_found(f, &found, NULL) : -EINVAL;
	close(found.fd);
	return fd;
}

void procs_files_resolve(struct procs_files *f, struct proctable *t, struct proc *p)
{
	struct proc_mappings *m = p->mappings;

	if (!m || !m->unresolved)
		return;
	for (unsigned i = 0; i < m->count; i++) {
		struct proc_mapping *e = &m->entries[i];

		if (e->resolved)
			continue;
		proc_mapping_set_module(e, proc_text_inode(e->file) ? file_module(f, t, p, e) : special_module(f, e));
		e->resolved = true;
	}
	m->unresolved = 0;
}
