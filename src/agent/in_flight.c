// SPDX-License-Identifier: Apache-2.0
// The map of bios in flight as user space sees it.
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/recorder_internal.h"
#include "common/clock.h"

#define BATCH 256 // reading in large batches makes the kernel skip programs on this CPU meanwhile
#define TOO_OLD_NS 3600000000000ull
#define LOOK_AGAIN_NS 1000000000ull // younger entries are left to the hooks

struct batch {
	uint64_t *keys;
	struct in_flight *values;
	uint32_t size;
};

static int batch_grow(struct batch *b, uint32_t size)
{
	uint64_t *keys = realloc(b->keys, size * sizeof(*keys));
	struct in_flight *values;

	if (!keys)
		return -ENOMEM;
	b->keys = keys;
	values = realloc(b->values, size * sizeof(*values));
	if (!values)
		return -ENOMEM;
	b->values = values;
	b->size = size;
	return 0;
}

int in_flight_each(struct recorder *r, in_flight_fn fn, void *context)
{
	int map = bpf_map__fd(probes_map(r->probes, "in_flight")), err;
	uint64_t position = 0; // the kernel's own; a bucket number for hashes
	bool first = true, end = false;
	struct batch b = { 0 };

	err = batch_grow(&b, BATCH);
	while (!err && !end) {
		uint32_t n = b.size;

		err = bpf_map_lookup_batch(map, first ? NULL : &position, &position, b.keys, b.values, &n, NULL);
		if (err == -ENOSPC) { // one bucket holds more than the batch
			err = batch_grow(&b, b.size * 2);
			continue;
		}
		end = err == -ENOENT;
		if (end)
			err = 0;
		for (uint32_t i = 0; !err && i < n; i++)
			err = fn(r, b.keys[i], &b.values[i], context);
		first = false;
	}
	free(b.keys);
	free(b.values);
	return err;
}

static unsigned filter_index(uint64_t address)
{
	// as filter_of in core.bpf.h
	return (unsigned)(((address >> 3) * 0x9e3779b97f4a7c15ull) >> (64 - RECORD_FILTER_BITS));
}

bool in_flight_take_out(struct recorder *r, uint64_t address, const struct in_flight *e)
{
	struct filter_counter *f = &probes_state(r->probes)->filter[filter_index(address)];
	int map = bpf_map__fd(probes_map(r->probes, "in_flight"));
	struct in_flight now;

	if (bpf_map_lookup_elem(map, &address, &now) || now.submit != e->submit || now.tid != e->tid ||
	    bpf_map_delete_elem(map, &address))
		return false;
	__atomic_fetch_add(&f->out, 1, __ATOMIC_SEQ_CST);
	return true;
}

// Of an end that no hook saw; time 0 when nobody knows it.
static void tell_watch(struct recorder *r, uint64_t address, const struct in_flight *e, uint64_t time)
{
	struct end_rec end = { .type = TIMELINE_END, .time = time, .address = address, .submit = e->submit, .reason = END_UNSEEN };

	if (r->options.timeline && r->options.watch)
		r->options.watch(r->options.watch_context, &end, sizeof(end));
}

bool in_flight_ended(struct recorder *r, uint64_t address, const struct in_flight *e)
{
	struct bio_rec rec = { .type = RECORD_BIO, .end_reason = END_UNSEEN, .end = e->last, .bio = *e };
	int err;

	if (probes_check(r->probes, address, e) != BIO_ENDED)
		return false;
	if (!in_flight_take_out(r, address, e))
		return true;
	r->unseen += !e->last;
	tell_watch(r, address, e, e->last);
	err = intake_take(r, &rec, kernel_maps_disk(r, e->slot));
	if (err)
		r->record_error = err;
	return true;
}

struct sweep {
	struct filter_counter *before;
	uint32_t *live; // entries by counter
	uint64_t now;
};

// Who it is of is settled now if its process has ended: nobody will know it later.
static int remember(struct recorder *r, const struct in_flight *e)
{
	struct row_who who;
	int err;

	resolver_touch(r->resolver, e);
	if (!aggregate_known(r->aggregate, e) && (e->kind & TASK_KTHREAD || procs_is_alive(r->procs, (pid_t)e->tgid)))
		return 0;
	err = intake_who(r, e, &who);
	return err ? err : aggregate_remember(r->aggregate, e, &who);
}

// Entries older than an hour never complete.
static int sweep_entry(struct recorder *r, uint64_t address, const struct in_flight *e, void *context)
{
	struct sweep *s = context;

	uint64_t age = s->now > e->submit ? s->now - e->submit : 0;

	if (age > LOOK_AGAIN_NS && in_flight_ended(r, address, e))
		return r->record_error;
	if (age > TOO_OLD_NS && in_flight_take_out(r, address, e)) {
		r->losses[LOSS_NEVER_COMPLETED]++;
		tell_watch(r, address, e, 0);
		return 0;
	}
	s->live[filter_index(address)]++;
	return remember(r, e);
}

// Evictions of the LRU map are silent: their addresses stay counted as if they were in it. A counter that neither rose nor
// fell around the scan had no insert and no delete meanwhile (both its numbers only grow), so what it counts above the
// entries that were found was evicted. The graces make sure that a program between its counter and the map has ended.
static void give_back(struct recorder *r, const struct sweep *s)
{
	struct record_state *state = probes_state(r->probes);

	for (unsigned i = 0; i < 1u << RECORD_FILTER_BITS; i++) {
		struct filter_counter now = state->filter[i];
		uint32_t counted = now.in - now.out;

		if (now.in != s->before[i].in || now.out != s->before[i].out || counted <= s->live[i])
			continue;
		__atomic_fetch_add(&state->filter[i].out, counted - s->live[i], __ATOMIC_SEQ_CST);
		r->losses[LOSS_EVICTED] += counted - s->live[i];
	}
}

int in_flight_housekeep(struct recorder *r)
{
	struct sweep s = { .now = clock_monotonic() };
	size_t n = 1u << RECORD_FILTER_BITS;
	int err = -ENOMEM;

	s.before = calloc(n, sizeof(*s.before));
	s.live = calloc(n, sizeof(*s.live));
	if (!s.before || !s.live)
		goto out;
	memcpy(s.before, probes_state(r->probes)->filter, n * sizeof(*s.before));
	probes_grace();
	err = in_flight_each(r, sweep_entry, &s);
	if (err)
		goto out;
	probes_grace();
	give_back(r, &s);
out:
	free(s.before);
	free(s.live);
	return err;
}
