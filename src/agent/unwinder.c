// SPDX-License-Identifier: Apache-2.0
#include "agent/unwinder.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/proctable.h"
#include "agent/unwind_jobs.h"
#include "agent/unwind_ranges.h"
#include "agent/unwind_worker.h"
#include "bpf/unwind_rec.h"
#include "common/clock.h"

#define SECOND_NS 1000000000ull
#define WARM_MS 200
#define RETRY_NS (30 * SECOND_NS) // of a process that lacks a table
#define SOON_NS (SECOND_NS / 2)	  // where too many others waited for theirs
#define SWEEP_NS (60 * SECOND_NS)
#define WAITING_MAX 8192 // jobs; then nobody new is met

// A process as the worker was last told of it.
struct watch {
	pid_t pid;
	uint64_t start_ns, serial; // of the life and its mappings
	uint64_t retry_ns;	   // when to tell again though nothing changed, 0 = never
	unsigned slot;
	UT_hash_handle hh;
};

struct unwinder {
	struct unwind_jobs *jobs;
	struct unwind_worker *worker;
	struct watch *watches;
	uint64_t polled_ns, swept_ns;
	int procs_map;
	unsigned n_free;
	uint16_t free_slots[UNWIND_PROCS];
	uint32_t seen[UNWIND_PROCS]; // seconds, by slot; read by the worker
};

int unwinder_new(const struct unwinder_options *options, struct unwinder **ret, struct error *e)
{
	struct unwinder *u = calloc(1, sizeof(*u));
	int err = -ENOMEM;

	if (!u)
		return error_set(e, err, "no memory for unwind tables; free some and try again");
	for (unsigned i = 0; i < UNWIND_PROCS; i++)
		u->free_slots[u->n_free++] = (uint16_t)(UNWIND_PROCS - 1 - i);
	u->procs_map = options->procs;
	u->jobs = unwind_jobs_new();
	if (u->jobs)
		err = unwind_worker_new(options, u->jobs, u->seen, &u->worker, e);
	else
		error_set(e, err, "no memory for unwind tables; free some and try again");
	if (err) {
		unwinder_free(u);
		return err;
	}
	*ret = u;
	return 0;
}

void unwinder_free(struct unwinder *u)
{
	struct watch *w, *next;

	if (!u)
		return;
	unwind_worker_free(u->worker);
	unwind_jobs_free(u->jobs);
	HASH_ITER(hh, u->watches, w, next) {
		HASH_DEL(u->watches, w);
		free(w);
	}
	free(u);
}

static struct watch *watch_find(struct unwinder *u, pid_t pid)
{
	struct watch *w;

	HASH_FIND(hh, u->watches, &pid, sizeof(pid), w);
	return w;
}

static void tell_gone(struct unwinder *u, pid_t pid)
{
	struct unwind_job *job = calloc(1, sizeof(*job));

	if (!job)
		return;
	job->pid = pid;
	job->gone = true;
	unwind_jobs_put(u->jobs, job);
}

// The worker knows nothing of it, or was told that it is gone.
static void forget_unwatched(struct unwinder *u, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	bpf_map_delete_elem(u->procs_map, &key);
}

static void watch_remove(struct unwinder *u, struct watch *w)
{
	tell_gone(u, w->pid);
	u->free_slots[u->n_free++] = (uint16_t)w->slot;
	HASH_DEL(u->watches, w);
	free(w);
}

// Where there are too many, the one that was seen longest ago goes.
static void watch_evict(struct unwinder *u)
{
	struct watch *oldest = u->watches;

	for (struct watch *w = u->watches; w; w = w->hh.next)
		if (u->seen[w->slot] < u->seen[oldest->slot])
			oldest = w;
	if (oldest)
		watch_remove(u, oldest);
}

static struct watch *watch_add(struct unwinder *u, pid_t pid)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	if (!u->n_free)
		watch_evict(u);
	w->pid = pid;
	HASH_ADD(hh, u->watches, pid, sizeof(w->pid), w);
	if (!w->hh.tbl) {
		free(w);
		return NULL;
	}
	w->slot = u->free_slots[--u->n_free];
	return w;
}

// A job that is made, and what it lacks.
struct making {
	struct unwinder *unwinder;
	struct unwind_job *job;
	bool lacking, full;
};

static struct unwind_file *take_file(struct making *x, const char *identity, struct sym_module *module)
{
	struct unwind_file *f = unwind_jobs_find_file(x->unwinder->jobs, identity);
	int fd;

	if (f)
		return f;
	if (unwind_jobs_files_full(x->unwinder->jobs)) {
		x->full = true;
		return NULL;
	}
	fd = sym_module_open(module);
	if (fd >= 0)
		f = unwind_jobs_add_file(x->unwinder->jobs, identity, fd);
	x->lacking |= !f;
	return f;
}

static int add_file(struct making *x, struct sym_module *module)
{
	struct unwind_job *job = x->job;
	char identity[UNWIND_IDENTITY_MAX];
	struct unwind_file *f;

	if (!sym_module_identity(module, identity, sizeof(identity)))
		return -1;
	for (unsigned i = 0; i < job->n_files; i++)
		if (!strcmp(unwind_file_identity(job->files[i].file), identity))
			return (int)i;
	f = take_file(x, identity, module);
	if (!f)
		return -1;
	job->files[job->n_files].file = f;
	return (int)job->n_files++;
}

static void add_range(struct making *x, const struct unwind_range *r, const struct proc_mapping *m,
		      const struct proc_text *exe)
{
	struct unwind_job *job = x->job;
	bool full = x->full;
	struct unwind_job_range *out = &job->ranges[job->n_ranges++];
	struct sym_module *module = m->module ? m->module->module : NULL;
	uint64_t address;

	*out = (struct unwind_job_range){ .start = r->start, .limit = r->limit, .file = -1, .kind = UNWIND_NO_TABLE };
	if (!module) {
		out->kind = UNWIND_GENERATED;
		return;
	}
	if (!sym_module_code_address(module, m->offset, &address))
		return;
	out->address = address + (r->start - m->start);
	x->full = false;
	out->file = add_file(x, module);
	if (x->full)
		out->kind = UNWIND_PENDING;
	x->full |= full;
	if (out->file >= 0 && exe && !strcmp(proc_text_string(exe), proc_text_string(m->file)))
		job->files[out->file].main = true;
}

// NULL without memory.
static struct unwind_job *make_job(struct making *x, const struct proc *life, unsigned slot)
{
	const struct proc_mappings *m = life->mappings;
	struct unwind_ranges ranges = { .max = UNWIND_MAPPINGS };
	struct unwind_job *job = calloc(1, sizeof(*job));
	unsigned n = m ? m->count : 0;

	if (!job)
		return NULL;
	x->job = job;
	job->pid = life->pid;
	job->slot = slot;
	for (unsigned i = n; i-- > 0;)
		if (unwind_ranges_add(&ranges, m->entries[i].start, m->entries[i].limit, i))
			break;
	job->ranges = calloc(ranges.n + 1, sizeof(*job->ranges));
	job->files = calloc(ranges.n + 1, sizeof(*job->files));
	if (!job->ranges || !job->files) {
		free(ranges.items);
		unwind_job_free(x->unwinder->jobs, job);
		return NULL;
	}
	for (unsigned i = 0; i < ranges.n; i++)
		add_range(x, &ranges.items[i], &m->entries[ranges.items[i].source], life->exe);
	free(ranges.items);
	return job;
}

void unwinder_warm(struct unwinder *u, struct procs *procs, pid_t pid, const char *name)
{
	const struct proc *life = procs_find(procs, pid, clock_monotonic());
	const struct proc_mappings *m = life ? life->mappings : NULL;
	struct making x = { .unwinder = u };
	size_t len = strlen(name);

	for (unsigned i = 0; m && i < m->count; i++) {
		const char *path = proc_text_string(m->entries[i].file);
		size_t path_len = strlen(path);
		struct unwind_range range = { m->entries[i].start, m->entries[i].limit, i };
		struct unwind_job *job;

		if (path_len <= len || path[path_len - len - 1] != '/' || strcmp(path + path_len - len, name))
			continue;
		job = calloc(1, sizeof(*job));
		if (job) {
			job->ranges = calloc(1, sizeof(*job->ranges));
			job->files = calloc(1, sizeof(*job->files));
		}
		if (!job || !job->ranges || !job->files) {
			unwind_job_free(u->jobs, job);
			return;
		}
		job->pid = pid;
		x.job = job;
		add_range(&x, &range, &m->entries[i], NULL);
		unwind_jobs_put(u->jobs, job);
		unwind_jobs_settle(u->jobs, WARM_MS);
		return;
	}
}

static void tell(struct unwinder *u, struct watch *w, const struct proc *life)
{
	struct making x = { .unwinder = u };
	struct unwind_job *job = make_job(&x, life, w->slot);

	w->start_ns = life->start_ns;
	w->serial = life->mappings ? life->mappings->serial : 0;
	w->retry_ns = x.full ? clock_monotonic() + SOON_NS : x.lacking ? clock_monotonic() + RETRY_NS : 0;
	if (job)
		unwind_jobs_put(u->jobs, job);
}

static void see(struct unwinder *u, const struct proc *life, uint64_t now)
{
	struct watch *w = watch_find(u, life->pid);
	uint64_t serial = life->mappings ? life->mappings->serial : 0;

	if (!w && unwind_jobs_count(u->jobs) < WAITING_MAX)
		w = watch_add(u, life->pid);
	if (!w)
		return;
	__atomic_store_n(&u->seen[w->slot], (uint32_t)(now / SECOND_NS), __ATOMIC_RELAXED);
	if (w->start_ns != life->start_ns || w->serial != serial || (w->retry_ns && now > w->retry_ns))
		tell(u, w, life);
}

void unwinder_see(struct unwinder *u, struct procs *procs, pid_t pid, uint64_t time_ns)
{
	struct proc *life = procs_find(procs, pid, time_ns), *parent;
	bool known = watch_find(u, pid);

	if (!life || life->end_ns != UINT64_MAX) {
		if (known)
			tell_gone(u, pid);
		else
			forget_unwatched(u, pid);
		return;
	}
	see(u, life, time_ns);
	// Servers fork: whoever the parent forks next is walked by its tables from its first I/O on.
	if (known || life->ppid <= 1)
		return;
	parent = procs_find(procs, life->ppid, time_ns);
	if (parent && parent->end_ns == UINT64_MAX && parent->exe && parent->exe == life->exe) {
		procs_touch(procs, life->ppid, time_ns);
		parent = procs_find(procs, life->ppid, time_ns);
		if (parent)
			see(u, parent, time_ns);
	}
}

// Entries whose asking was lost on the way, or came when nobody new was met: they would fill the map.
static void sweep(struct unwinder *u, struct procs *procs, uint64_t now)
{
	uint32_t key, next;
	bool more;

	u->swept_ns = now;
	more = !bpf_map_get_next_key(u->procs_map, NULL, &next);
	for (unsigned i = 0; more && i < 2 * UNWIND_PROCS; i++) {
		key = next;
		more = !bpf_map_get_next_key(u->procs_map, &key, &next);
		if (!watch_find(u, (pid_t)key))
			unwinder_see(u, procs, (pid_t)key, now);
		// Still not: it asks again.
		if (!watch_find(u, (pid_t)key))
			forget_unwatched(u, (pid_t)key);
	}
}

void unwinder_poll(struct unwinder *u, struct procs *procs)
{
	uint64_t now = clock_monotonic();
	struct watch *w, *next;
	pid_t lacking[64];
	unsigned n;

	if (now - u->polled_ns < SECOND_NS)
		return;
	u->polled_ns = now;
	n = unwind_worker_lacking(u->worker, lacking, sizeof(lacking) / sizeof(*lacking));
	for (unsigned i = 0; i < n; i++) {
		w = watch_find(u, lacking[i]);
		if (w)
			w->retry_ns = now + RETRY_NS;
	}
	HASH_ITER(hh, u->watches, w, next) {
		struct proc *life = procs_find(procs, w->pid, now);

		if (!life || life->end_ns != UINT64_MAX)
			watch_remove(u, w);
	}
	if (now - u->swept_ns > SWEEP_NS)
		sweep(u, procs, now);
}

void unwinder_stats(struct unwinder *u, struct unwinder_stats *ret)
{
	unwind_worker_stats(u->worker, ret);
}
