// SPDX-License-Identifier: Apache-2.0
#include "request/thread_sums.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "common/text.h"
#include "request/sums.h"

#define INACTIVE_NS 30000000000ull
#define LITTLE_NS 1000000 // of CPU, without any I/O: not worth a record
// Those that live are looked at every few seconds and named every minute: one of which nothing is heard has ended unseen.
#define UNHEARD_NS 300000000000ull

struct one_thread {
	UT_hash_handle hh;
	uint32_t tid, tgid;
	bool ended;
	char comm[REQ_COMM];
	char name[RECORD_NAME];
	struct req_sums base, latest;
	struct req_sums requests; // of what came between, what was its requests'
	uint64_t since, changed, heard;
};

struct thread_sums {
	const struct breakdown_table *metrics;
	unsigned max;
	struct one_thread *all;
	uint64_t serial, dropped;
	uint64_t looked; // when threads were last told of
	uint64_t latest; // the time that was told last
};

struct thread_sums *thread_sums_new(const struct breakdown_table *metrics, unsigned max)
{
	struct thread_sums *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->metrics = metrics;
	t->max = max;
	return t;
}

static void forget(struct thread_sums *t, struct one_thread *one)
{
	HASH_DEL(t->all, one);
	free(one);
}

void thread_sums_free(struct thread_sums *t)
{
	struct one_thread *one, *next;

	if (!t)
		return;
	HASH_ITER(hh, t->all, one, next)
		forget(t, one);
	free(t);
}

static struct one_thread *find(const struct thread_sums *t, uint32_t tid)
{
	struct one_thread *one;

	HASH_FIND(hh, t->all, &tid, sizeof(tid), one);
	return one;
}

static struct one_thread *make(struct thread_sums *t, uint32_t tid)
{
	struct one_thread *one;

	if (HASH_COUNT(t->all) >= t->max) {
		t->dropped++;
		return NULL;
	}
	one = calloc(1, sizeof(*one));
	if (!one) {
		t->dropped++;
		return NULL;
	}
	one->tid = tid;
	one->heard = t->latest;
	HASH_ADD(hh, t->all, tid, sizeof(one->tid), one);
	if (one->hh.tbl)
		return one;
	free(one);
	t->dropped++;
	return NULL;
}

void thread_sums_see(struct thread_sums *t, uint32_t tgid, uint32_t tid, const char *comm, const struct req_sums *sums, uint64_t now)
{
	struct one_thread *one = find(t, tid);

	if (one && one->tgid && one->tgid != tgid) {
		forget(t, one);
		one = NULL;
	}
	if (!one)
		one = make(t, tid);
	if (!one)
		return;
	if (!one->tgid) {
		one->tgid = tgid;
		one->since = one->changed = t->looked ? t->looked : now;
		// All sums begin with the first look of the kernel side, but for these, which are the kernel's own.
		one->base.major_faults = sums->major_faults;
		one->base.minor_faults = sums->minor_faults;
	}
	if (memcmp(&one->latest, sums, sizeof(*sums)))
		one->changed = now;
	one->latest = *sums;
	one->heard = t->latest = now;
	if (*comm)
		text_sanitize(one->comm, sizeof(one->comm), comm, REQ_COMM);
}

void thread_sums_ended(struct thread_sums *t, uint32_t tid)
{
	struct one_thread *one = find(t, tid);

	if (one)
		one->ended = true;
}

// Of a thread that something else than a look tells of; NULL where it finds no room.
static struct one_thread *heard_of(struct thread_sums *t, uint32_t tid)
{
	struct one_thread *one = find(t, tid);

	if (!one)
		one = make(t, tid);
	if (one)
		one->heard = t->latest;
	return one;
}

void thread_sums_name(struct thread_sums *t, uint32_t tid, const char *name)
{
	struct one_thread *one = heard_of(t, tid);

	if (!one)
		return;
	text_sanitize(one->name, sizeof(one->name), name, strlen(name));
}

const char *thread_sums_name_of(const struct thread_sums *t, uint32_t tid)
{
	struct one_thread *one = find(t, tid);

	return one ? one->name : "";
}

void thread_sums_attribute(struct thread_sums *t, uint32_t tid, const struct req_sums *from, const struct req_sums *to)
{
	struct one_thread *one = heard_of(t, tid);

	if (!one)
		return;
	sums_add_between(from, to, &one->requests);
}

// The requests' part may be ahead of the last look at the thread: the rest of it is taken off the next time.
static void take_off(struct breakdown *b, struct breakdown *requests)
{
	for (unsigned i = 0; i < METRIC_BUILTIN; i++) {
		uint64_t part = requests->value[i] < b->value[i] ? requests->value[i] : b->value[i];

		b->value[i] -= part;
	}
}

static bool worth(const struct breakdown *b)
{
	return b->value[METRIC_ONCPU] >= LITTLE_NS || b->value[METRIC_DISK_OPS] || b->value[METRIC_TOTAL_IO_DURATION] >= LITTLE_NS ||
	       b->value[METRIC_FSYNC_OPS] || b->value[METRIC_FDATASYNC_OPS];
}

static void tell(struct thread_sums *t, struct one_thread *one, uint64_t now, thread_sums_fn fn, void *context)
{
	static const struct req_sums none;
	struct request_record *r = calloc(1, sizeof(*r));
	struct breakdown requests = { 0 };

	if (!r) {
		t->dropped++;
		return;
	}
	r->kind = REQUEST_THREAD;
	r->attribution = ATTRIBUTION_THREAD_ONLY;
	r->ended = END_WINDOW;
	r->pid = one->tgid;
	r->tid = one->tid;
	r->start = one->since;
	r->end = now > one->since ? now : one->since;
	r->number = ++t->serial;
	memcpy(r->comm, one->comm, sizeof(one->comm));
	memcpy(r->thread, one->name, sizeof(one->name));
	if (sums_between(&one->base, &one->latest, &r->times)) {
		sums_between(&none, &one->requests, &requests);
		take_off(&r->times, &requests);
	}
	breakdown_set(&r->times, METRIC_DURATION, r->end - r->start);
	breakdown_derive(&r->times);
	if (worth(&r->times))
		fn(context, r);
	free(r);
}

void thread_sums_flush(struct thread_sums *t, bool window_ends, uint64_t now, thread_sums_busy_fn busy, thread_sums_fn fn, void *context)
{
	struct one_thread *one, *next;

	HASH_ITER(hh, t->all, one, next) {
		bool quiet = now > one->changed + INACTIVE_NS && one->changed > one->since;
		bool over = one->ended || (one->heard && now > one->heard + UNHEARD_NS);

		if (!one->heard)
			one->heard = now;
		if (!window_ends && !quiet && !over)
			continue;
		if (!over && (!one->tgid || busy(context, one->tid)))
			continue;
		if (one->tgid)
			tell(t, one, now, fn, context);
		one->base = one->latest;
		one->since = now;
		memset(&one->requests, 0, sizeof(one->requests));
		if (over)
			forget(t, one);
	}
	t->looked = t->latest = now;
}

uint64_t thread_sums_dropped(const struct thread_sums *t)
{
	return t->dropped;
}
