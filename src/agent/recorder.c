// SPDX-License-Identifier: Apache-2.0
#include "agent/recorder.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/hostinfo.h"
#include "agent/recorder_internal.h"
#include "common/clock.h"

#define ROWS_MAX 200000
#define SECOND_NS 1000000000ull
#define HOUSEKEEPING_NS (10 * SECOND_NS)
#define SWEEP_TURNS 3 // of housekeeping

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
	c->hold_cpu = facts.hold_cpu;
	c->async_request = facts.async_request;
	c->kernel_stacks = r->options.kernel_stacks;
	c->unwind = !r->options.frame_pointers;
	c->follow = r->options.follow;
	c->by_cgroup = f->n_cgroup > f->n_exclude_cgroup;
	c->excludes = f->n_exclude_cgroup ? EXCLUDE_CGROUP : 0;
	c->n_cgroups = f->n_cgroup;
	for (unsigned i = 0; i < f->n_cgroup; i++) {
		c->cgroups[i].id = f->cgroup[i];
		c->cgroups[i].exclude = f->cgroup_exclude[i];
		c->cgroups[i].subsys = -1;
		if (f->cgroup_v1[i] && kernel_facts_subsys(f->controller[i], &c->cgroups[i].subsys))
			return error_set(e, -ENOENT, "--cgroup: this kernel has no controller %s; name a path of another hierarchy",
					 f->controller[i]);
	}
	o->rate = r->options.rate;
	o->cpu_hz = r->options.cpu_hz;
	o->ring = (uint32_t)r->options.ring;
	o->queue_first = facts.queue_first;
	o->issue_queue_first = facts.issue_queue_first;
	o->switch_state = facts.switch_state;
	o->timeline = r->options.timeline;
	o->timeline_stacks = r->options.timeline_stacks;
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
	enum backend only = r->options.timeline ? BACKEND_TRACEPOINT : r->options.backend;
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

// Of the budget too, where there is one: no more than without one, and enough for the C library and a program.
static size_t table_memory(size_t memory)
{
	static const size_t least = 4 << 20, most = 32 << 20;

	return memory / 4 < least ? least : memory / 4 > most ? most : memory / 4;
}

static int make_unwinder(struct recorder *r, struct error *e)
{
	struct unwinder_options o = { .memory = r->options.memory ? table_memory(r->options.memory) : 0 };

	if (r->options.frame_pointers)
		return 0;
	o.arenas = bpf_map__fd(probes_map(r->probes, "unwind_arenas"));
	o.rules = bpf_map__fd(probes_map(r->probes, "unwind_rules"));
	o.procs = bpf_map__fd(probes_map(r->probes, "unwind_procs"));
	return unwinder_new(&o, &r->unwinder, e);
}

// What the budget is spent on beside unwind tables. Rows, the heap's own and what is in work come on top.
struct shares {
	size_t symbols, procs, perf_maps, resolved, stacks;
};

static struct shares shares_of(size_t memory)
{
	static const size_t mib = 1 << 20;

	if (!memory)
		return (struct shares){ .symbols = 128 * mib, .procs = 64 * mib, .perf_maps = 32 * mib,
					.resolved = 48 * mib, .stacks = 16 * mib };
	return (struct shares){ .symbols = memory / 4, .procs = memory / 6, .perf_maps = memory / 12,
				.resolved = memory / 6, .stacks = memory / 12 };
}

static bool root_has(const struct recorder *r, const char *label)
{
	const char *at = r->options.root;
	size_t len = strlen(label);

	while (at && *at) {
		if (!strncmp(at, label, len) && (!at[len] || at[len] == ','))
			return true;
		at += strcspn(at, ",");
		at += *at == ',';
	}
	return false;
}

// Rows are told apart by what will be shown, and by nothing else.
static int make_tables(struct recorder *r, const struct shares *shares)
{
	enum label_set set = r->options.labels;
	bool all = set == LABELS_ALL, few = set != LABELS_NONE;
	struct aggregate_options ao = {
		.max_rows = ROWS_MAX,
		.latency = few || root_has(r, "latency"),
		.bytes = all || root_has(r, "bytes"),
	};
	struct resolver_options ro = {
		.symbolizer = r->symbolizer,
		.procs = r->procs,
		.memory = shares->resolved,
		.comm = all || set == LABELS_FEW_COMM || root_has(r, "comm"),
		.pid = all || root_has(r, "pid"),
	};

	r->stacks = stacks_new(shares->stacks, intake_forget_stack, r);
	r->aggregate = aggregate_new(&ao);
	ro.stacks = r->stacks;
	if (!r->stacks || !r->aggregate)
		return -ENOMEM;
	r->resolver = resolver_new(&ro);
	return r->resolver ? 0 : -ENOMEM;
}

static int make_parts(struct recorder *r, struct error *e)
{
	struct shares shares = shares_of(r->options.memory);
	struct symbolizer_options so = { .memory = shares.symbols, .kernel = "/proc/kallsyms" };
	struct procs_options po = { .memory = shares.procs, .perf_maps = shares.perf_maps, .java_attach = r->options.java_attach,
				    .jvm_wake = r->options.jvm_wake };
	struct error ignored = { 0 };

	r->symbolizer = symbolizer_new(&so);
	r->devices = devices_new(NULL, e);
	if (!r->symbolizer || !r->devices)
		return error_set(e, -ENOMEM, "no memory for a recording; free some and try again");
	po.symbolizer = r->symbolizer;
	r->procs = procs_new(&po, &ignored);
	if (!r->procs)
		return error_set(e, -ENOMEM, "no memory for the table of processes; free some and try again");
	if (make_tables(r, &shares))
		return error_set(e, -ENOMEM, "no memory for a recording; free some and try again");
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
	r->ring = ring_buffer__new(bpf_map__fd(probes_map(r->probes, "ring")), intake_record, r, NULL);
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
	window_free(r->last);
	resolver_free(r->resolver);
	procs_free(r->procs);
	symbolizer_free(r->symbolizer);
	devices_free(r->devices);
	stacks_free(r->stacks);
	aggregate_free(r->aggregate);
	free(r->pending);
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
	// Takes a while; the recording has not begun until the probes are active.
	if (r->unwinder) {
		procs_touch(r->procs, getpid(), clock_monotonic());
		unwinder_warm(r->unwinder, r->procs, getpid(), "libc.so.6");
	}
	r->before = snapshot(r);
	r->start_real = clock_realtime();
	r->start = clock_monotonic();
	r->housekeeping = r->start + HOUSEKEEPING_NS;
	r->second = r->start + SECOND_NS;
	r->steered = r->start;
	if (!r->before || aggregate_begin(r->aggregate, 0, r->start))
		return error_set(e, -ENOMEM, "no memory for a recording; free some and try again");
	probes_activate(r->probes);
	return 0;
}

// What was freed between things that stay, also by the thread that compiles tables.
static void give_memory_back(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

// Everything of processes that ended by then has come in, or is in flight and was seen by the scan.
static int housekeep(struct recorder *r)
{
	uint64_t now = clock_monotonic();
	int err;

	devices_refresh(r->devices);
	kernel_maps_lower(r);
	procs_poll(r->procs);
	err = intake_drain(r);
	aggregate_scan(r->aggregate);
	if (!err)
		err = kernel_maps_renamed(r);
	if (!err)
		err = in_flight_housekeep(r);
	if (!err)
		err = intake_drain(r);
	if (err)
		return err;
	procs_forget(r->procs, now - SECOND_NS);
	stacks_turn(r->stacks);
	resolver_turn(r->resolver);
	if (++r->turns % SWEEP_TURNS)
		return 0;
	intake_sweep(r);
	give_memory_back();
	return 0;
}

static bool is_gone(uint32_t tgid, void *context)
{
	struct recorder *r = context;

	return !procs_is_alive(r->procs, (pid_t)tgid);
}

int recorder_poll(struct recorder *r, int timeout_ms)
{
	uint64_t now;
	int err;

	procs_poll(r->procs);
	err = intake_poll(r, timeout_ms);
	if (err < 0)
		return err;
	now = clock_monotonic();
	kernel_maps_steer(r, now);
	if (r->unwinder)
		unwinder_poll(r->unwinder, r->procs);
	r->pids_folded += aggregate_fold_pids(r->aggregate, is_gone, r);
	if (resolver_is_full(r->resolver))
		intake_sweep(r);
	if (now >= r->second) {
		r->second = now + SECOND_NS;
		symbolizer_close_idle(r->symbolizer);
	}
	if (now < r->housekeeping)
		return 0;
	r->housekeeping = now + HOUSEKEEPING_NS;
	return housekeep(r);
}

static int charge_last(struct recorder *r, uint64_t address, const struct in_flight *e, void *context)
{
	struct row_who who;
	int err;

	(void)context;
	if (in_flight_ended(r, address, e))
		return r->record_error;
	err = intake_who(r, e, &who);
	return err ? err : aggregate_in_flight_last(r->aggregate, e, &who, kernel_maps_disk(r, e->slot), r->stop);
}

int recorder_stop(struct recorder *r, struct error *e)
{
	uint32_t window = probes_state(r->probes)->window;
	uint64_t real = clock_realtime();
	int err;

	r->stop = clock_monotonic();
	probes_deactivate(r->probes);
	procs_poll(r->procs);
	r->after = snapshot(r);
	err = intake_drain(r);
	if (!err)
		err = in_flight_each(r, charge_last, NULL);
	err = window_take(r, window, r->stop, real, err, &r->last);
	return err ? error_set(e, err, "cannot read what the kernel recorded: %s", strerror(-err)) : 0;
}

int recorder_timeline_losses(struct recorder *r, uint64_t ret[TIMELINE_LOSSES])
{
	return probes_timeline_losses(r->probes, ret);
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
