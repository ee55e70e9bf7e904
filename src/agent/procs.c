// SPDX-License-Identifier: Apache-2.0
#include "agent/procs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/containers.h"
#include "agent/perf_maps.h"
#include "agent/procs_files.h"
#include "agent/procs_rings.h"
#include "agent/procs_scan.h"
#include "agent/proctable.h"
#include "agent/service.h"
#include "common/clock.h"

#define SECOND_NS 1000000000u
#define MEMORY_DEFAULT ((size_t)64 << 20)
#define CGROUP_AGE_NS (10ull * SECOND_NS) // processes are moved rarely, and mostly before they exec
#define RINGS_AGE_NS (5ull * SECOND_NS)
#define RESCAN_AGE_NS (5ull * SECOND_NS)
#define RECHECK_AGE_NS (1ull * SECOND_NS) // of one process, where no events tell
#define EXIT_SLACK_NS 50000000u

struct procs {
	struct proctable *table;
	struct procs_rings *rings; // NULL: no events here
	struct procs_files *files;
	struct perf_maps *perf_maps;
	struct containers *containers;
	uint64_t lost;
	uint64_t complete_ns; // up to then nothing was lost
	uint64_t polled_ns, refreshed_ns, rescanned_ns;
	bool rescan;
};

struct procs *procs_new(const struct procs_options *options, struct error *e)
{
	struct procs *p = calloc(1, sizeof(*p));

	if (e)
		e->text[0] = 0;
	if (!p)
		goto no_memory;
	p->table = proctable_new(options->memory ? options->memory : MEMORY_DEFAULT);
	p->files = procs_files_new(options->symbolizer);
	if (p->files)
		p->perf_maps = perf_maps_new(p->files, options->perf_maps, options->java_attach, options->jvm_wake);
	p->containers = containers_new(NULL);
	if (!p->table || !p->files || !p->perf_maps || !p->containers)
		goto no_memory;
	// The events are on before /proc is looked at, so that nothing falls between.
	procs_rings_new(&p->rings, e);
	p->complete_ns = p->polled_ns = p->refreshed_ns = p->rescanned_ns = clock_monotonic();
	procs_scan_all(p->table, 0);
	return p;
no_memory:
	procs_free(p);
	error_set(e, -ENOMEM, "no memory to follow processes");
	return NULL;
}

void procs_free(struct procs *p)
{
	if (!p)
		return;
	procs_rings_free(p->rings);
	perf_maps_free(p->perf_maps);
	proctable_free(p->table);
	procs_files_free(p->files);
	containers_free(p->containers);
	free(p);
}

static void rescan(struct procs *p, uint64_t now)
{
	procs_scan_all(p->table, p->complete_ns);
	p->rescanned_ns = now;
	p->complete_ns = now;
	p->rescan = false;
}

static void take_events(struct procs *p)
{
	struct proc_event ev;

	if (procs_rings_begin(p->rings))
		p->rescan = true;
	while (procs_rings_next(p->rings, &ev)) {
		if (ev.type == PROC_LOST) {
			p->lost += ev.lost;
			p->rescan = true;
		} else {
			proctable_apply(p->table, &ev);
		}
	}
}

int procs_poll(struct procs *p)
{
	uint64_t now = clock_monotonic();

	p->polled_ns = now;
	if (!p->rings) {
		if (now - p->rescanned_ns > RESCAN_AGE_NS)
			rescan(p, now);
		return 0;
	}
	take_events(p);
	if (now - p->refreshed_ns > RINGS_AGE_NS) {
		procs_rings_refresh(p->rings);
		p->refreshed_ns = now;
	}
	if (!p->rescan)
		p->complete_ns = now;
	else if (now - p->rescanned_ns > RESCAN_AGE_NS)
		rescan(p, now);
	return 0;
}

// Whether /proc has to be asked about the process.
static bool is_doubtful(const struct procs *p, const struct proc *life, uint64_t time_ns)
{
	if (!life || life->incomplete)
		return true;
	if (life->end_ns != UINT64_MAX)
		return !life->newer && time_ns > life->end_ns + EXIT_SLACK_NS;
	return (!p->rings || p->rescan) && time_ns > life->scanned_ns + RECHECK_AGE_NS;
}

void procs_touch(struct procs *p, pid_t pid, uint64_t time_ns)
{
	struct proc *life;

	if (pid <= 0)
		return;
	if (p->rings && time_ns > p->polled_ns && procs_rings_pending(p->rings))
		procs_poll(p);
	life = proctable_find(p->table, pid, time_ns);
	if (is_doubtful(p, life, time_ns)) {
		procs_scan_one(p->table, pid, time_ns < p->complete_ns ? 0 : p->complete_ns);
		life = proctable_find(p->table, pid, time_ns);
		if (!life)
			return;
	}
	if (life->end_ns == UINT64_MAX && (!life->cgroup_read_ns || time_ns > life->cgroup_read_ns + CGROUP_AGE_NS))
		procs_scan_cgroup(p->table, life, clock_monotonic());
	procs_files_resolve(p->files, p->table, life);
}

struct proc *procs_find(struct procs *p, pid_t pid, uint64_t time_ns)
{
	struct proc *life = proctable_find(p->table, pid, time_ns);
	struct service_container who;
	const char *text;
	char service[256];

	if (!life || life->service)
		return life;
	text = proc_text_string(life->cgroup_text);
	if (!service_container(text, &who) || !containers_name(p->containers, &who, clock_monotonic(), service, sizeof(service)))
		service_from_cgroup(text, life->name, service, sizeof(service));
	proctable_set(p->table, &life->service, service, strlen(service));
	return life;
}

void procs_stats(const struct procs *p, struct procs_stats *ret)
{
	struct proctable_stats t;

	proctable_stats(p->table, &t);
	*ret = (struct procs_stats){
		.lost_events = p->lost,
		.evicted = t.evicted,
		.refused_mappings = t.refused_mappings,
		.missing_files = procs_files_missing(p->files),
		.perf_map_lines_lost = perf_maps_lost(p->perf_maps),
		.known = t.lives,
		.bytes = t.bytes,
	};
}

void procs_forget(struct procs *p, uint64_t time_ns)
{
	proctable_forget(p->table, time_ns);
	perf_maps_forget(p->perf_maps, p->table);
	procs_files_sweep(p->files);
}

const char *proc_name(const struct proc *p)
{
	return p->name;
}

const char *proc_exe(const struct proc *p)
{
	return proc_text_string(p->exe);
}

const char *proc_service(const struct proc *p)
{
	return p->service ? proc_text_string(p->service) : p->name;
}

uint64_t proc_cgroup(const struct proc *p)
{
	return p->cgroup;
}

bool proc_find_map(struct procs *ps, struct proc *p, uint64_t address, uint64_t time_ns, struct proc_map *ret)
{
	struct proc_mapping *m = proctable_lookup(p, address, time_ns);

	if (!m)
		return false;
	if (!m->resolved)
		procs_files_resolve(ps->files, ps->table, p);
	*ret = (struct proc_map){
		.start = m->start,
		.limit = m->limit,
		.offset = m->offset,
		.path = proc_text_string(m->file),
		.module = m->module ? m->module->module : NULL,
	};
	return true;
}

void procs_open(struct procs *ps, struct proc *p, uint64_t address, uint64_t time_ns, const struct proc_map *map)
{
	struct proc_mapping *m;

	if (!map->module || !sym_module_is_closed(map->module))
		return;
	m = proctable_lookup(p, address, time_ns);
	if (m && m->module && m->module->module == map->module)
		procs_files_reopen(ps->files, ps->table, p, m);
}

uint64_t proc_space(const struct proc *p)
{
	return p && p->mappings ? p->mappings->serial : 0;
}

bool procs_generated(struct procs *ps, struct proc *p, uint64_t address, char *out, size_t cap, const char **ret_raw)
{
	struct perf_symbol symbol;

	if (!perf_maps_find(ps->perf_maps, p, address, &symbol))
		return false;
	*ret_raw = perf_map_display(symbol.name, out, cap) ? symbol.name : NULL;
	return *out;
}

uint64_t procs_generation(struct procs *ps, struct proc *p)
{
	return perf_maps_generation(ps->perf_maps, p);
}

void procs_cut_jvms(struct procs *ps, uint64_t since, void (*fn)(void *context, const struct proc_jvm *jvm), void *context)
{
	perf_maps_cut_jvms(ps->perf_maps, since, fn, context);
}

bool procs_is_alive(struct procs *ps, pid_t pid)
{
	const struct proc *p = proctable_newest(ps->table, pid);

	return p && p->end_ns == UINT64_MAX;
}
