// SPDX-License-Identifier: Apache-2.0
// blkprof agent: the daemon's loop, its signals, its log and what the service manager hears.
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "cli/command.h"
#include "cli/daemon.h"
#include "cli/privileges.h"
#include "common/clock.h"
#include "common/notify.h"

#define METRICS_NS 60000000000ull
#define MMAP_FROM (128 << 10)
#define STOP_MS 700 // of the second that a stop may take

struct agent_options {
	const char *config;
};

struct service {
	struct agent *agent;
	uint64_t measured, watchdog; // when they are due, ns
	uint64_t watchdog_ns;	     // 0 = nobody asked
};

static void say(void *context, enum agent_level level, const char *text)
{
	static const enum daemon_level levels[] = { DAEMON_INFO, DAEMON_WARNING, DAEMON_ERROR };

	(void)context;
	daemon_log("agent", levels[level], "%s", text);
}

static void log_metrics(struct service *s, bool all)
{
	struct buf b = { 0 };

	if (all)
		agent_metrics_text(s->agent, &b);
	else
		agent_metrics_line(s->agent, &b);
	if (b.data && !b.error)
		daemon_log_text("agent", (const char *)b.data, b.len);
	buf_free(&b);
}

static void housekeep(struct service *s, uint64_t now)
{
	if (daemon_take(SIGUSR1))
		log_metrics(s, true);
	if (now >= s->measured) {
		log_metrics(s, false);
		s->measured = now + METRICS_NS;
	}
	if (s->watchdog_ns && now >= s->watchdog) {
		notify_send("WATCHDOG=1");
		s->watchdog = now + s->watchdog_ns;
	}
}

static int loop(struct service *s, struct error *e)
{
	int err;

	while (!daemon_stopped()) {
		if (daemon_take(SIGHUP)) {
			notify_reloading();
			agent_reload(s->agent);
			notify_send("READY=1");
		}
		err = agent_step(s->agent, e);
		if (err && err != -EINTR)
			return err;
		housekeep(s, clock_monotonic());
	}
	return 0;
}

static int serve(struct service *s, const char *config, struct error *e)
{
	int err = agent_new(config, say, NULL, &s->agent, e), stopped;
	struct error of_stop = { "" };

	if (err)
		return privileges_explain(err, e);
	notify_send("READY=1");
	s->watchdog_ns = daemon_watchdog();
	s->measured = clock_monotonic() + METRICS_NS;
	err = loop(s, e);
	notify_send("STOPPING=1");
	// After a failure too: what waits in memory may still become durable.
	stopped = agent_stop(s->agent, STOP_MS, err ? &of_stop : e);
	log_metrics(s, false);
	return err ? err : stopped;
}

static int run(const void *options)
{
	const struct agent_options *o = options;
	struct service s = { 0 };
	struct error e = { "" };
	int err;

	daemon_signals();
	// Few threads that allocate little: one heap for all, and what is large goes back to the system when it is freed.
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, MMAP_FROM);
	err = serve(&s, o->config, &e);
	agent_free(s.agent);
	if (err)
		return command_error("agent", STATUS_FAILED, &e);
	daemon_log("agent", DAEMON_INFO, "stopped");
	return 0;
}

static int check(void *options, struct error *e)
{
	const struct agent_options *o = options;

	return o->config ? 0 : error_set(e, -EINVAL, "option --config: it is missing; allowed: the path of the configuration file");
}

static const struct option_spec table[] = {
	{ .name = "config", .letter = 'c', .argument = "FILE", .set = option_set_text,
	  .offset = offsetof(struct agent_options, config), .completes = COMPLETES_FILE,
	  .help = "The configuration file. docs/agent.conf is an example of every key; SIGHUP reads it again." },
	{ 0 },
};

static const struct agent_options defaults;

const struct command command_agent = {
	.name = "agent",
	.summary = "record this node's block I/O for ever and send it to collectors",
	.usage = "",
	.about = "The daemon of a node. It ends a window every ten seconds (or as the configuration says), makes a profile of each "
		 "service in it, keeps them in a spool on disk and sends them to a collector; over HTTP it answers with what happens "
		 "now. SIGTERM ends it with its last window spooled, SIGHUP reads the configuration again, SIGUSR1 writes all its "
		 "metrics to the log.",
	.options = table,
	.defaults = &defaults,
	.size = sizeof(defaults),
	.check = check,
	.run = run,
};
