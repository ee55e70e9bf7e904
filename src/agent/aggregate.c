// SPDX-License-Identifier: Apache-2.0
#include "agent/aggregate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes(key, len, 0))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "agent/rows.h"

// A bio in flight that a scan has seen.
struct carried {
	uint64_t submit;
	uint32_t tid;
	uint32_t scan; // the last one that saw it
	uint32_t until; // the last window that it was charged to the end of, if it was
	bool charged;  // with its part so far, by a cut
	struct row_who who;
	UT_hash_handle hh;
};

struct aggregate {
	struct rows *current, *ended;
	struct carried *carried;
	struct aggregate_options options;
	uint64_t rows_full;
	unsigned fold_at; // rows beyond which process ids are folded
	uint32_t scan;
};

#define CARRIED_KEY (offsetof(struct carried, scan) - offsetof(struct carried, submit))

struct aggregate *aggregate_new(const struct aggregate_options *options)
{
	struct aggregate *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->options = *options;
	a->fold_at = options->max_rows / 2;
	return a;
}

void aggregate_free(struct aggregate *a)
{
	struct carried *c, *next;

	if (!a)
		return;
	HASH_ITER(hh, a->carried, c, next) {
		HASH_DEL(a->carried, c);
		free(c);
	}
	rows_free(a->current);
	rows_free(a->ended);
	free(a);
}

int aggregate_begin(struct aggregate *a, uint32_t window, uint64_t start)
{
	rows_free(a->current);
	a->current = rows_new(window, start);
	return a->current ? 0 : -ENOMEM;
}

struct rows *aggregate_current(struct aggregate *a)
{
	return a->current;
}

uint64_t aggregate_rows_full(const struct aggregate *a)
{
	return a->rows_full;
}

uint64_t latency_class(uint64_t ns)
{
	uint64_t base = 1000;

	if (ns < base)
		return 0;
	while (ns / base >= 10)
		base *= 10;
	return ns / base >= 5 ? base * 5 : ns / base >= 2 ? base * 2 : base;
}

uint32_t bytes_class(uint32_t bytes)
{
	return bytes ? 1u << (31 - __builtin_clz(bytes)) : 0;
}

static void key_of(const struct aggregate *a, struct row_key *k, const struct in_flight *e, const struct row_who *who,
		   uint16_t disk, uint64_t latency)
{
	memset(k, 0, sizeof(*k));
	k->who = *who;
	k->disk = disk;
	k->op = e->op < OP_CLASSES ? e->op : OP_OTHER;
	if (a->options.latency)
		k->latency = latency_class(latency);
	if (a->options.bytes)
		k->bytes = bytes_class(e->size);
}

// Adds one part of a bio to the rows of a window; first: its operation and its bytes too.
static int charge(struct aggregate *a, struct rows *rows, struct row_key *key, const struct in_flight *e, uint64_t time,
		  bool first)
{
	double weight = (double)e->weight / RECORD_WEIGHT_ONE;
	bool folded;
	struct row *row;

	if (!rows)
		return 0;
	row = rows_find_or_add(rows, key, a->options.max_rows, &folded);
	if (!row)
		return -ENOMEM;
	a->rows_full += folded;
	row->time_ns += weight * (double)time;
	row->samples += first;
	if (first)
		rows_went(rows, key->disk, key->op, e->submit, weight, 0);
	rows_went(rows, key->disk, key->op, e->submit + key->latency, 0, weight * (double)time);
	if (first) {
		row->ops += weight;
		row->bytes += weight * e->size;
	}
	return 0;
}

static struct carried *find_carried(struct aggregate *a, const struct in_flight *e)
{
	struct carried key = { .submit = e->submit, .tid = e->tid }, *c;

	HASH_FIND(hh, a->carried, &key.submit, CARRIED_KEY, c);
	return c;
}

// The rows of the window that it was submitted in; may be NULL.
static struct rows *rows_of(struct aggregate *a, const struct in_flight *e)
{
	return a->ended && e->window == rows_get_info(a->ended)->window ? a->ended : a->current;
}

static int cpu_record(struct aggregate *a, const struct bio_rec *rec, const struct row_who *who)
{
	struct rows *rows = rows_of(a, &rec->bio);
	struct row_key key;
	struct row *row;
	bool folded;

	if (!rows)
		return 0;
	key_of(a, &key, &rec->bio, who, AGGREGATE_NO_DISK, 0);
	key.cpu = 1;
	key.op = 0;
	key.bytes = 0;
	key.latency = 0;
	row = rows_find_or_add(rows, &key, a->options.max_rows, &folded);
	if (!row)
		return -ENOMEM;
	a->rows_full += folded;
	row->cpu += 1;
	return 0;
}

// Time of [from, to) that lies in the window.
static uint64_t part(const struct rows *rows, uint64_t from, uint64_t to)
{
	const struct rows_info *w = rows_get_info(rows);

	if (from < w->start)
		from = w->start;
	if (w->end && to > w->end)
		to = w->end;
	return to > from ? to - from : 0;
}

int aggregate_record(struct aggregate *a, const struct bio_rec *rec, const struct row_who *who, uint16_t disk)
{
	const struct in_flight *e = &rec->bio;
	uint64_t end = rec->end;
	bool in_ended, carried;
	struct carried *c;
	uint32_t until;
	struct row_key key;
	int err = 0;

	if (rec->type == RECORD_CPU)
		return cpu_record(a, rec, who);
	key_of(a, &key, e, who, disk, end > e->submit ? end - e->submit : 0);
	c = find_carried(a, e);
	carried = c && c->charged;
	until = carried ? c->until : 0;
	if (c) {
		HASH_DEL(a->carried, c);
		free(c);
	}
	if (rec->end_reason == END_AGAIN && !carried) {
		// It will be submitted again: neither an operation nor time.
		if (rows_of(a, e))
			rows_retract(rows_of(a, e), disk, e->op, (double)e->weight / RECORD_WEIGHT_ONE, e->size);
		return 0;
	}
	if (end < e->submit) { // its end was never seen
		end = e->submit;
		if (!carried && rows_of(a, e))
			rows_lost(rows_of(a, e), disk, e->op, (double)e->weight / RECORD_WEIGHT_ONE);
	}
	key.unseen = end == e->submit && rec->end_reason == END_UNSEEN;
	in_ended = a->ended && e->window <= rows_get_info(a->ended)->window;
	if (in_ended && (!carried || until != rows_get_info(a->ended)->window))
		err = charge(a, a->ended, &key, e, part(a->ended, e->submit, end), !carried);
	if (!err && a->current && (!in_ended || end > rows_get_info(a->current)->start))
		err = charge(a, a->current, &key, e, part(a->current, e->submit, end), !in_ended && !carried);
	return err;
}

// A bio that the last scans no longer saw and whose record has not come was evicted, or its record lost.
void aggregate_scan(struct aggregate *a)
{
	struct carried *c, *next;

	a->scan++;
	HASH_ITER(hh, a->carried, c, next) {
		if (c->scan + 2 >= a->scan)
			continue;
		HASH_DEL(a->carried, c);
		free(c);
	}
}

int aggregate_cut(struct aggregate *a, uint64_t end)
{
	struct rows *next = rows_new(rows_get_info(a->current)->window + 1, end);

	if (!next)
		return -ENOMEM;
	rows_free(a->ended);
	a->ended = a->current;
	rows_end(a->ended, end);
	a->current = next;
	aggregate_scan(a);
	return 0;
}

const struct row_who *aggregate_known(struct aggregate *a, const struct in_flight *e)
{
	struct carried *c = a->carried ? find_carried(a, e) : NULL;

	return c ? &c->who : NULL;
}

// The entry of a bio in flight, seen now; NULL without memory.
static struct carried *carry(struct aggregate *a, const struct in_flight *e, const struct row_who *who)
{
	struct carried *c = find_carried(a, e);

	if (c) {
		c->scan = a->scan;
		return c;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->submit = e->submit;
	c->tid = e->tid;
	c->scan = a->scan;
	c->who = *who;
	HASH_ADD(hh, a->carried, submit, CARRIED_KEY, c);
	if (c->hh.tbl)
		return c;
	free(c);
	return NULL;
}

int aggregate_remember(struct aggregate *a, const struct in_flight *e, const struct row_who *who)
{
	return carry(a, e, who) ? 0 : -ENOMEM;
}

int aggregate_in_flight(struct aggregate *a, const struct in_flight *e, const struct row_who *who, uint16_t disk)
{
	const struct rows_info *w = rows_get_info(a->ended);
	struct carried *c;
	struct row_key key;
	int err;

	if (e->window > w->window)
		return 0;
	c = carry(a, e, who);
	if (!c)
		return -ENOMEM;
	if (c->charged && c->until == w->window)
		return 0;
	key_of(a, &key, e, who, disk, w->end > e->submit ? w->end - e->submit : 0);
	err = charge(a, a->ended, &key, e, part(a->ended, e->submit, w->end), !c->charged);
	c->charged = true;
	c->until = w->window;
	return err;
}

int aggregate_in_flight_last(struct aggregate *a, const struct in_flight *e, const struct row_who *who, uint16_t disk,
			     uint64_t now)
{
	struct carried *c = find_carried(a, e);
	struct row_key key;

	key_of(a, &key, e, who, disk, now > e->submit ? now - e->submit : 0);
	key.in_flight = 1;
	return charge(a, a->current, &key, e, part(a->current, e->submit, now), !c || !c->charged);
}

void aggregate_each_who(const struct aggregate *a, aggregate_who_fn fn, void *context)
{
	for (const struct carried *c = a->carried; c; c = c->hh.next)
		fn(&c->who, context);
	if (a->current)
		rows_each_who(a->current, fn, context);
	if (a->ended)
		rows_each_who(a->ended, fn, context);
}

uint64_t aggregate_fold_pids(struct aggregate *a, bool (*gone)(uint32_t tgid, void *context), void *context)
{
	uint64_t samples;
	unsigned left;

	if (!a->current || rows_size(a->current) < a->fold_at)
		return 0;
	samples = rows_fold_pids(a->current, gone, context);
	left = rows_size(a->current);
	// Not at each call where it does not help.
	a->fold_at = left + left / 4 > a->options.max_rows / 2 ? left + left / 4 : a->options.max_rows / 2;
	return samples;
}

struct rows *aggregate_take(struct aggregate *a)
{
	struct rows *r = a->ended;

	if (r) {
		a->ended = NULL;
		return r;
	}
	r = a->current;
	a->current = r ? rows_new(rows_get_info(r)->window + 1, 0) : NULL;
	return r;
}
