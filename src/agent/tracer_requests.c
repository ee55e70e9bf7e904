// SPDX-License-Identifier: Apache-2.0
// Requests that the processes of a tracer serve, as events of its timeline: told when they are over.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/tracer_internal.h"
#include "common/clock.h"

#define TAKE_NS 200000000u
#define FULL_MAX 100000 // a second: each by itself

static void say_request(void *context, const struct request_record *r)
{
	struct tracer *t = context;
	struct event e = { .type = EVENT_REQUEST, .tid = r->tid, .tgid = r->pid };
	char text[sizeof(r->method) + sizeof(r->path) + 2];

	if (r->kind != REQUEST_ONE || r->start < t->to_realtime || r->end < r->start)
		return;
	e.submit = r->start - t->to_realtime;
	e.time = r->end - t->to_realtime;
	e.state = r->status > 0 ? (uint32_t)r->status : 0;
	snprintf(text, sizeof(text), "%s %s", *r->method ? r->method : "request", r->path);
	e.text = text;
	e.text_len = (uint32_t)strlen(text);
	tracer_say(t, &e);
}

void tracer_requests_begin(struct tracer *t)
{
	const struct filter *f = &t->options.filter;
	struct requests_options o = { .full = FULL_MAX };

	if (!t->options.requests || !f->n_pid)
		return;
	for (unsigned i = 0; i < f->n_pid; i++) {
		snprintf(t->pids[i], sizeof(t->pids[i]), "%d", (int)f->pid[i]);
		o.targets.pid[o.targets.n_pid++] = t->pids[i];
	}
	if (requests_new(&o, &t->requests, &t->no_requests))
		t->requests = NULL;
}

int tracer_requests_poll(struct tracer *t)
{
	uint64_t now = clock_monotonic();
	int err;

	if (!t->requests)
		return 0;
	err = requests_poll(t->requests, 0);
	if (now - t->taken >= TAKE_NS) {
		requests_take(t->requests, say_request, t);
		t->taken = now;
	}
	return err < 0 && err != -EINTR ? err : 0;
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(name, *names))
			return true;
	return false;
}

// Each of these is a request that is missing, about.
static void say_lost_requests(struct tracer *t, uint64_t time)
{
	static const char *const missing[] = { "ring_full", "connections_full", "connections_evicted", "requests_evicted",
					       "heads_dropped", "text_unreadable", "records_dropped", NULL };
	struct event e = { .type = EVENT_LOST, .time = time, .op = LOST_REQUEST };
	const struct requests_count *counts;
	unsigned n;

	counts = requests_counts(t->requests, &n);
	for (unsigned i = 0; i < n; i++)
		if (is_one_of(counts[i].name, missing))
			e.id += counts[i].value;
	if (e.id)
		tracer_say(t, &e);
}

void tracer_requests_end(struct tracer *t, uint64_t time)
{
	if (!t->requests)
		return;
	requests_poll(t->requests, 0);
	requests_stop(t->requests);
	requests_take(t->requests, say_request, t);
	say_lost_requests(t, time);
}

void tracer_requests_unread(struct tracer *t, struct buf *to)
{
	static const char *const unread[] = { "h2_connections", "tls_connections", NULL };
	const struct requests_count *counts;
	unsigned n = 0;

	counts = t->requests ? requests_counts(t->requests, &n) : NULL;
	for (unsigned i = 0; i < n; i++)
		if (counts[i].value && is_one_of(counts[i].name, unread))
			buf_printf(to, "without requests of %llu %s\n", (unsigned long long)counts[i].value, counts[i].help);
}

const char *tracer_requests_reason(const struct tracer *t)
{
	return t->requests ? "" : t->no_requests.text;
}
