// SPDX-License-Identifier: Apache-2.0
// A window's profiles as a batch (or several, when it is too large for one) in the spool.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "common/clock.h"
#include "common/text.h"

#define PART_BYTES (BATCH_BYTES_MAX - (1u << 20)) // of profiles; the rest is for names and labels
#define LATE_NS 1000000000u
#define JITTER_NS 100000000u // between two readings of the clocks; more is a clock that was set

struct parts {
	struct agent *a;
	struct batch_profile *profiles; // owned, with their names and data
	unsigned n, cap;
	size_t bytes; // of those since first
	unsigned first; // not in the spool yet
	bool renamed;
};

uint64_t agent_next_end(uint64_t now, uint64_t window)
{
	return (now / window + 1) * window;
}

static void parts_free(struct parts *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		free((void *)p->profiles[i].service);
		free((void *)p->profiles[i].data);
	}
	free(p->profiles);
}

// They come sorted, but for those that got another name.
static bool taken(const struct parts *p, const char *name)
{
	for (unsigned i = p->n; i--;) {
		if (!strcmp(p->profiles[i].service, name))
			return true;
		if (!p->renamed)
			return false;
	}
	return false;
}

// A batch has each service once and as text of a bounded length, whatever containers and programs are called: what a
// batch would refuse costs the whole window.
static char *service_name(struct parts *p, const char *service)
{
	char name[BATCH_SERVICE_MAX + 1];
	size_t len = text_sanitize(name, sizeof(name), service, strlen(service));

	if (!len)
		snprintf(name, sizeof(name), "[unknown]");
	for (unsigned i = 1; taken(p, name); i++) {
		len = text_sanitize(name, sizeof(name) - 12, service, strlen(service));
		snprintf(name + len, sizeof(name) - len, "~%u", i);
		p->renamed = true;
	}
	return strdup(name);
}

static int add_profile(const char *service, const struct buf *gz, void *context)
{
	struct parts *p = context;
	struct batch_profile *to;
	void *data;

	if (p->n == p->cap) {
		unsigned cap = p->cap ? 2 * p->cap : 16;

		to = reallocarray(p->profiles, cap, sizeof(*to));
		if (!to)
			return -ENOMEM;
		p->profiles = to;
		p->cap = cap;
	}
	to = &p->profiles[p->n];
	data = malloc(gz->len);
	to->service = service_name(p, service);
	to->data = data;
	to->size = gz->len;
	if (!data || !to->service) {
		free(data);
		free((void *)to->service);
		return -ENOMEM;
	}
	memcpy(data, gz->data, gz->len);
	p->n++;
	return 0;
}

static int spool_part(struct parts *p, unsigned end, uint64_t start_ns, uint64_t end_ns)
{
	const struct config_pairs *pairs = &p->a->config.labels;
	struct batch_label labels[BATCH_LABELS_MAX];
	struct batch b = {
		.kind = BATCH_WINDOW, .start = start_ns, .end = end_ns, .profiles = p->profiles + p->first,
		.n_profiles = end - p->first, .labels = labels, .n_labels = pairs->n,
	};

	for (unsigned i = 0; i < pairs->n; i++)
		labels[i] = (struct batch_label){ .name = pairs->name[i], .value = pairs->value[i] };
	p->first = end;
	p->bytes = 0;
	return spool_add(p->a->spool, &b);
}

// A window without I/O is a batch too: the node was there and did nothing.
static int spool_all(struct parts *p, uint64_t start_ns, uint64_t end_ns)
{
	struct agent_metrics *m = &p->a->metrics;
	int err = 0, last;

	for (unsigned i = 0; i < p->n; i++) {
		if (i > p->first && (p->bytes + p->profiles[i].size > PART_BYTES || i - p->first == BATCH_PROFILES_MAX)) {
			last = spool_part(p, i, start_ns, end_ns); // one that fails is no reason to lose the others
			err = err ? err : last;
		}
		p->bytes += p->profiles[i].size;
		m->profiles++;
		m->profile_bytes += p->profiles[i].size;
	}
	m->windows++;
	last = spool_part(p, p->n, start_ns, end_ns);
	return err ? err : last;
}

static void count(struct agent *a, const struct window_info *info)
{
	struct agent_metrics *m = &a->metrics;

	for (unsigned i = 0; i < OP_CLASSES; i++) {
		m->ops[i] += info->ops[i];
		m->bytes[i] += info->bytes[i];
	}
	for (unsigned i = 0; i < LOSS_CAUSES; i++)
		m->losses[i] += info->losses[i];
	m->samples += info->samples;
	m->own_ops += info->own_ops;
	m->second_level_ops += info->second_level_ops;
	m->filtered_ops += info->filtered_ops;
}

// Windows follow each other on the monotonic clock; so they do in what is sent, however the two clocks were read.
static uint64_t window_start(struct agent *a, const struct window_info *info)
{
	uint64_t apart = info->start > a->ended ? info->start - a->ended : a->ended - info->start;
	uint64_t start = apart < JITTER_NS && a->ended < info->end ? a->ended : info->start;

	a->ended = info->end;
	return start;
}

static uint64_t whole(double value)
{
	return value > 0 ? (uint64_t)llround(value) : 0;
}

// By service, device and operation. For want of memory the window is missing there, and only there.
static void count_io(struct agent *a, const struct window *w)
{
	const struct window_info *info = window_get_info(w);
	unsigned rows = window_rows(w), n = 0;
	struct io_item *items = calloc(rows + 1, sizeof(*items));

	for (unsigned i = 0; items && i < rows; i++) {
		struct window_row row;

		if (!window_get_row(w, i, &row))
			continue;
		items[n++] = (struct io_item){ .service = row.service, .device = row.device, .op = row.op,
					       .amount = { whole(row.ops), whole(row.bytes), whole(row.time_ns) } };
	}
	io_metrics_window(a->io, items, n, (double)(info->end_mono - info->start_mono) / 1e9);
	free(items);
}

static int spool_window(struct agent *a, struct window *w, struct error *e)
{
	const struct window_info *info = window_get_info(w);
	struct parts p = { .a = a };
	int err = window_services(w, add_profile, &p, e);

	if (!err) {
		err = spool_all(&p, window_start(a, info), info->end);
		if (err)
			error_set(e, err, "cannot put the window into the spool: %s", strerror(-err));
	}
	count(a, info);
	count_io(a, w);
	a->metrics.window_failures += err != 0;
	parts_free(&p);
	return err;
}

int agent_slice(struct agent *a, struct error *e)
{
	struct window *w;
	int err = recorder_cut(a->recorder, &w, e);

	if (err)
		live_end(a->live, err, e->text);
	else if ((err = live_add(a->live, w)))
		error_set(e, err, "no memory to add up the slices of a window");
	a->metrics.window_failures += err != 0;
	return err;
}

int agent_cut(struct agent *a, struct error *e)
{
	uint64_t begin = clock_monotonic();
	struct window *w;
	int err = agent_slice(a, e);

	if (err)
		return err;
	err = live_ship(a->live, &w);
	if (err) {
		a->metrics.window_failures++;
		return error_set(e, err, "no memory to add up the slices of a window");
	}
	a->metrics.late_windows += a->due && window_get_info(w)->end > a->due + LATE_NS;
	err = spool_window(a, w, e);
	window_free(w);
	a->metrics.last_window_ns = clock_monotonic() - begin;
	return err;
}

// The last window belongs to its recorder; what was cut off before it, to the slices.
int agent_last(struct agent *a, struct recorder *r, struct error *e)
{
	struct window *last = recorder_last(r), *w;
	int err = last ? window_copy(last, &w) : -ENODATA;

	if (!err)
		err = live_add(a->live, w);
	if (!err)
		err = live_ship(a->live, &w);
	if (err) {
		a->metrics.window_failures += last != NULL;
		return last ? error_set(e, err, "no memory for the last window") : 0;
	}
	err = spool_window(a, w, e);
	window_free(w);
	return err;
}
