// SPDX-License-Identifier: Apache-2.0
#include "agent/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/hostinfo.h"
#include "agent/recorder_internal.h"
#include "common/clock.h"

#define STACKS_MAX 200000
#define ROWS_MAX 400000
#define HOUSEKEEPING_NS 10000000000ull

static const char *const backend_names[BACKENDS] = { "auto", "fentry", "kprobe", "tracepoint" };

const char *backend_name(enum backend b)
{
	return b < BACKENDS ? backend_names[b] : "?";
}

int backend_parse(const char *text, enum backend *ret)
{
	for (unsigned i = 0; i < BACKENDS; i++) {
		if (strcmp(text, backend_names[i]))
			continue;
		*ret = i;
		return 0;
	}
	return -EINVAL;
}

static void see_process(struct recorder *r, pid_t pid, uint64_t time)
{
	procs_touch(r->procs, pid, time);
	if (r->unwinder)
		unwinder_see(r->unwinder, r->procs, pid, time);
}

static int on_record(void *context, void *data, size_t size)
{
	struct recorder *r = context;
	const struct process_rec *process = data;
	const struct bio_rec *rec = data;
	int err;

	if (size >= sizeof(uint32_t) && rec->type == RECORD_STACK) {
		err = stacks_add(r->stacks, data, size);
		if (err && !r->record_error && err == -ENOMEM)
			r->record_error = err;
		return 0;
	}
	if (size >= sizeof(*process) && process->type == RECORD_PROCESS) {
		if (r->procs)
			see_process(r, (pid_t)process->tgid, process->time);
		return 0;
	}
	if (size < sizeof(*rec) || (rec->type != RECORD_BIO && rec->type != RECORD_CPU))
		return 0;
	if (r->procs && !(rec->bio.kind & TASK_KTHREAD))
		see_process(r, (pid_t)rec->bio.tgid, rec->bio.submit);
	err = aggregate_record(r->aggregate, rec, rec->type == RECORD_CPU ? 0 : kernel_maps_disk(r, rec->bio.slot));
	if (err && !r->record_error)
		r->record_error = err;
	return 0;
}

static int configure(struct recorder *r, struct probes_options *o, struct error *e)
{
	struct record_config *c = &o->config;
	const struct filter *f = &r->options.filter;
	struct kernel_facts facts;
	int err;

	probes_quiet();
	err = kernel_facts_read(&facts, e);
	if (err)
		return err;
	c->self = (uint32_t)getpid();
	c->flush_seq = facts.flush_seq;
	c->bio_list_valid = facts.bio_list_valid;
	c->cgroup_subsys = -1;
	c->kernel_stacks = r->options.kernel_stacks;
	c->unwind = !r->options.frame_pointers;
	c->follow = r->options.follow;
	c->by_cgroup = f->n_cgroup > 0;
	c->n_cgroups = f->n_cgroup;
	for (unsigned i = 0; i < f->n_cgroup; i++) {
		c->cgroups[i].id = f->cgroup[i];
		c->cgroups[i].subsys = -1;
		if (f->cgroup_v1[i] && kernel_facts_subsys(f->controller[i], &c->cgroups[i].subsys))
			return error_set(e, -ENOENT, "--cgroup: this kernel has no controller %s; name a path of another hierarchy",
					 f->controller[i]);
	}
	o->rate = r->options.rate;
	o->cpu_hz = r->options.cpu_hz;
	o->queue_first = facts.queue_first;
	o->filter = f;
	o->command = r->options.command;
	return 0;
}

static void add_reason(struct recorder *r, const char *text)
{
	size_t len = strlen(r->reason);

	snprintf(r->reason + len, sizeof(r->reason) - len, "%s%.200s", len ? "; " : "", text);
}

// The first backend that really attaches, best first; why the better ones did not.
static int choose_backend(struct recorder *r, const struct probes_options *o, struct error *e)
{
	static const enum backend order[] = { BACKEND_FENTRY, BACKEND_KPROBE, BACKEND_TRACEPOINT };
	enum backend only = r->options.backend;
	int err = -EOPNOTSUPP;

	for (unsigned i = 0; i < 3; i++) {
		if (only != BACKEND_AUTO && only != order[i])
			continue;
		r->backend = order[i];
		err = probes_new(order[i], o, &r->probes, e);
		if (!err && *probes_note(r->probes))
			add_reason(r, probes_note(r->probes));
		if (!err)
			return 0;
		if (order[i] != BACKEND_TRACEPOINT)
			add_reason(r, e->text);
	}
	return err;
}

static int make_unwinder(struct recorder *r, struct error *e)
{
	struct unwinder_options o = { 0 };

	if (r->options.frame_pointers)
		return 0;
	o.arenas = bpf_map__fd(probes_map(r->probes, "unwind_arenas"));
	o.rules = bpf_map__fd(probes_map(r->probes, "unwind_rules"));
	o.procs = bpf_map__fd(probes_map(r->probes, "unwind_procs"));
	return unwinder_new(&o, &r->unwinder, e);
}

static int make_parts(struct recorder *r, struct error *e)
{
	struct symbolizer_options so = { 0 };
	struct procs_options po = { 0 };
	struct error ignored = { 0 };

	r->stacks = stacks_new(STACKS_MAX);
	r->aggregate = aggregate_new(ROWS_MAX);
	r->symbolizer = symbolizer_new(&so);
	r->devices = devices_new(NULL, e);
	if (!r->stacks || !r->aggregate || !r->symbolizer || !r->devices)
		return error_set(e, -ENOMEM, "no memory for a recording; free some and try again");
	po.symbolizer = r->symbolizer;
	r->procs = procs_new(&po, &ignored);
	if (!r->procs)
		return error_set(e, -ENOMEM, "no memory for the table of processes; free some and try again");
	symbolizer_load_kernel(r->symbolizer, "/proc/kallsyms");
	return make_unwinder(r, e);
}

int recorder_new(const struct recorder_options *options, struct recorder **ret, struct error *e)
{
	struct recorder *r = calloc(1, sizeof(*r));
	struct probes_options po = { 0 };
	char host[65] = "";
	int err;

	if (!r)
		return error_set(e, -ENOMEM, "no memory for a recording; free some and try again");
	r->options = *options;
	if (!options->node && gethostname(host, sizeof(host) - 1))
		host[0] = 0;
	hostinfo_node_name(options->node ? options->node : host, r->node, sizeof(r->node));
	for (unsigned i = 0; i < RECORD_SLOTS; i++)
		r->slot_disk[i] = AGGREGATE_NO_DISK;
	err = configure(r, &po, e);
	if (!err)
		err = choose_backend(r, &po, e);
	if (!err)
		err = make_parts(r, e);
	if (err)
		goto fail;
	r->ring = ring_buffer__new(bpf_map__fd(probes_map(r->probes, "ring")), on_record, r, NULL);
	if (!r->ring) {
		err = error_set(e, -errno, "cannot map the ring of records: %s", strerror(errno));
		goto fail;
	}
	*ret = r;
	return 0;
fail:
	recorder_free(r);
	return err;
}

void recorder_free(struct recorder *r)
{
	if (!r)
		return;
	ring_buffer__free(r->ring);
	unwinder_free(r->unwinder);
	probes_free(r->probes);
	procs_free(r->procs);
	symbolizer_free(r->symbolizer);
	devices_free(r->devices);
	stacks_free(r->stacks);
	aggregate_free(r->aggregate);
	rows_free(r->rows);
	io_snapshot_free(r->before);
	io_snapshot_free(r->after);
	free(r);
}

const char *recorder_backend(const struct recorder *r)
{
	return backend_name(r->backend);
}

const char *recorder_backend_reason(const struct recorder *r)
{
	return r->reason;
}

static struct io_snapshot *snapshot(const struct recorder *r)
{
	struct io_snapshot_options o = { .pid = r->options.filter.pid, .n_pid = r->options.filter.n_pid };

	if (r->options.follow) {
		o.pid = &r->options.command;
		o.n_pid = 1;
	}
	return io_snapshot_new(&o);
}

int recorder_start(struct recorder *r, struct error *e)
{
	kernel_maps_lower(r);
	r->before = snapshot(r);
	r->start_real = clock_realtime();
	r->start = clock_monotonic();
	r->housekeeping = r->start + HOUSEKEEPING_NS;
	r->steered = r->start;
	if (!r->before || aggregate_begin(r->aggregate, 0, r->start))
		return error_set(e, -ENOMEM, "no memory for a recording; free some and try again");
	if (r->unwinder) {
		procs_touch(r->procs, getpid(), r->start);
		unwinder_warm(r->unwinder, r->procs, getpid(), "libc.so.6");
	}
	probes_activate(r->probes);
	return 0;
}

int recorder_poll(struct recorder *r, int timeout_ms)
{
	int err;

	procs_poll(r->procs);
	err = ring_buffer__poll(r->ring, timeout_ms);
	// The programs wake nobody while there is little in the ring: what there is, is taken at every call.
	if (err >= 0)
		err = ring_buffer__consume(r->ring);
	if (r->record_error)
		return r->record_error;
	if (err < 0)
		return err;
	kernel_maps_steer(r, clock_monotonic());
	if (r->unwinder)
		unwinder_poll(r->unwinder, r->procs);
	if (clock_monotonic() < r->housekeeping)
		return 0;
	r->housekeeping = clock_monotonic() + HOUSEKEEPING_NS;
	devices_refresh(r->devices);
	kernel_maps_lower(r);
	return in_flight_housekeep(r);
}

static int charge_last(struct recorder *r, uint64_t address, const struct in_flight *e, void *context)
{
	(void)context;
	if (in_flight_ended(r, address, e))
		return r->record_error;
	return aggregate_in_flight_last(r->aggregate, e, kernel_maps_disk(r, e->slot), r->stop);
}

static int charge_cut(struct recorder *r, uint64_t address, const struct in_flight *e, void *context)
{
	(void)context;
	if (in_flight_ended(r, address, e))
		return r->record_error;
	return aggregate_in_flight(r->aggregate, e, kernel_maps_disk(r, e->slot));
}

static int drain(struct recorder *r)
{
	int err = ring_buffer__consume(r->ring);

	return err < 0 ? err : r->record_error;
}

int recorder_stop(struct recorder *r, struct error *e)
{
	uint32_t window = probes_state(r->probes)->window;
	int err;

	r->stop = clock_monotonic();
	probes_deactivate(r->probes);
	procs_poll(r->procs);
	r->after = snapshot(r);
	err = drain(r);
	if (!err)
		err = in_flight_each(r, charge_last, NULL);
	if (!err) {
		r->rows = aggregate_take(r->aggregate);
		err = r->rows ? kernel_maps_counters(r, window, r->rows) : -ENOMEM;
	}
	if (!err)
		err = rows_scale(r->rows);
	if (!err)
		err = kernel_maps_totals(r);
	recorder_sum_losses(r);
	return err ? error_set(e, err, "cannot read what the kernel recorded: %s", strerror(-err)) : 0;
}

int recorder_window(struct recorder *r, struct buf *ret_gz, struct error *e)
{
	struct record_state *state = probes_state(r->probes);
	uint64_t end = clock_monotonic(), real = clock_realtime();
	const struct rows_info *info;
	struct rows *rows = NULL;
	uint32_t window;
	int err;

	// Submissions from now on are the next window's; programs that began before have ended after the grace.
	window = __atomic_fetch_add(&state->window, 1, __ATOMIC_SEQ_CST);
	probes_grace();
	procs_poll(r->procs);
	err = aggregate_cut(r->aggregate, end);
	if (err)
		return error_set(e, err, "no memory for another window; free some and try again");
	err = drain(r);
	if (!err)
		err = in_flight_each(r, charge_cut, NULL);
	if (!err)
		err = drain(r);
	rows = aggregate_take(r->aggregate);
	if (!err)
		err = rows ? kernel_maps_counters(r, window, rows) : -ENOMEM;
	if (!err)
		err = rows_scale(rows);
	if (!err)
		err = kernel_maps_totals(r);
	recorder_sum_losses(r);
	if (!err) {
		info = rows_get_info(rows);
		err = profile_make(r, rows, real - (end - info->start), end - info->start, ret_gz);
	}
	rows_free(rows);
	return err ? error_set(e, err, "cannot end the window: %s", strerror(-err)) : 0;
}

int recorder_profile(struct recorder *r, struct buf *ret_gz, struct error *e)
{
	int err = profile_make(r, r->rows, r->start_real, r->stop - r->start, ret_gz);

	return err ? error_set(e, err, "cannot make the profile: %s", strerror(-err)) : 0;
}

int recorder_try_backend(enum backend backend, struct error *e)
{
	struct recorder_options o = { .backend = backend, .rate = 1000 };
	struct recorder r = { .options = o };
	struct probes_options po = { 0 };
	struct probes *p;
	int err = configure(&r, &po, e);

	if (!err)
		err = probes_new(backend, &po, &p, e);
	if (!err)
		probes_free(p);
	return err;
}
