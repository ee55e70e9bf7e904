// SPDX-License-Identifier: Apache-2.0
// Windows: cut without a gap, added up, made profiles.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "agent/recorder_internal.h"
#include "agent/rows.h"
#include "agent/view.h"
#include "common/clock.h"

static void sum_rows(const struct recorder *r, const struct rows *rows, struct window_info *info)
{
	for (uint16_t disk = 0; disk < AGGREGATE_DISKS; disk++) {
		for (uint8_t op = 0; op < OP_CLASSES; op++) {
			info->ops[op] += rows_exact_ops(rows, disk, op);
			info->bytes[op] += rows_exact_bytes(rows, disk, op);
		}
	}
	for (unsigned i = 0; i < rows_count(rows); i++) {
		info->time_ns += rows_get(rows, i)->time_ns;
		if (r->options.cpu_hz)
			info->cpu_ns += rows_get(rows, i)->cpu * 1e9 / r->options.cpu_hz;
	}
}

// What the counters that only grow have gained since the last window.
static void sum_counters(struct recorder *r, struct window_info *info)
{
	const struct cpu_state *had = &r->cut_kernel, *now = &r->kernel;

	info->own_ops = now->own_ops - had->own_ops;
	info->second_level_ops = now->second_level_ops - had->second_level_ops;
	info->filtered_ops = now->filtered_ops - had->filtered_ops;
	info->samples = now->samples - had->samples;
	for (unsigned c = 0; c < LOSS_CAUSES; c++)
		info->losses[c] = r->losses[c] > r->cut_losses[c] ? r->losses[c] - r->cut_losses[c] : 0;
	r->cut_kernel = r->kernel;
	memcpy(r->cut_losses, r->losses, sizeof(r->cut_losses));
}

// Takes over the rows when it succeeds. r->kernel and r->losses are of now.
int window_new(struct recorder *r, struct rows *rows, uint64_t start, uint64_t end, uint64_t end_real, struct window **ret)
{
	struct window *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->recorder = r;
	w->rows = rows;
	w->info.start_mono = start;
	w->info.end_mono = end;
	w->info.end = end_real;
	w->info.start = end_real - (end - start);
	sum_rows(r, rows, &w->info);
	sum_counters(r, &w->info);
	*ret = w;
	return 0;
}

int window_take(struct recorder *r, uint32_t window, uint64_t end, uint64_t end_real, int err, struct window **ret)
{
	struct rows *rows = aggregate_take(r->aggregate);

	if (!err)
		err = rows ? kernel_maps_counters(r, window, rows) : -ENOMEM;
	if (!err)
		err = rows_scale(rows);
	if (!err)
		err = kernel_maps_totals(r);
	recorder_sum_losses(r);
	if (!err)
		err = window_new(r, rows, rows_get_info(rows)->start, end, end_real, ret);
	if (err)
		rows_free(rows);
	return err;
}

void window_free(struct window *w)
{
	if (!w)
		return;
	if (w != w->recorder->last)
		DL_DELETE(w->recorder->windows, w);
	rows_free(w->rows);
	free(w);
}

const struct window_info *window_get_info(const struct window *w)
{
	return &w->info;
}

struct window *recorder_last(struct recorder *r)
{
	return r->last;
}

static int charge_cut(struct recorder *r, uint64_t address, const struct in_flight *e, void *context)
{
	struct row_who who;
	int err;

	(void)context;
	if (in_flight_ended(r, address, e))
		return r->record_error;
	err = intake_who(r, e, &who);
	return err ? err : aggregate_in_flight(r->aggregate, e, &who, kernel_maps_disk(r, e->slot));
}

static int cut(struct recorder *r, struct window **ret)
{
	struct record_state *state = probes_state(r->probes);
	uint64_t end = clock_monotonic(), real = clock_realtime();
	uint32_t window;
	int err;

	// Submissions from now on are the next window's; programs that began before have ended after the grace.
	window = __atomic_fetch_add(&state->window, 1, __ATOMIC_SEQ_CST);
	probes_grace();
	procs_poll(r->procs);
	err = aggregate_cut(r->aggregate, end);
	if (err)
		return err;
	err = intake_drain(r);
	if (!err)
		err = in_flight_each(r, charge_cut, NULL);
	if (!err)
		err = intake_drain(r);
	return window_take(r, window, end, real, err, ret);
}

int recorder_cut(struct recorder *r, struct window **ret, struct error *e)
{
	struct window *w;
	int err = cut(r, &w);

	if (err)
		return error_set(e, err, "cannot end the window: %s", strerror(-err));
	DL_APPEND(r->windows, w);
	*ret = w;
	return 0;
}

int window_merge(struct window *into, const struct window *w)
{
	struct window_info *a = &into->info;
	const struct window_info *b = &w->info;
	int err = rows_merge(into->rows, w->rows);

	if (!err)
		err = rows_sort(into->rows);
	if (err)
		return err;
	a->end_mono = b->end_mono;
	a->end = b->end;
	for (unsigned op = 0; op < OP_CLASSES; op++) {
		a->ops[op] += b->ops[op];
		a->bytes[op] += b->bytes[op];
	}
	a->time_ns += b->time_ns;
	a->cpu_ns += b->cpu_ns;
	a->own_ops += b->own_ops;
	a->second_level_ops += b->second_level_ops;
	a->filtered_ops += b->filtered_ops;
	a->samples += b->samples;
	for (unsigned c = 0; c < LOSS_CAUSES; c++)
		a->losses[c] += b->losses[c];
	return 0;
}

// A window of its own that has what w has.
int window_copy(const struct window *w, struct window **ret)
{
	struct window *copy = calloc(1, sizeof(*copy));
	int err = -ENOMEM;

	if (!copy)
		return err;
	*copy = (struct window){ .recorder = w->recorder, .info = w->info };
	copy->rows = rows_new(rows_get_info(w->rows)->window, rows_get_info(w->rows)->start);
	if (copy->rows)
		err = rows_merge(copy->rows, w->rows);
	if (!err)
		err = rows_sort(copy->rows);
	if (err) {
		rows_free(copy->rows);
		free(copy);
		return err;
	}
	DL_APPEND(w->recorder->windows, copy);
	*ret = copy;
	return 0;
}

int window_profile(struct window *w, struct buf *ret_gz, struct error *e)
{
	return window_profile_view(w, NULL, ret_gz, e);
}

int window_profile_view(struct window *w, const struct window_view *v, struct buf *ret_gz, struct error *e)
{
	int err = profile_make(w, 0, v, ret_gz);

	return err ? error_set(e, err, "cannot make the profile: %s", strerror(-err)) : 0;
}

unsigned window_rows(const struct window *w)
{
	return rows_count(w->rows);
}

bool window_get_row(const struct window *w, unsigned i, struct window_row *ret)
{
	const struct row *row = rows_get(w->rows, i);

	if (row->key.cpu)
		return false;
	ret->service = resolver_service(w->recorder->resolver, &row->key);
	ret->device = w->recorder->disks[row->key.disk];
	ret->op = filter_op_name(row->key.op);
	ret->ops = row->ops;
	ret->bytes = row->bytes;
	ret->time_ns = row->time_ns;
	return true;
}

struct service {
	const char *name;
	uint32_t id;
};

static int compare_services(const void *pa, const void *pb)
{
	const struct service *a = pa, *b = pb;

	return strcmp(a->name, b->name);
}

// The services of a window, each once, by name. Owned by the caller; NULL without memory.
static struct service *services_of(const struct window *w, unsigned *ret_n)
{
	unsigned n = rows_count(w->rows), kept = 0;
	struct service *s = calloc(n + 1, sizeof(*s));

	if (!s)
		return NULL;
	for (unsigned i = 0; i < n; i++) {
		const struct row_key *key = &rows_get(w->rows, i)->key;

		s[i].name = resolver_service(w->recorder->resolver, key);
		s[i].id = key->not_sampled ? SERVICE_NOT_SAMPLED : key->who.service;
	}
	if (n)
		qsort(s, n, sizeof(*s), compare_services);
	for (unsigned i = 0; i < n; i++)
		if (!kept || s[kept - 1].id != s[i].id)
			s[kept++] = s[i];
	*ret_n = kept;
	return s;
}

int window_services(struct window *w, window_service_fn fn, void *context, struct error *e)
{
	unsigned n;
	struct service *services = services_of(w, &n);
	int err = services ? 0 : -ENOMEM;

	for (unsigned i = 0; !err && i < n; i++) {
		struct buf gz = { 0 };

		err = profile_make(w, services[i].id, NULL, &gz);
		if (err)
			break;
		err = fn(services[i].name, &gz, context);
		buf_free(&gz);
		if (!err)
			continue;
		free(services);
		return err;
	}
	free(services);
	return err ? error_set(e, err, "cannot make the profiles of services: %s", strerror(-err)) : 0;
}

int recorder_window_services(struct recorder *r, window_service_fn fn, void *context, struct window_info *ret_info,
			     struct error *e)
{
	struct window *w;
	int err = recorder_cut(r, &w, e);

	if (err)
		return err;
	err = window_services(w, fn, context, e);
	if (!err && ret_info)
		*ret_info = w->info;
	window_free(w);
	return err;
}

int recorder_window(struct recorder *r, struct buf *ret_gz, struct error *e)
{
	struct window *w;
	int err = recorder_cut(r, &w, e);

	if (err)
		return err;
	err = window_profile(w, ret_gz, e);
	window_free(w);
	return err;
}

int recorder_profile(struct recorder *r, struct buf *ret_gz, struct error *e)
{
	return window_profile(r->last, ret_gz, e);
}
