// SPDX-License-Identifier: Apache-2.0
#include "agent/requests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/devices.h"
#include "agent/jvm_quality.h"
#include "agent/request_names.h"
#include "agent/request_pauses.h"
#include "agent/request_plugins.h"
#include "agent/request_probes.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "request/flow.h"
#include "request/storm.h"
#include "request/thread_sums.h"

#define SECOND 1000000000ull
#define SCAN_NS (2 * SECOND)
#define THREADS_NS (5 * SECOND)
#define SWEEP_NS (30 * SECOND)
#define SILENT_NS (900 * SECOND)
#define THREADS_MAX 16384
#define COUNTS (FLOW_COUNTS + REQ_LOSSES + 9)

struct requests {
	struct requests_options options;
	struct breakdown_table metrics;
	struct request_targets *targets;
	struct request_plugins *plugins;
	struct request_names *names; // NULL = not wanted
	struct jvm_quality *quality;
	struct request_probes *probes;
	bool children; // of targets are targets
	struct request_pauses *pauses;
	struct flow *flow;
	struct storm *storm;
	struct thread_sums *threads;
	struct devices *devices;
	uint64_t scanned, looked, swept, window_end, taken, swept_entries;
	struct requests_count counts[COUNTS];
};

static int64_t clock_offset(void)
{
	uint64_t a = clock_monotonic(), real = clock_realtime(), b = clock_monotonic();

	return (int64_t)(real - (a + (b - a) / 2));
}

static void set_quality(struct requests *r, struct request_record *record)
{
	const char *name = jvm_stacks_name(jvm_quality_of(r->quality, (pid_t)record->pid));

	snprintf(record->stack_quality, sizeof(record->stack_quality), "%s", name);
}

static void on_ended(void *context, struct request_record *record)
{
	struct requests *r = context;
	const struct device *d;

	if (record->device_number && r->devices) {
		d = devices_find(r->devices, record->device_number);
		if (d)
			memcpy(record->device, d->name, sizeof(record->device));
	}
	snprintf(record->thread, sizeof(record->thread), "%s", thread_sums_name_of(r->threads, record->tid));
	set_quality(r, record);
	storm_add(r->storm, record);
	record->times.range = NULL;
}

static void on_attributed(void *context, uint32_t tid, const struct req_sums *from, const struct req_sums *to)
{
	struct requests *r = context;

	thread_sums_attribute(r->threads, tid, from, to);
}

static void on_ignore(void *context, uint64_t connection)
{
	struct requests *r = context;

	request_probes_ignore(r->probes, connection);
}

static void on_event(void *context, const void *data, size_t size)
{
	struct requests *r = context;
	struct req_event e;

	if (flow_event(r->flow, data, size) || size < sizeof(e))
		return;
	memcpy(&e.type, data, sizeof(e.type));
	if (e.type != REQ_EXIT)
		return;
	memcpy(&e, data, sizeof(e));
	thread_sums_see(r->threads, e.tgid, e.tid, e.comm, &e.sums, clock_realtime());
	thread_sums_ended(r->threads, e.tid);
	// A child that came and went between two looks at processes.
	if (e.tid == e.tgid && r->children && !request_targets_has(r->targets, (pid_t)e.tgid))
		flow_end(r->flow, e.tgid, e.exit);
}

static void on_target(void *context, pid_t pid, bool came)
{
	struct requests *r = context;

	if (came) {
		// Pauses before its requests, or of the first ones some would be missing unsaid.
		request_pauses_add(r->pauses, pid);
		request_probes_add(r->probes, pid, r->children);
		jvm_quality_ask(r->quality, pid);
		if (r->names)
			request_names_ask(r->names, pid);
		return;
	}
	if (r->names)
		request_names_forget(r->names, pid);
	requests_poll(r, 0);
	request_probes_remove(r->probes, pid);
	request_pauses_remove(r->pauses, pid);
	flow_end(r->flow, (uint32_t)pid, clock_monotonic());
	jvm_quality_forget(r->quality, pid);
}

static void on_child_gone(void *context, pid_t pid)
{
	on_target(context, pid, false);
}

// Without them requests are still worth to be followed.
static unsigned load_plugins(struct requests *r, int maps[REQ_PLUGINS])
{
	const struct requests_options *o = &r->options;
	struct error e = { "" };

	if (!o->plugins || !*o->plugins)
		return 0;
	if (!request_plugins_load(o->plugins, &r->metrics, o->say, o->say_context, &r->plugins, &e))
		return request_plugins_maps(r->plugins, maps);
	o->say(o->say_context, e.text);
	return 0;
}

static int make_parts(struct requests *r, struct error *e)
{
	struct flow_options fo = { .metrics = &r->metrics, .rules = &r->options.params, .trace_header = r->options.trace_header,
				   .ended = on_ended, .attributed = on_attributed, .ignore = on_ignore, .context = r };
	int err = request_targets_new(&r->options.targets, NULL, &r->targets, e), maps[REQ_PLUGINS];
	unsigned n;

	if (err)
		return err;
	r->flow = flow_new(&fo);
	r->storm = storm_new(&r->metrics, r->options.full);
	r->threads = thread_sums_new(&r->metrics, THREADS_MAX);
	r->devices = devices_new(NULL, e);
	r->quality = jvm_quality_new();
	r->names = r->options.java_names ? request_names_new(r->options.jvm_wake) : NULL;
	if (!r->flow || !r->storm || !r->threads)
		return error_set(e, -ENOMEM, "requests: no memory");
	n = load_plugins(r, maps);
	err = request_probes_new(r->options.ring, maps, n, on_event, r, &r->probes, e);
	if (err)
		return err;
	r->pauses = request_pauses_new(r->probes, r->options.say, r->options.say_context);
	return r->pauses ? 0 : error_set(e, -ENOMEM, "requests: no memory");
}

int requests_new(const struct requests_options *options, struct requests **ret, struct error *e)
{
	struct requests *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return error_set(e, -ENOMEM, "requests: no memory");
	r->options = *options;
	if (!r->options.full)
		r->options.full = REQUESTS_FULL;
	if (!r->options.window)
		r->options.window = 10 * SECOND;
	breakdown_table_init(&r->metrics);
	r->children = options->targets.n_comm || options->targets.n_cmdline || options->targets.n_cgroup;
	err = make_parts(r, e);
	if (err) {
		requests_free(r);
		return err;
	}
	r->taken = clock_realtime();
	r->window_end = (r->taken / r->options.window + 1) * r->options.window;
	r->looked = r->swept = clock_monotonic();
	flow_set_clock(r->flow, clock_offset());
	request_targets_scan(r->targets, on_target, r);
	r->scanned = clock_monotonic();
	*ret = r;
	return 0;
}

void requests_free(struct requests *r)
{
	if (!r)
		return;
	request_names_free(r->names);
	request_pauses_free(r->pauses);
	jvm_quality_free(r->quality);
	request_probes_free(r->probes);
	request_plugins_free(r->plugins);
	flow_free(r->flow);
	storm_free(r->storm);
	thread_sums_free(r->threads);
	devices_free(r->devices);
	request_targets_free(r->targets);
	free(r);
}

static void housekeep(struct requests *r, uint64_t now)
{
	flow_set_clock(r->flow, clock_offset());
	if (now - r->scanned >= SCAN_NS) {
		r->scanned = now;
		request_targets_scan(r->targets, on_target, r);
		if (r->children)
			request_probes_born(r->probes, on_child_gone, r);
		request_pauses_look(r->pauses, r->quality);
	}
	if (now - r->swept < SWEEP_NS)
		return;
	r->swept = now;
	r->swept_entries += request_probes_sweep(r->probes, now, SILENT_NS);
	if (r->devices)
		devices_refresh(r->devices);
}

int requests_poll(struct requests *r, int timeout_ms)
{
	int err = request_probes_poll(r->probes, timeout_ms);

	if (timeout_ms)
		housekeep(r, clock_monotonic());
	return err;
}

static void see_thread(void *context, const struct req_thread *t)
{
	struct requests *r = context;

	thread_sums_see(r->threads, t->tgid, t->tid, "", &t->sums, clock_realtime());
}

static void on_name(void *context, uint32_t tid, const char *name)
{
	struct requests *r = context;

	thread_sums_name(r->threads, tid, name);
}

struct take {
	struct requests *r;
	requests_fn fn;
	void *context;
};

static bool busy_for(void *context, uint32_t tid)
{
	struct take *t = context;

	return flow_thread_busy(t->r->flow, tid);
}

// Threads that never touched a connection have told no name.
static void name_thread(struct request_record *record)
{
	char path[64], comm[32];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", record->pid, record->tid);
	if (!file_read_line(path, comm, sizeof(comm)))
		text_sanitize(record->comm, sizeof(record->comm), comm, strlen(comm));
}

static void tell(void *context, const struct request_record *record)
{
	struct request_record named = *record;
	struct take *t = context;

	if (!*named.comm)
		name_thread(&named);
	set_quality(t->r, &named);
	t->fn(t->context, &named);
}

static void take_threads(struct requests *r, struct take *t, uint64_t now)
{
	uint64_t mono = clock_monotonic();
	bool window_ends;

	// A clock that was set back must not make a window of years.
	if (r->window_end > now + r->options.window)
		r->window_end = (now / r->options.window + 1) * r->options.window;
	window_ends = now >= r->window_end;
	if (!window_ends && mono - r->looked < THREADS_NS)
		return;
	r->looked = mono;
	request_probes_threads(r->probes, see_thread, r);
	request_probes_poll(r->probes, 0);
	thread_sums_flush(r->threads, window_ends, now, busy_for, tell, t);
	if (window_ends)
		r->window_end = (now / r->options.window + 1) * r->options.window;
}

void requests_take(struct requests *r, requests_fn fn, void *context)
{
	struct take t = { r, fn, context };
	uint64_t now = clock_realtime();

	if (r->names)
		request_names_take(r->names, on_name, r);
	flow_sweep(r->flow, clock_monotonic());
	take_threads(r, &t, now);
	storm_flush(r->storm, r->taken, now, fn, context);
	r->taken = now;
}

void requests_stop(struct requests *r)
{
	request_probes_poll(r->probes, 0);
	flow_end(r->flow, 0, clock_monotonic());
	r->window_end = 0;
}

const struct breakdown_table *requests_metrics(const struct requests *r)
{
	return &r->metrics;
}

unsigned requests_targets(const struct requests *r)
{
	return request_targets_count(r->targets);
}

static void count(struct requests *r, unsigned *n, const char *name, const char *help, uint64_t value, bool loss)
{
	r->counts[(*n)++] = (struct requests_count){ name, help, value, loss };
}

const struct requests_count *requests_counts(struct requests *r, unsigned *ret_n)
{
	unsigned n = 0;

	for (unsigned i = 0; i < FLOW_COUNTS; i++)
		count(r, &n, flow_count_name(i), flow_count_help(i), flow_count(r->flow, i), i != FLOW_REQUESTS);
	for (unsigned i = 0; i < REQ_LOSSES; i++)
		count(r, &n, request_loss_name(i), request_loss_help(i), request_probes_loss(r->probes, i), i != REQ_LOSS_SWITCHES);
	count(r, &n, "summed", "requests told only as sums of their handler", storm_summed(r->storm), false);
	count(r, &n, "records_dropped", "records dropped without memory", storm_dropped(r->storm) + thread_sums_dropped(r->threads), true);
	count(r, &n, "programs_skipped", "runs of programs that the kernel skipped", request_probes_skipped(r->probes), true);
	count(r, &n, "swept", "connections and block I/Os forgotten after long silence", r->swept_entries, false);
	count(r, &n, "targets_left_out", "processes not followed because they are too many", request_targets_left_out(r->targets), true);
	count(r, &n, "jvms_unseen", "JVMs that do not tell of collections and safepoints", request_pauses_unseen(r->pauses), true);
	count(r, &n, "quality_left_out", "processes whose stack_quality_s is not known because they are too many", jvm_quality_left_out(r->quality), false);
	count(r, &n, "names_left_out", "processes whose threads' Java names are not asked for because they are too many",
	      r->names ? request_names_left_out(r->names) : 0, true);
	count(r, &n, "events", "events that the kernel side told of", request_probes_events(r->probes), false);
	*ret_n = n;
	return r->counts;
}
