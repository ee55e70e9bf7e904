// SPDX-License-Identifier: Apache-2.0
// The daemon's own figures. The loop counts in a->metrics, which is its own, and publishes them; everything here may run on
// any thread.
#include <stddef.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/cost.h"
#include "common/metrics.h"

#define HTTP(field, name, labels, help)                                                                             \
	{ "blkprof_agent_http_" name, labels, help, METRIC_COUNTER, offsetof(struct http_counters, field) }
#define PULL(field, labels, help)                                                                                   \
	{ "blkprof_agent_pulls_total", labels, help, METRIC_COUNTER, offsetof(struct live_counters, field) }

static const struct metric http_table[] = {
	HTTP(requests, "requests_total", NULL, "Requests over HTTP."),
	HTTP(refused_token, "refused_total", "cause=\"token\"", "Those that were refused."),
	HTTP(refused_busy, "refused_total", "cause=\"busy\"", NULL),
	HTTP(failed, "failed_total", NULL, "Those that were answered with an error."),
	HTTP(connections, "connections_total", NULL, "Connections over HTTP."),
	HTTP(bytes, "sent_bytes_total", NULL, "Bytes of answers."),
	HTTP(cut, "cut_total", NULL, "Connections that took too long to ask or to read, and were ended."),
};

static const struct metric pull_table[] = {
	PULL(pulls, "result=\"profile\"", "Live profiles that were pulled over HTTP, or were not."),
	PULL(failed, "result=\"failed\"", NULL),
	PULL(refused, "result=\"refused\"", NULL),
	{ "blkprof_agent_pulls_running", NULL, "Pulls that wait for their end.", METRIC_GAUGE, offsetof(struct live_counters, running) },
};

void agent_publish(struct agent *a)
{
	pthread_mutex_lock(&a->measuring);
	a->published = a->metrics;
	pthread_mutex_unlock(&a->measuring);
}

void agent_measure(struct agent *a, struct agent_metrics *ret)
{
	struct cost c;

	pthread_mutex_lock(&a->measuring);
	*ret = a->published;
	cost_read(&c);
	pthread_mutex_unlock(&a->measuring);
	ret->cpu_ns = c.cpu_ns;
	ret->bpf_ns += c.bpf_ns;
	ret->bpf_runs += c.bpf_runs;
	ret->rss = c.rss;
	ret->peak_rss = c.peak_rss;
	ret->map_bytes = c.map_bytes;
	spool_stats(a->spool, &ret->spool);
}

static void print_ship(struct agent *a, struct buf *ret)
{
	struct ship_stats s;
	bool ships;

	pthread_mutex_lock(&a->measuring);
	ships = a->ship;
	if (ships)
		ship_stats(a->ship, &s);
	pthread_mutex_unlock(&a->measuring);
	if (ships)
		metrics_print(ship_metrics, ship_metrics_n, &s, ret);
}

static void print_java(const struct agent *a, struct buf *ret)
{
	buf_printf(ret, "# HELP blkprof_agent_java_attach_total JVMs without an attach socket, by what was done.\n"
			"# TYPE blkprof_agent_java_attach_total counter\n");
	for (unsigned i = 0; i < JVM_WAKE_COUNTS; i++)
		buf_printf(ret, "blkprof_agent_java_attach_total{what=\"%s\"} %llu\n", jvm_wake_count_name(i),
			   (unsigned long long)jvm_wake_count(a->jvm_wake, i));
}

void agent_metrics_text(struct agent *a, struct buf *ret)
{
	struct live_counters pulls;
	struct agent_metrics m;

	agent_measure(a, &m);
	agent_metrics_print(&m, ret);
	print_ship(a, ret);
	live_get_counters(a->live, &pulls);
	metrics_print(pull_table, sizeof(pull_table) / sizeof(*pull_table), &pulls, ret);
	io_metrics_print(a->io, ret);
	print_java(a, ret);
	pthread_mutex_lock(&a->measuring);
	if (a->requests)
		agent_requests_print(a->requests, ret);
	pthread_mutex_unlock(&a->measuring);
}

void agent_metrics_http(const struct http_server *s, struct buf *ret)
{
	metrics_print(http_table, sizeof(http_table) / sizeof(*http_table), http_get_counters(s), ret);
}

void agent_metrics_line(struct agent *a, struct buf *ret)
{
	struct agent_metrics m;

	agent_measure(a, &m);
	agent_metrics_summary(&m, ret);
}
