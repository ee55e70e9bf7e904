// SPDX-License-Identifier: Apache-2.0
#include "agent/perf_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "agent/java_attach.h"
#include "agent/jvm_quality.h"
#include "agent/proc_status.h"
#include "common/clock.h"
#include "common/text.h"

#define MEMORY_DEFAULT ((size_t)32 << 20)
#define SECOND_NS 1000000000u
#define YOUNG_NS (5ull * SECOND_NS)  // a process that was just met has much to tell,
#define YOUNG_AGE_NS 100000000u	     // so it is looked at so often,
#define AGE_NS (1ull * SECOND_NS)    // then so often,
#define MISSING_AGE_NS (2ull * SECOND_NS) // and where there is no file
#define READ_ONCE (1u << 20)
#define FILE_MAX (256u << 20)
// Of all files in a second: one that its owner writes anew all the time costs no more. The rest is read in the next ones.
#define READ_SECOND (16u << 20)
#define TAIL 64
#define JVMS 32

// Of one life of a process.
struct process {
	pid_t pid;
	uint64_t start_ns; // of the life
	UT_hash_handle hh;
	struct perf_map *map; // or NULL
	uint64_t serial, met_ns, checked_ns, used_ns;
	struct proc_status status;
	uint64_t inode, taken; // bytes of the file
	char tail[TAIL];	// the last of them
	unsigned tail_len;
};

struct cut_jvm {
	struct proc_jvm jvm;
	uint64_t start_ns, used_ns;
};

struct perf_maps {
	struct jvm_quality *quality;
	struct cut_jvm jvms[JVMS];
	struct procs_files *files;
	struct java_attach *java; // NULL: JVMs are not asked
	size_t memory;
	struct process *processes;
	uint64_t serial, lost;
	uint64_t second; // that read_left is of
	size_t read_left;
};

struct perf_maps *perf_maps_new(struct procs_files *files, size_t memory, bool java_attach, struct jvm_wake *wake)
{
	struct perf_maps *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->files = files;
	p->memory = memory ? memory : MEMORY_DEFAULT;
	p->quality = jvm_quality_new();
	// Without a thread for it JVMs are not asked; their code has no names then.
	if (java_attach)
		p->java = java_attach_new(wake);
	return p;
}

static void drop(struct perf_maps *p, struct process *x)
{
	HASH_DEL(p->processes, x);
	jvm_quality_forget(p->quality, x->pid);
	perf_map_free(x->map);
	free(x);
}

void perf_maps_free(struct perf_maps *p)
{
	if (!p)
		return;
	java_attach_free(p->java);
	while (p->processes)
		drop(p, p->processes);
	jvm_quality_free(p->quality);
	free(p);
}

uint64_t perf_maps_lost(const struct perf_maps *p)
{
	return p->lost;
}

static size_t memory(const struct perf_maps *p)
{
	size_t sum = 0;

	for (const struct process *x = p->processes; x; x = x->hh.next)
		sum += sizeof(*x) + (x->map ? perf_map_memory(x->map) : 0);
	return sum;
}

static void keep_memory(struct perf_maps *p, const struct process *current)
{
	while (memory(p) > p->memory) {
		struct process *oldest = NULL;

		for (struct process *x = p->processes; x; x = x->hh.next)
			if (x != current && (!oldest || x->used_ns < oldest->used_ns))
				oldest = x;
		if (!oldest)
			return;
		drop(p, oldest);
	}
}

// Whether what was taken is still what the file has there: else it was written anew.
static bool continues(const struct process *x, int fd, const struct stat *st)
{
	char tail[TAIL];

	return x->map && x->inode == st->st_ino && (uint64_t)st->st_size >= x->taken &&
	       pread(fd, tail, x->tail_len, (off_t)(x->taken - x->tail_len)) == (ssize_t)x->tail_len &&
	       !memcmp(tail, x->tail, x->tail_len);
}

static void count_lost(struct perf_maps *p, const struct process *x, uint64_t before)
{
	p->lost += perf_map_malformed(x->map) + perf_map_refused(x->map) - before;
}

static void read_on(struct perf_maps *p, struct process *x, int fd, uint64_t size)
{
	uint64_t second = clock_monotonic() / SECOND_NS;
	char *text = malloc(READ_ONCE);
	ssize_t n;
	size_t taken;

	if (p->second != second) {
		p->second = second;
		p->read_left = READ_SECOND;
	}
	while (text && p->read_left >= READ_ONCE && x->taken < size && (n = pread(fd, text, READ_ONCE, (off_t)x->taken)) > 0) {
		p->read_left -= (size_t)n;
		taken = perf_map_add(x->map, text, (size_t)n);
		if (!taken && n == READ_ONCE)
			taken = READ_ONCE; // no line is so long: what follows it is what can be read
		if (!taken)
			break;
		x->taken += taken;
		x->tail_len = taken < TAIL ? (unsigned)taken : TAIL;
		memcpy(x->tail, text + taken - x->tail_len, x->tail_len);
	}
	free(text);
}

static void take_file(struct perf_maps *p, struct process *x, int fd)
{
	uint64_t before, taken;
	struct stat st;

	if (fstat(fd, &st) || (st.st_uid && st.st_uid != x->status.uid))
		return;
	if (!continues(x, fd, &st)) {
		perf_map_free(x->map);
		x->map = perf_map_new(p->memory / 2);
		x->inode = st.st_ino;
		x->taken = x->tail_len = 0;
		x->serial = ++p->serial;
	}
	if (!x->map)
		return;
	taken = x->taken;
	before = perf_map_malformed(x->map) + perf_map_refused(x->map);
	read_on(p, x, fd, st.st_size < FILE_MAX ? (uint64_t)st.st_size : FILE_MAX);
	count_lost(p, x, before);
	if (x->taken != taken)
		x->serial = ++p->serial;
	keep_memory(p, x);
}

static uint64_t age_allowed(const struct process *x, uint64_t now)
{
	if (now - x->met_ns < YOUNG_NS)
		return YOUNG_AGE_NS;
	return x->map ? AGE_NS : MISSING_AGE_NS;
}

static void refresh(struct perf_maps *p, struct process *x, bool alive)
{
	uint64_t now = clock_monotonic();
	char path[64];
	int fd;

	x->used_ns = now;
	if (!alive || (x->checked_ns && now - x->checked_ns < age_allowed(x, now)))
		return;
	x->checked_ns = now;
	// The user and the namespace of a process that has changed them are looked at again with each try.
	if (proc_status_read(x->pid, &x->status))
		return;
	if (p->java)
		java_attach_ask(p->java, x->pid, &x->status);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", x->status.inner_pid);
	fd = procs_files_open(p->files, x->pid, path);
	if (fd < 0)
		return;
	take_file(p, x, fd);
	close(fd);
}

static struct process *find(struct perf_maps *p, const struct proc *proc)
{
	struct process *x;

	HASH_FIND(hh, p->processes, &proc->pid, sizeof(proc->pid), x);
	if (x && x->start_ns != proc->start_ns) {
		drop(p, x);
		x = NULL;
	}
	return x;
}

static struct process *find_or_add(struct perf_maps *p, const struct proc *proc)
{
	struct process *x = find(p, proc);

	if (x)
		return x;
	x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	x->pid = proc->pid;
	x->start_ns = proc->start_ns;
	x->met_ns = clock_monotonic();
	HASH_ADD(hh, p->processes, pid, sizeof(x->pid), x);
	if (x->hh.tbl) {
		jvm_quality_ask(p->quality, x->pid);
		return x;
	}
	free(x);
	return NULL;
}

// What it is called and belongs to, now that it is known: it may have ended when a profile is made.
static void note_jvm(struct perf_maps *p, const struct proc *proc)
{
	const char *service = proc_service(proc);
	struct cut_jvm *j = p->jvms;

	if (jvm_quality_of(p->quality, proc->pid) != JVM_STACKS_CUT)
		return;
	for (unsigned i = 0; i < JVMS; i++) {
		if (p->jvms[i].jvm.pid == proc->pid && p->jvms[i].start_ns == proc->start_ns) {
			j = &p->jvms[i];
			break;
		}
		if (p->jvms[i].used_ns < j->used_ns)
			j = &p->jvms[i];
	}
	j->start_ns = proc->start_ns;
	j->used_ns = clock_monotonic();
	j->jvm.pid = proc->pid;
	text_sanitize(j->jvm.name, sizeof(j->jvm.name), proc_name(proc), strlen(proc_name(proc)));
	snprintf(j->jvm.service, sizeof(j->jvm.service), "%s", service);
}

void perf_maps_cut_jvms(struct perf_maps *p, uint64_t since, void (*fn)(void *context, const struct proc_jvm *jvm), void *context)
{
	for (unsigned i = 0; i < JVMS; i++)
		if (p->jvms[i].jvm.pid && p->jvms[i].used_ns >= since)
			fn(context, &p->jvms[i].jvm);
}

bool perf_maps_find(struct perf_maps *p, const struct proc *proc, uint64_t address, struct perf_symbol *ret)
{
	struct process *x = find_or_add(p, proc);

	if (!x)
		return false;
	refresh(p, x, proc->end_ns == UINT64_MAX);
	note_jvm(p, proc);
	return x->map && perf_map_find(x->map, address, ret);
}

uint64_t perf_maps_generation(struct perf_maps *p, const struct proc *proc)
{
	struct process *x = p->processes ? find(p, proc) : NULL;

	if (!x)
		return 0;
	refresh(p, x, proc->end_ns == UINT64_MAX);
	note_jvm(p, proc);
	return x->serial;
}

void perf_maps_forget(struct perf_maps *p, struct proctable *t)
{
	struct process *x, *next;

	HASH_ITER(hh, p->processes, x, next) {
		const struct proc *proc = proctable_newest(t, x->pid);

		while (proc && proc->start_ns != x->start_ns)
			proc = proc->older;
		if (!proc)
			drop(p, x);
	}
}
