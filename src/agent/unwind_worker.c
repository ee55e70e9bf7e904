// SPDX-License-Identifier: Apache-2.0
#include "agent/unwind_worker.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/probes.h"
#include "agent/unwind_tables.h"
#include "common/clock.h"
#include "common/thread.h"

#define MEMORY_DEFAULT ((size_t)32 << 20)
#define LACKING_MAX 256
#define TABLES_MAX 8192 // also of files that have none
#define PUBLISH_NS 20000000ull // a process whose tables take longer gets what there is so far
#define MAPPING_WORDS (sizeof(struct unwind_mapping) / sizeof(uint32_t))

struct process {
	pid_t pid;
	unsigned slot;
	uint32_t place, n;
	struct unwind_loaded **tables; // of each mapping, or NULL
	UT_hash_handle hh;
};

struct unwind_worker {
	pthread_t thread;
	struct unwind_jobs *jobs;
	const uint32_t *seen;
	int procs_map;
	struct unwind_rule *rules;
	struct unwind_store *store;
	struct unwind_ids *ids;
	struct unwind_tables *tables;
	struct process *processes;
	pthread_mutex_t mutex; // of what follows
	struct unwinder_stats stats;
	pid_t lacking[LACKING_MAX];
	unsigned n_lacking;
};

static void note_lacking(struct unwind_worker *w, pid_t pid)
{
	pthread_mutex_lock(&w->mutex);
	if (w->n_lacking < LACKING_MAX)
		w->lacking[w->n_lacking++] = pid;
	pthread_mutex_unlock(&w->mutex);
}

unsigned unwind_worker_lacking(struct unwind_worker *w, pid_t *pids, unsigned max)
{
	unsigned n;

	pthread_mutex_lock(&w->mutex);
	n = w->n_lacking < max ? w->n_lacking : max;
	w->n_lacking -= n;
	memcpy(pids, w->lacking + w->n_lacking, n * sizeof(*pids));
	pthread_mutex_unlock(&w->mutex);
	return n;
}

void unwind_worker_stats(struct unwind_worker *w, struct unwinder_stats *ret)
{
	pthread_mutex_lock(&w->mutex);
	*ret = w->stats;
	pthread_mutex_unlock(&w->mutex);
}

static void count(struct unwind_worker *w, uint64_t compiled, uint64_t refused, uint64_t given_up, uint64_t ns)
{
	pthread_mutex_lock(&w->mutex);
	w->stats.tables = unwind_tables_count(w->tables);
	w->stats.table_bytes = unwind_store_used(w->store);
	w->stats.processes = HASH_COUNT(w->processes);
	w->stats.compiled += compiled;
	w->stats.refused += refused;
	w->stats.given_up += given_up;
	w->stats.compile_ns += ns;
	pthread_mutex_unlock(&w->mutex);
}

// What was given back may be used again.
static void reclaim(struct unwind_worker *w)
{
	probes_grace();
	unwind_store_reclaim(w->store);
	unwind_ids_reclaim(w->ids);
}

static struct process *process_find(struct unwind_worker *w, pid_t pid)
{
	struct process *p;

	HASH_FIND(hh, w->processes, &pid, sizeof(pid), p);
	return p;
}

// Also what the kernel side only asked for.
static void forget_pid(struct unwind_worker *w, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	bpf_map_delete_elem(w->procs_map, &key);
}

static void process_remove(struct unwind_worker *w, struct process *p)
{
	forget_pid(w, p->pid);
	if (p->n)
		unwind_store_give(w->store, p->place, p->n * MAPPING_WORDS);
	HASH_DEL(w->processes, p);
	free(p->tables);
	free(p);
}

static uint32_t seen_at(const struct unwind_worker *w, const struct process *p)
{
	return __atomic_load_n(&w->seen[p->slot], __ATOMIC_RELAXED);
}

// The time of the last use of each table is the last of its processes'.
static void refresh_use(struct unwind_worker *w)
{
	for (struct process *p = w->processes; p; p = p->hh.next) {
		uint64_t seen = seen_at(w, p) * 1000000000ull;

		for (unsigned i = 0; i < p->n; i++)
			if (p->tables[i] && p->tables[i]->used_ns < seen)
				p->tables[i]->used_ns = seen;
	}
}

// Processes that use a table go on by frame pointer.
static void detach(struct unwind_worker *w, const struct unwind_loaded *l)
{
	for (struct process *p = w->processes; p; p = p->hh.next) {
		struct unwind_mapping *m = p->n ? (void *)unwind_store_at(w->store, p->place) : NULL;
		bool lacks = false;

		for (unsigned i = 0; i < p->n; i++) {
			if (p->tables[i] != l)
				continue;
			p->tables[i] = NULL;
			__atomic_store_n(&m[i].index, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&m[i].n_index, UNWIND_NO_TABLE, __ATOMIC_RELAXED);
			lacks = true;
		}
		if (lacks)
			note_lacking(w, p->pid);
	}
}

static void give_up(struct unwind_worker *w, struct unwind_loaded *l)
{
	detach(w, l);
	unwind_jobs_compiled(w->jobs, unwind_tables_identity(l), false);
	unwind_tables_drop(w->tables, l);
	reclaim(w);
}

// What was given back first, once: an attempt that fails gives back what it took, which is no room. Then what was used longest
// ago, but nothing that was used since `before`.
static bool make_room(struct unwind_worker *w, uint64_t before, bool *reclaimed)
{
	struct unwind_loaded *l;

	if (unwind_jobs_ended(w->jobs))
		return false;
	if (!*reclaimed && unwind_store_given(w->store)) {
		*reclaimed = true;
		reclaim(w);
		return true;
	}
	refresh_use(w);
	l = unwind_tables_oldest(w->tables, before, true);
	if (!l)
		return false;
	give_up(w, l);
	count(w, 0, 0, 1, 0);
	return true;
}

// Files come and go for months: those that were used longest ago are compiled again when they come back.
static void keep_few(struct unwind_worker *w, uint64_t before)
{
	struct unwind_loaded *l;

	if (unwind_tables_count(w->tables) < TABLES_MAX)
		return;
	refresh_use(w);
	l = unwind_tables_oldest(w->tables, before, false);
	if (l)
		give_up(w, l);
}

static struct unwind_loaded *compile(struct unwind_worker *w, struct unwind_file *file, uint64_t now)
{
	struct unwind_table *table = NULL;
	struct unwind_loaded *l = NULL;
	uint64_t began = clock_monotonic();
	struct error e = { "" };
	int fd = unwind_file_fd(w->jobs, file), err;
	bool reclaimed = false;

	if (fd < 0)
		return NULL;
	keep_few(w, now);
	if (unwind_compile(fd, NULL, &table, &e))
		table = NULL;
	do
		err = unwind_tables_add(w->tables, unwind_file_identity(file), table, &l);
	while (err == -ENOSPC && make_room(w, now, &reclaimed));
	unwind_table_free(table);
	if (err)
		l = NULL;
	else
		l->used_ns = now;
	if (l)
		unwind_jobs_compiled(w->jobs, unwind_file_identity(file), true);
	count(w, l && l->index, !l || !l->index, 0, clock_monotonic() - began);
	return l;
}

static bool fill(const struct unwind_job_range *r, const struct unwind_loaded *l, struct unwind_mapping *m)
{
	uint64_t pages = (r->limit - r->start) >> 12;

	m->start = r->start;
	m->pages = pages < UINT32_MAX ? (uint32_t)pages : UINT32_MAX;
	m->n_index = r->kind;
	if (!l || !l->index || r->address < l->base || (r->address - l->base) >> 44)
		return false;
	m->first = (uint32_t)((r->address - l->base) >> 12);
	m->index = l->index;
	m->n_index = l->n_index;
	return true;
}

// The process's mappings with the tables that there are, in the place of what the kernel side has of it.
static int publish(struct unwind_worker *w, const struct unwind_job *job, struct unwind_loaded **loaded, uint64_t now)
{
	struct process *p = process_find(w, job->pid);
	struct unwind_proc value = { .count = job->n_ranges };
	struct unwind_loaded **tables = calloc(job->n_ranges ? job->n_ranges : 1, sizeof(*tables));
	uint32_t key = (uint32_t)job->pid;
	int err = tables ? 0 : -ENOMEM;
	bool reclaimed = false;

	if (!p && !err) {
		p = calloc(1, sizeof(*p));
		if (!p) {
			free(tables);
			return -ENOMEM;
		}
		p->pid = job->pid;
		HASH_ADD(hh, w->processes, pid, sizeof(p->pid), p);
		if (!p->hh.tbl) {
			free(p);
			free(tables);
			return -ENOMEM;
		}
	}
	while (!err && job->n_ranges) {
		err = unwind_store_take(w->store, job->n_ranges * MAPPING_WORDS, &value.place);
		if (err != -ENOSPC || !make_room(w, now, &reclaimed))
			break;
		err = 0;
	}
	for (unsigned i = 0; i < job->n_ranges && !err; i++) {
		const struct unwind_job_range *r = &job->ranges[i];
		struct unwind_mapping m = { 0 };

		if (fill(r, r->file < 0 ? NULL : loaded[r->file], &m))
			tables[i] = loaded[r->file];
		memcpy(unwind_store_at(w->store, value.place) + i * MAPPING_WORDS, &m, sizeof(m));
	}
	if (!err && bpf_map_update_elem(w->procs_map, &key, &value, BPF_ANY)) {
		err = -errno;
		if (value.count)
			unwind_store_give(w->store, value.place, value.count * MAPPING_WORDS);
	}
	if (err) {
		free(tables);
		if (p)
			process_remove(w, p);
		return err;
	}
	if (p->n)
		unwind_store_give(w->store, p->place, p->n * MAPPING_WORDS);
	free(p->tables);
	p->slot = job->slot;
	p->place = value.place;
	p->n = value.count;
	p->tables = tables;
	return 0;
}

static void set_kind(struct unwind_job *job, int file, enum unwind_mapping_kind kind)
{
	for (unsigned i = 0; i < job->n_ranges; i++)
		if (job->ranges[i].file == file)
			job->ranges[i].kind = (uint8_t)kind;
}

// Compiles the files of the job that have no table yet: its executable, or the others. False when there is no use in it any
// more.
static bool load_files(struct unwind_worker *w, struct unwind_job *job, bool main, struct unwind_loaded **loaded,
		       uint64_t now, bool *ret_lacking)
{
	uint64_t published = clock_monotonic();

	for (unsigned i = 0; i < job->n_files; i++) {
		if (loaded[i] || job->files[i].main != main)
			continue;
		// A newer job about the process says it all again.
		if (unwind_jobs_ended(w->jobs) || unwind_jobs_waiting(w->jobs, job->pid))
			return false;
		loaded[i] = compile(w, job->files[i].file, now);
		set_kind(job, (int)i, UNWIND_NO_TABLE);
		*ret_lacking |= !loaded[i];
		if (main || clock_monotonic() - published > PUBLISH_NS) {
			publish(w, job, loaded, now);
			published = clock_monotonic();
		}
	}
	return true;
}

static void load_process(struct unwind_worker *w, struct unwind_job *job)
{
	struct unwind_loaded **loaded = calloc(job->n_files ? job->n_files : 1, sizeof(*loaded));
	uint64_t now = clock_monotonic();
	bool lacking = false;

	if (!loaded)
		return;
	for (unsigned i = 0; i < job->n_files; i++) {
		loaded[i] = unwind_tables_find(w->tables, unwind_file_identity(job->files[i].file));
		if (loaded[i])
			loaded[i]->used_ns = now;
		else
			set_kind(job, (int)i, UNWIND_PENDING);
	}
	// Most often the files that are new are not those that are on the stack.
	publish(w, job, loaded, now);
	if (load_files(w, job, true, loaded, now, &lacking))
		load_files(w, job, false, loaded, now, &lacking);
	if (publish(w, job, loaded, now) || lacking)
		note_lacking(w, job->pid);
	free(loaded);
}

static void *run(void *context)
{
	struct unwind_worker *w = context;
	struct unwind_job *job;
	struct process *p;

	while ((job = unwind_jobs_take(w->jobs))) {
		p = process_find(w, job->pid);
		if (!job->gone)
			load_process(w, job);
		else if (p)
			process_remove(w, p);
		else
			forget_pid(w, job->pid);
		unwind_job_free(w->jobs, job);
		if (unwind_store_given(w->store) > 64)
			reclaim(w);
		count(w, 0, 0, 0, 0);
	}
	return NULL;
}

int unwind_worker_new(const struct unwinder_options *options, struct unwind_jobs *jobs, const uint32_t seen[UNWIND_PROCS],
		      struct unwind_worker **ret, struct error *e)
{
	struct unwind_worker *w = calloc(1, sizeof(*w));
	size_t rules = UNWIND_RULES * sizeof(struct unwind_rule);
	int err = -ENOMEM;

	if (!w)
		return error_set(e, err, "no memory for unwind tables; free some and try again");
	w->jobs = jobs;
	w->seen = seen;
	w->procs_map = options->procs;
	pthread_mutex_init(&w->mutex, NULL);
	w->rules = mmap(NULL, rules, PROT_READ | PROT_WRITE, MAP_SHARED, options->rules, 0);
	if (w->rules == MAP_FAILED) {
		err = error_set(e, -errno, "cannot map the unwind rules: %s", strerror(errno));
		w->rules = NULL;
		goto fail;
	}
	w->store = unwind_store_new(options->arenas, options->memory ? options->memory : MEMORY_DEFAULT);
	w->ids = unwind_ids_new(w->rules);
	if (w->store && w->ids)
		w->tables = unwind_tables_new(w->store, w->ids);
	if (!w->tables) {
		error_set(e, err, "no memory for unwind tables; free some and try again");
		goto fail;
	}
	err = thread_start(&w->thread, run, w);
	if (!err) {
		*ret = w;
		return 0;
	}
	error_set(e, err, "cannot start the thread that compiles unwind tables: %s", strerror(-err));
	w->jobs = NULL;
fail:
	w->jobs = NULL;
	unwind_worker_free(w);
	return err;
}

void unwind_worker_free(struct unwind_worker *w)
{
	struct process *p, *next;

	if (!w)
		return;
	if (w->jobs) {
		unwind_jobs_end(w->jobs);
		pthread_join(w->thread, NULL);
	}
	HASH_ITER(hh, w->processes, p, next)
		process_remove(w, p);
	unwind_tables_free(w->tables);
	unwind_ids_free(w->ids);
	unwind_store_free(w->store);
	if (w->rules)
		munmap(w->rules, UNWIND_RULES * sizeof(struct unwind_rule));
	pthread_mutex_destroy(&w->mutex);
	free(w);
}
