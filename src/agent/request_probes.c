// SPDX-License-Identifier: Apache-2.0
#include "agent/request_probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/kernel_facts.h"
#include "agent/probes.h"
#include "agent/request_probes_internal.h"
#include "request.skel.h"

#define BORN_MAX 256 // children that are let go at once

#define HOOKS_MAX 10
#define BIO_AGE_NS 3600000000000ull

#define TAKEN_MOST 1000000 // records; more than its ring holds

struct request_probes {
	struct bpf_object *object;
	struct bpf_link *links[HOOKS_MAX];
	struct bpf_program *programs[HOOKS_MAX];
	unsigned n;
	struct req_state *state;
	uint64_t stale[REQ_TARGET_BITS / 64]; // bits that stood for nothing at the last look
	struct ring_buffer *ring;
	request_event_fn fn;
	void *context;
	unsigned room; // records that may still be taken in this call
	int targets, threads, connections, bios, pauses;
};

static const struct {
	const char *name, *help;
} losses[REQ_LOSSES] = {
	[REQ_LOSS_RING] = { "ring_full", "events of requests that found no room on their way from the kernel" },
	[REQ_LOSS_THREADS] = { "threads_full", "looks at threads that found no room in the kernel's table" },
	[REQ_LOSS_CONNECTIONS] = { "connections_full", "connections that found no room in the kernel's table" },
	[REQ_LOSS_BIOS] = { "bios_full", "block I/Os of requests that found no room in the kernel's table" },
	[REQ_LOSS_SWITCHES] = { "switches_missed", "times that a thread got its CPU unseen: what it ran is taken from the kernel's own sum" },
	[REQ_LOSS_CHILDREN] = { "children_full", "processes that a followed one began, and that found no room in the kernel's table" },
	[REQ_LOSS_PAYLOAD] = { "text_unreadable", "heads of requests and answers that could not be read from the process" },
};

const char *request_loss_name(enum req_loss cause)
{
	return losses[cause].name;
}

const char *request_loss_help(enum req_loss cause)
{
	return losses[cause].help;
}

struct wishes {
	uint32_t ring;
	const int *plugins;
	unsigned n_plugins;
};

static int take_record(void *context, void *data, size_t size)
{
	struct request_probes *p = context;

	p->fn(p->context, data, size);
	return p->room && --p->room ? 0 : -EAGAIN; // libbpf goes on for as long as there is something
}

static void want(struct request_probes *p, const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(p->object, name);

	bpf_program__set_autoload(program, true);
	p->programs[p->n++] = program;
}

static int configure(struct request_probes *p, const struct kernel_facts *facts, const struct wishes *w, bool faults)
{
	struct bpf_map *map = bpf_object__find_map_by_name(p->object, ".rodata.config");
	struct req_config config = { .flush_seq = facts->flush_seq, .bio_list_valid = facts->bio_list_valid,
				     .hold_cpu = facts->hold_cpu, .faults_seen = faults, .rdonly_cast = facts->rdonly_cast };
	size_t size;
	void *value = map ? (void *)bpf_map__initial_value(map, &size) : NULL;

	if (!value || size < sizeof(config))
		return -EINVAL;
	config.ring_wakes = w->ring / 4;
	config.n_plugins = w->n_plugins;
	request_actions(config.actions);
	memcpy(value, &config, sizeof(config));
	bpf_map__set_max_entries(bpf_object__find_map_by_name(p->object, "ring"), w->ring);
	want(p, "on_sys_enter");
	want(p, "on_sys_exit");
	want(p, "on_sched_switch");
	want(p, "on_exit");
	want(p, "on_fork");
	want(p, facts->queue_first ? "on_queue_bio_queue" : "on_bio_queue");
	want(p, "on_bio_complete");
	want(p, "on_rq_complete");
	if (faults)
		want(p, "on_page_fault");
	return 0;
}

static int map_state(struct request_probes *p)
{
	struct bpf_map *map = bpf_object__find_map_by_name(p->object, ".data.state");
	void *state = map ? mmap(NULL, sizeof(*p->state), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0) : MAP_FAILED;

	if (state == MAP_FAILED)
		return map ? -errno : -EINVAL;
	p->state = state;
	return 0;
}

static int map_fd(struct request_probes *p, const char *name)
{
	return bpf_object__find_map_fd_by_name(p->object, name);
}

static int open_maps(struct request_probes *p, const struct wishes *w)
{
	int err = map_state(p), plugins = map_fd(p, "plugins");

	for (uint32_t i = 0; i < w->n_plugins && !err; i++)
		err = bpf_map_update_elem(plugins, &i, &w->plugins[i], BPF_ANY);

	if (err)
		return err;
	p->targets = map_fd(p, "targets");
	p->threads = map_fd(p, "threads");
	p->connections = map_fd(p, "connections");
	p->bios = map_fd(p, "bios");
	p->pauses = map_fd(p, "pauses");
	p->ring = ring_buffer__new(map_fd(p, "ring"), take_record, p, NULL);
	return p->ring ? 0 : -errno;
}

static int attach(struct request_probes *p, struct error *e)
{
	for (unsigned i = 0; i < p->n; i++) {
		p->links[i] = bpf_program__attach(p->programs[i]);
		if (!p->links[i])
			return error_set(e, -errno, "requests: the kernel refuses to attach %s: %s", bpf_program__name(p->programs[i]),
					 strerror(errno));
	}
	return 0;
}

static int try_new(const struct kernel_facts *facts, const struct wishes *w, bool faults, request_event_fn fn, void *context,
		   struct request_probes **ret, struct error *e)
{
	struct request_probes *p = calloc(1, sizeof(*p));
	const void *elf;
	size_t size;
	int err;

	if (!p)
		return error_set(e, -ENOMEM, "requests: no memory");
	p->fn = fn;
	p->context = context;
	elf = request__elf_bytes(&size);
	p->object = bpf_object__open_mem(elf, size, NULL);
	err = p->object ? configure(p, facts, w, faults) : -errno;
	if (!err)
		err = bpf_object__load(p->object);
	if (!err)
		err = open_maps(p, w);
	if (err)
		error_set(e, err, "requests: the kernel refuses the programs that follow them: %s%s", strerror(-err),
			  geteuid() ? "; run it as root" : "; `blkprof doctor` says what this kernel lacks");
	else
		err = attach(p, e);
	if (err) {
		request_probes_free(p);
		return err;
	}
	*ret = p;
	return 0;
}

int request_probes_new(uint32_t ring, const int *plugins, unsigned n, request_event_fn fn, void *context, struct request_probes **ret, struct error *e)
{
	struct wishes w = { .ring = ring ? ring : 8 << 20, .plugins = plugins, .n_plugins = n };
	struct kernel_facts facts;
	int err = kernel_facts_read(&facts, e);

	if (err)
		return err;
	probes_quiet();
	err = try_new(&facts, &w, true, fn, context, ret, e);
	// It only makes them cheaper.
	if (err && err != -ENOMEM && facts.rdonly_cast) {
		facts.rdonly_cast = false;
		err = try_new(&facts, &w, true, fn, context, ret, e);
	}
	// Machines without a tracepoint of page faults: their time begins when the thread loses its CPU.
	if (err && err != -ENOMEM)
		err = try_new(&facts, &w, false, fn, context, ret, e);
	return err;
}

void request_probes_free(struct request_probes *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->n; i++)
		bpf_link__destroy(p->links[i]);
	ring_buffer__free(p->ring);
	if (p->state)
		munmap(p->state, sizeof(*p->state));
	bpf_object__close(p->object);
	free(p);
}

static uint64_t *bit_word(struct request_probes *p, pid_t tgid)
{
	return &p->state->targets[((uint32_t)tgid / 64) & (REQ_TARGET_BITS / 64 - 1)];
}

int request_probes_add(struct request_probes *p, pid_t tgid, bool children)
{
	uint32_t key = (uint32_t)tgid, value = REQ_TARGET | (children ? REQ_TARGET_CHILDREN : 0);

	if (bpf_map_update_elem(p->targets, &key, &value, BPF_ANY))
		return -errno;
	__atomic_fetch_or(bit_word(p, tgid), 1ull << (key & 63), __ATOMIC_SEQ_CST);
	return 0;
}

static void forget_threads(struct request_probes *p, uint32_t tgid)
{
	uint32_t key, next;
	struct req_thread t;
	bool more = !bpf_map_get_next_key(p->threads, NULL, &next);

	while (more) {
		key = next;
		more = !bpf_map_get_next_key(p->threads, &key, &next);
		if (!bpf_map_lookup_elem(p->threads, &key, &t) && t.tgid == tgid)
			bpf_map_delete_elem(p->threads, &key);
	}
}

void request_probes_remove(struct request_probes *p, pid_t tgid)
{
	uint32_t key = (uint32_t)tgid, next;
	bool shared = false;

	bpf_map_delete_elem(p->targets, &key);
	// The bit may stand for another target.
	for (bool more = !bpf_map_get_next_key(p->targets, NULL, &next); more;) {
		shared |= next % REQ_TARGET_BITS == key % REQ_TARGET_BITS;
		key = next;
		more = !bpf_map_get_next_key(p->targets, &key, &next);
	}
	if (!shared)
		__atomic_fetch_and(bit_word(p, tgid), ~(1ull << ((uint32_t)tgid & 63)), __ATOMIC_SEQ_CST);
	forget_threads(p, (uint32_t)tgid);
}

// Children that ended leave their bits behind. One that has come since the look at the targets is let be.
static void clear_stale(struct request_probes *p, const uint64_t used[REQ_TARGET_BITS / 64])
{
	for (unsigned i = 0; i < REQ_TARGET_BITS / 64; i++) {
		uint64_t stale = __atomic_load_n(&p->state->targets[i], __ATOMIC_RELAXED) & ~used[i];

		if (stale & p->stale[i])
			__atomic_fetch_and(&p->state->targets[i], ~(stale & p->stale[i]), __ATOMIC_SEQ_CST);
		p->stale[i] = stale;
	}
}

// Only behind the look at all of them: one that ends meanwhile sends that back to the begin.
static void mark_met(struct request_probes *p, const uint32_t *met, unsigned n)
{
	const uint32_t value = REQ_TARGET | REQ_TARGET_CHILDREN | REQ_TARGET_BORN | REQ_TARGET_LEFT;

	for (unsigned i = 0; i < n; i++)
		bpf_map_update_elem(p->targets, &met[i], &value, BPF_EXIST);
}

unsigned request_probes_born(struct request_probes *p, request_gone_fn fn, void *context)
{
	uint64_t used[REQ_TARGET_BITS / 64] = { 0 };
	uint32_t key, next, value, left[BORN_MAX], met[BORN_MAX];
	bool more = !bpf_map_get_next_key(p->targets, NULL, &next);
	unsigned n = 0, n_met = 0;

	while (more) {
		key = next;
		more = !bpf_map_get_next_key(p->targets, &key, &next);
		if (bpf_map_lookup_elem(p->targets, &key, &value))
			continue;
		used[key / 64 & (REQ_TARGET_BITS / 64 - 1)] |= 1ull << (key & 63);
		__atomic_fetch_or(bit_word(p, (pid_t)key), 1ull << (key & 63), __ATOMIC_SEQ_CST);
		if (!(value & REQ_TARGET_BORN))
			continue;
		if (!(value & REQ_TARGET_LEFT) && n_met < BORN_MAX)
			met[n_met++] = key;
		else if (value & REQ_TARGET_LEFT && n < BORN_MAX)
			left[n++] = key;
	}
	clear_stale(p, used);
	mark_met(p, met, n_met);
	for (unsigned i = 0; i < n; i++)
		fn(context, (pid_t)left[i]);
	return n;
}

int request_probes_poll(struct request_probes *p, int timeout_ms)
{
	// The kernel side wakes us only when the ring fills: what has come meanwhile is taken in one go.
	int n;

	p->room = TAKEN_MOST;
	n = timeout_ms ? ring_buffer__poll(p->ring, timeout_ms) : 0;
	if (n >= 0)
		n = ring_buffer__consume(p->ring);
	return n < 0 && n != -EAGAIN ? n : 0;
}

void request_probes_ignore(struct request_probes *p, uint64_t connection)
{
	struct req_connection c;

	if (bpf_map_lookup_elem(p->connections, &connection, &c))
		return;
	c.flags |= REQ_CONN_IGNORED;
	bpf_map_update_elem(p->connections, &connection, &c, BPF_EXIST);
}

void request_probes_threads(struct request_probes *p, request_thread_fn fn, void *context)
{
	uint32_t key, next;
	struct req_thread t;

	for (bool more = !bpf_map_get_next_key(p->threads, NULL, &next); more;) {
		key = next;
		more = !bpf_map_get_next_key(p->threads, &key, &next);
		if (!bpf_map_lookup_elem(p->threads, &key, &t))
			fn(context, &t);
	}
}

unsigned request_probes_sweep(struct request_probes *p, uint64_t now, uint64_t max_age)
{
	struct req_connection c;
	struct req_bio b;
	uint64_t key, next;
	unsigned n = 0;

	for (bool more = !bpf_map_get_next_key(p->connections, NULL, &next); more;) {
		key = next;
		more = !bpf_map_get_next_key(p->connections, &key, &next);
		if (!bpf_map_lookup_elem(p->connections, &key, &c) && c.last + max_age < now)
			n += !bpf_map_delete_elem(p->connections, &key);
	}
	for (bool more = !bpf_map_get_next_key(p->bios, NULL, &next); more;) {
		key = next;
		more = !bpf_map_get_next_key(p->bios, &key, &next);
		if (bpf_map_lookup_elem(p->bios, &key, &b) || b.submit + BIO_AGE_NS >= now || bpf_map_delete_elem(p->bios, &key))
			continue;
		__atomic_fetch_sub(&p->state->bios_in_flight, 1, __ATOMIC_RELAXED);
		n++;
	}
	return n;
}

int request_probes_pauses(const struct request_probes *p)
{
	return p->pauses;
}

void request_probes_set_jvms(struct request_probes *p, unsigned n)
{
	p->state->jvms = n;
}

uint64_t request_probes_loss(const struct request_probes *p, enum req_loss cause)
{
	return p->state->losses[cause];
}

uint64_t request_probes_events(const struct request_probes *p)
{
	return p->state->events;
}

static void add_info(const struct request_probes *p, uint64_t *ns, uint64_t *runs, uint64_t *skipped)
{
	*ns = *runs = *skipped = 0;
	for (unsigned i = 0; i < p->n; i++) {
		struct bpf_prog_info info = { 0 };
		uint32_t len = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(p->programs[i]), &info, &len))
			continue;
		*ns += info.run_time_ns;
		*runs += info.run_cnt;
		*skipped += info.recursion_misses;
	}
}

uint64_t request_probes_skipped(const struct request_probes *p)
{
	uint64_t ns, runs, skipped;

	add_info(p, &ns, &runs, &skipped);
	return skipped;
}

void request_probes_cost(const struct request_probes *p, uint64_t *ret_ns, uint64_t *ret_runs)
{
	uint64_t skipped;

	add_info(p, ret_ns, ret_runs, &skipped);
}
