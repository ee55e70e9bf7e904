// SPDX-License-Identifier: Apache-2.0
#include "agent/tracer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/tracer_internal.h"
#include "common/clock.h"

#define RING_BYTES (32u << 20)
#define EARLY_MAX (1u << 20)

static int keep_early(struct tracer *t, const struct event *e)
{
	if (t->n_early == t->cap_early) {
		size_t cap = t->cap_early ? 2 * t->cap_early : 1024;
		struct event *early = cap <= EARLY_MAX ? realloc(t->early, cap * sizeof(*early)) : NULL;

		if (!early)
			return -ENOMEM;
		t->early = early;
		t->cap_early = cap;
	}
	t->early[t->n_early++] = *e;
	return 0;
}

void tracer_say(struct tracer *t, const struct event *e)
{
	int err;

	if (t->error)
		return;
	// What only names something has a text that does not stay; it may come before its time.
	if (t->starting && !e->text)
		err = keep_early(t, e);
	else
		err = t->options.event(t->options.context, e);
	t->error = err;
}

int tracer_new(const struct tracer_options *options, struct tracer **ret, struct error *e)
{
	struct tracer *t = calloc(1, sizeof(*t));
	struct recorder_options ro = {
		.timeline = true,
		.timeline_stacks = options->stacks,
		.filter = options->filter,
		.ring = RING_BYTES,
		.frame_pointers = !options->stacks,
		.watch = tracer_record,
		.watch_context = t,
	};
	int err;

	if (!t)
		return error_set(e, -ENOMEM, "no memory for a recording; free some and try again");
	t->options = *options;
	err = recorder_new(&ro, &t->recorder, e);
	if (err) {
		tracer_free(t);
		return err;
	}
	tracer_requests_begin(t);
	*ret = t;
	return 0;
}

void tracer_free(struct tracer *t)
{
	if (!t)
		return;
	requests_free(t->requests);
	recorder_free(t->recorder);
	tracer_forget(t);
	free(t->early);
	free(t);
}

const char *tracer_backend_reason(const struct tracer *t)
{
	return recorder_backend_reason(t->recorder);
}

static void say_start(struct tracer *t)
{
	struct event e = { .type = EVENT_START };
	struct utsname u;

	e.time = t->start = clock_monotonic();
	e.boottime = clock_ns(CLOCK_BOOTTIME);
	e.realtime = clock_realtime();
	t->to_realtime = e.realtime - e.time;
	e.cpu = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	e.text = uname(&u) ? "" : u.release;
	e.text_len = (uint32_t)strlen(e.text);
	tracer_say(t, &e);
}

int tracer_start(struct tracer *t, struct error *e)
{
	int err;

	for (unsigned i = 0; i < t->options.filter.n_pid; i++)
		recorder_see_process(t->recorder, t->options.filter.pid[i]);
	err = recorder_start(t->recorder, e);
	if (err)
		return err;
	say_start(t);
	t->starting = true;
	err = tracer_threads(t);
	t->starting = false;
	for (size_t i = 0; i < t->n_early; i++)
		tracer_say(t, &t->early[i]);
	free(t->early);
	t->early = NULL;
	t->n_early = t->cap_early = 0;
	err = err ? err : t->error;
	return err ? error_set(e, err, "cannot begin the recording: %s", strerror(-err)) : 0;
}

// What found no room since the last look.
static int say_losses(struct tracer *t, uint64_t time)
{
	static const enum lost kinds[TIMELINE_LOSSES] = {
		[TIMELINE_LOST_SWITCH] = LOST_SWITCH, [TIMELINE_LOST_WAKING] = LOST_WAKING, [TIMELINE_LOST_THREAD] = LOST_THREAD,
		[TIMELINE_LOST_SUBMIT] = LOST_SUBMIT, [TIMELINE_LOST_END] = LOST_END,
	};
	uint64_t now[TIMELINE_LOSSES];
	int err = recorder_timeline_losses(t->recorder, now);

	for (unsigned i = 0; !err && i < TIMELINE_LOSSES; i++) {
		struct event e = { .type = EVENT_LOST, .time = time, .op = kinds[i], .id = now[i] - t->losses[i] };

		t->losses[i] = now[i];
		if (e.id)
			tracer_say(t, &e);
	}
	return err;
}

int tracer_poll(struct tracer *t, int timeout_ms)
{
	int err = recorder_poll(t->recorder, timeout_ms), lost = say_losses(t, clock_monotonic());

	if (!lost)
		lost = tracer_requests_poll(t);
	return t->error ? t->error : err < 0 ? err : lost;
}

// I/O that was not followed from its submission to its end, for other reasons than a ring without room.
static void say_lost_io(struct tracer *t, uint64_t time)
{
	struct event submit = { .type = EVENT_LOST, .time = time, .op = LOST_SUBMIT }, end = submit;

	end.op = LOST_END;
	submit.id = recorder_loss(t->recorder, LOSS_INSERT_FAILED);
	end.id = recorder_loss(t->recorder, LOSS_MISMATCH) + recorder_loss(t->recorder, LOSS_EVICTED);
	if (submit.id)
		tracer_say(t, &submit);
	if (end.id)
		tracer_say(t, &end);
}

int tracer_stop(struct tracer *t, struct error *e)
{
	struct event stop = { .type = EVENT_STOP };
	int err;

	// Before it stops, which takes a while: what threads do behind the last record nobody knows.
	stop.time = t->stop = clock_monotonic();
	err = recorder_stop(t->recorder, e);
	if (err)
		return err;
	err = say_losses(t, stop.time);
	say_lost_io(t, stop.time);
	tracer_requests_end(t, stop.time);
	tracer_say(t, &stop);
	if (t->error)
		err = t->error;
	return err ? error_set(e, err, "cannot end the recording: %s", strerror(-err)) : 0;
}
