// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "common/clock.h"

#define STEP_MS 100
#define CLOSE_MS 200 // for the ship, when there is nothing more to wait for
#define WAITING_MIN (4u << 20)
#define ROW_BYTES 200 // of a window, with its place in the table

void agent_say(struct agent *a, enum agent_level level, const char *format, ...)
{
	char text[600];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	a->log(a->log_context, level, text);
}

static int open_spool(struct agent *a, struct error *e)
{
	const struct agent_config *c = &a->config;
	struct spool_options o = { .directory = c->directory, .max_size = c->max_size, .node = c->node_name };

	o.max_waiting = c->memory / 8 > WAITING_MIN ? c->memory / 8 : WAITING_MIN;
	return spool_open(&o, &a->spool, e);
}

static int open_http(struct agent *a, struct error *e)
{
	size_t rows = a->config.memory / 8 / ROW_BYTES;

	a->live = live_new(rows);
	a->io = io_metrics_new(0, 0);
	if (!a->live || !a->io)
		return error_set(e, -ENOMEM, "no memory for the agent; free some and try again");
	live_recorded(a->live, a->config.label_set);
	a->metrics.memory_budget = a->config.memory;
	agent_publish(a);
	return agent_http_open(a, &a->config, e);
}

static void greet(struct agent *a)
{
	const char *reason = recorder_backend_reason(a->recorder), *text;

	for (unsigned i = 0; (text = agent_config_warning(&a->config, i)); i++)
		agent_say(a, AGENT_WARNING, "%s", text);
	if (a->filter.n_exclude_missing)
		agent_say(a, AGENT_WARNING, "exclude: %u of the cgroups do not exist now; they are looked for at each window's end",
			  a->filter.n_exclude_missing);
	agent_say(a, AGENT_INFO, "node %s, backend %s%s%s", a->config.node_name, recorder_backend(a->recorder),
		  *reason ? ": " : "", reason);
}

int agent_new(const char *path, agent_log_fn log, void *context, struct agent **ret, struct error *e)
{
	struct agent *a = calloc(1, sizeof(*a));
	int err = -ENOMEM;

	if (!a || !(a->path = strdup(path)) || !(a->jvm_wake = jvm_wake_new())) {
		error_set(e, err, "no memory for the agent; free some and try again");
		goto fail;
	}
	pthread_mutex_init(&a->measuring, NULL);
	a->log = log;
	a->log_context = context;
	err = agent_config_read(path, &a->config, e);
	if (!err)
		err = agent_config_filter(&a->config, &a->filter, e);
	if (!err)
		err = open_spool(a, e);
	// Before the probes: what is wrong with its address or its files is found at once.
	if (!err)
		err = open_http(a, e);
	if (!err)
		err = agent_recorder(a, &a->config, &a->filter, &a->recorder, e);
	if (!err)
		err = agent_ship(a, &a->config, false, e);
	if (!err)
		err = recorder_start(a->recorder, e);
	if (err)
		goto fail;
	agent_follow_requests(a, &a->config);
	greet(a);
	malloc_trim(0); // the kernel's types were read for loading
	*ret = a;
	return 0;
fail:
	agent_free(a);
	return err;
}

// Waits until the window's end or the next cut for a pull at most; `cut` is in ns from now, 0 = none.
static int wait_ms(const struct agent *a, uint64_t now, uint64_t cut)
{
	uint64_t left = a->due - now, ms;

	if (cut && cut < left)
		left = cut;
	ms = left / 1000000 + 1;
	return ms < STEP_MS ? (int)ms : STEP_MS;
}

static int end_window(struct agent *a, struct error *e)
{
	int err = agent_cut(a, e);

	a->due = 0;
	agent_publish(a);
	agent_refresh_filter(a);
	malloc_trim(0); // a window's profiles were the largest thing there was
	// A window that could not be made is a loss that is counted and said; the next one may be made.
	if (err && a->recorder)
		agent_say(a, AGENT_ERROR, "a window is lost: %s", e->text);
	return 0;
}

// Cuts for pulls when it is time; how long until then, ns, 0 = nobody waits for one.
static uint64_t serve_pulls(struct agent *a)
{
	uint64_t due, now;
	struct error e;

	if (live_work(a->live))
		malloc_trim(0);
	due = live_due(a->live);
	if (!due)
		return 0;
	now = clock_monotonic();
	if (now < due)
		return due - now;
	if (agent_slice(a, &e))
		agent_say(a, AGENT_ERROR, "a window is lost: %s", e.text);
	return 1;
}

int agent_step(struct agent *a, struct error *e)
{
	uint64_t now = clock_realtime(), cut;
	int err;

	metric_set(&a->stepped, clock_monotonic());

	// A clock that was set back must not make a window of years.
	if (!a->due || a->due > now + a->config.window)
		a->due = agent_next_end(now, a->config.window);
	if (now >= a->due)
		return end_window(a, e);
	cut = serve_pulls(a);
	err = recorder_poll(a->recorder, wait_ms(a, now, cut));
	if (err < 0 && err != -EINTR)
		return error_set(e, err, "cannot read what the kernel recorded: %s", strerror(-err));
	return err;
}

static void stop_requests(struct agent *a)
{
	struct agent_requests *r = a->requests;

	pthread_mutex_lock(&a->measuring);
	a->requests = NULL;
	pthread_mutex_unlock(&a->measuring);
	agent_requests_stop(r);
}

int agent_stop(struct agent *a, unsigned timeout_ms, struct error *e)
{
	struct spool_stats stats;
	int err;

	live_stop(a->live);
	agent_http_close(a);
	err = recorder_stop(a->recorder, e);
	if (!err)
		err = agent_last(a, a->recorder, e);
	stop_requests(a);
	if (spool_flush(a->spool, timeout_ms) && !err) {
		spool_stats(a->spool, &stats);
		err = error_set(e, -ETIMEDOUT, "%llu batches could not be written to the spool in time and are lost%s%s",
				(unsigned long long)stats.waiting, stats.write_error ? ": " : "",
				stats.write_error ? strerror(-stats.write_error) : "");
	}
	return err;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	if (a->live)
		live_stop(a->live);
	agent_http_close(a);
	stop_requests(a);
	a->left_behind |= !ship_close(a->ship, CLOSE_MS);
	live_free(a->live);
	recorder_free(a->recorder);
	jvm_wake_free(a->jvm_wake);
	if (a->left_behind)
		return; // until the process ends
	spool_close(a->spool, 0);
	io_metrics_free(a->io);
	pthread_mutex_destroy(&a->measuring);
	agent_config_free(&a->config);
	free(a->path);
	free(a);
}

const char *agent_backend(const struct agent *a)
{
	return recorder_backend(a->recorder);
}
