// SPDX-License-Identifier: Apache-2.0
// Records from the kernel: resolved soon after they came, while their process is known, and added up.
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "agent/recorder_internal.h"
#include "common/clock.h"

#define PENDING_MAX 65536
#define PENDING_KEPT 1024
#define FEED_NS 3000000u     // the ring is emptied at least so often while stacks are resolved
// A process that is met is met again soon, in code that was just mapped, and its stacks are cut until we answer: resolving,
// which may read symbols for a while, waits so long after the last one, and so long at most.
#define ASKED_NS 60000000u
#define ASKED_MOST_NS 400000000u
#define TAKEN_MOST 65536u
#define DRAIN_ROUNDS (RECORD_RING / 16 / TAKEN_MOST + 1) // whatever the ring held when they began is out then
#define FEED_MOST_NS 1000000000u // but not for ever: the caller waits

int intake_who(struct recorder *r, const struct in_flight *e, struct row_who *ret)
{
	const struct row_who *known = aggregate_known(r->aggregate, e);

	if (!known)
		return resolver_who(r->resolver, e, ret);
	*ret = *known;
	return 0;
}

int intake_take(struct recorder *r, const struct bio_rec *rec, uint16_t disk)
{
	struct row_who who;
	int err = intake_who(r, &rec->bio, &who);

	return err ? err : aggregate_record(r->aggregate, rec, &who, disk);
}

static int pend(struct recorder *r, const struct bio_rec *rec, uint16_t disk)
{
	if (r->n_pending == r->cap_pending) {
		size_t cap = r->cap_pending ? 2 * r->cap_pending : PENDING_KEPT;
		struct pending *p = cap <= PENDING_MAX ? realloc(r->pending, cap * sizeof(*p)) : NULL;

		if (!p)
			return intake_take(r, rec, disk);
		r->pending = p;
		r->cap_pending = cap;
	}
	r->pending[r->n_pending++] = (struct pending){ .rec = *rec, .disk = disk };
	return 0;
}

static int take_or_pend(struct recorder *r, const struct bio_rec *rec, uint16_t disk)
{
	const struct row_who *known = aggregate_known(r->aggregate, &rec->bio);
	struct row_who who;

	if (known)
		who = *known;
	else if (!resolver_known(r->resolver, &rec->bio, &who))
		return pend(r, rec, disk);
	return aggregate_record(r->aggregate, rec, &who, disk);
}

static void see_process(struct recorder *r, pid_t pid, uint64_t time)
{
	procs_touch(r->procs, pid, time);
	if (r->unwinder)
		unwinder_see(r->unwinder, r->procs, pid, time);
}

void recorder_see_process(struct recorder *r, pid_t pid)
{
	procs_poll(r->procs);
	see_process(r, pid, clock_monotonic());
}

int recorder_stack_text(struct recorder *r, const struct in_flight *e, struct buf *to)
{
	const struct frame_stack *stack;
	struct row_who who;
	int err;

	if (!(e->kind & TASK_KTHREAD))
		see_process(r, (pid_t)e->tgid, e->submit);
	err = resolver_who(r->resolver, e, &who);
	stack = err ? NULL : frames_stack_get(resolver_frames(r->resolver), who.stack);
	if (!stack)
		return err ? err : -ENOENT;
	for (unsigned i = 0; i < stack->n; i++)
		for (unsigned line = stack->frames[i]->n_lines; line--;)
			buf_printf(to, "%s%s", to->len ? "\n" : "", stack->frames[i]->lines[line].name);
	return to->error;
}

static void take_record(struct recorder *r, void *data, size_t size)
{
	const struct process_rec *process = data;
	const struct bio_rec *rec = data;
	int err;

	if (size >= sizeof(uint32_t) && r->options.watch)
		r->options.watch(r->options.watch_context, data, size);
	if (size >= sizeof(uint32_t) && rec->type == RECORD_STACK) {
		err = stacks_add(r->stacks, data, size);
		if (err == -ENOMEM && !r->record_error)
			r->record_error = err;
		return;
	}
	if (size >= sizeof(*process) && process->type == RECORD_PROCESS) {
		procs_poll(r->procs); // of the mappings that it lacks
		see_process(r, (pid_t)process->tgid, process->time);
		r->asked = clock_monotonic();
		return;
	}
	if (size < sizeof(*rec) || (rec->type != RECORD_BIO && rec->type != RECORD_CPU))
		return;
	if (!(rec->bio.kind & TASK_KTHREAD))
		see_process(r, (pid_t)rec->bio.tgid, rec->bio.submit);
	err = take_or_pend(r, rec, rec->type == RECORD_CPU ? 0 : kernel_maps_disk(r, rec->bio.slot));
	if (err && !r->record_error)
		r->record_error = err;
}

// libbpf goes on for as long as there is something: a kernel that records faster than we take would keep us there for ever.
int intake_record(void *context, void *data, size_t size)
{
	struct recorder *r = context;

	take_record(r, data, size);
	if (r->room)
		r->room--;
	return r->room ? 0 : -EAGAIN;
}

// Takes what the ring has, or TAKEN_MOST records of it; r->room is 0 when there may be more.
static int take(struct recorder *r, int timeout_ms)
{
	int err;

	r->room = TAKEN_MOST;
	// The programs wake nobody while there is little in the ring: what there is, is taken at every call.
	err = timeout_ms ? ring_buffer__poll(r->ring, timeout_ms) : 0;
	if (err >= 0)
		err = ring_buffer__consume(r->ring);
	return err == -EAGAIN || err > 0 ? 0 : err;
}

// Resolving may read symbols for a while: the ring is not left alone meanwhile.
static int resolve_pending(struct recorder *r)
{
	uint64_t began = clock_monotonic(), fed = began, now;
	int err = 0;

	for (size_t i = 0; !err && i < r->n_pending; i++) {
		struct pending p = r->pending[i]; // which may move

		err = intake_take(r, &p.rec, p.disk);
		now = clock_monotonic();
		if (now - fed < FEED_NS || now - began > FEED_MOST_NS)
			continue;
		take(r, 0);
		fed = now;
	}
	r->n_pending = 0;
	if (r->cap_pending > PENDING_KEPT) {
		free(r->pending);
		r->pending = NULL;
		r->cap_pending = 0;
	}
	return err ? err : r->record_error;
}

int intake_drain(struct recorder *r)
{
	unsigned rounds = 0;
	int err;

	do {
		err = take(r, 0);
	} while (!err && !r->room && ++rounds < DRAIN_ROUNDS);
	return err ? err : resolve_pending(r);
}

static bool may_wait(struct recorder *r)
{
	uint64_t now = clock_monotonic();

	if (!r->n_pending || now - r->asked > ASKED_NS || r->n_pending > PENDING_MAX / 2) {
		r->waiting = 0;
		return false;
	}
	if (!r->waiting)
		r->waiting = now;
	if (now - r->waiting < ASKED_MOST_NS)
		return true;
	r->waiting = 0;
	return false;
}

int intake_poll(struct recorder *r, int timeout_ms)
{
	int err = take(r, r->room ? timeout_ms : 0);

	if (err)
		return err;
	return may_wait(r) ? r->record_error : resolve_pending(r);
}

static void mark_who(const struct row_who *who, void *context)
{
	resolver_mark(context, who);
}

static void mark(struct resolver *resolver, void *context)
{
	struct recorder *r = context;
	struct window *w;

	aggregate_each_who(r->aggregate, mark_who, resolver);
	DL_FOREACH(r->windows, w)
		rows_each_who(w->rows, mark_who, resolver);
	if (r->last)
		rows_each_who(r->last->rows, mark_who, resolver);
}

void intake_sweep(struct recorder *r)
{
	resolver_sweep(r->resolver, mark, r);
}

void intake_forget_stack(uint64_t hash, void *context)
{
	struct recorder *r = context;

	bpf_map_delete_elem(bpf_map__fd(probes_map(r->probes, "stacks_sent")), &hash);
}
