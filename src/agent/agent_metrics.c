// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_metrics.h"

#include <inttypes.h>
#include <stddef.h>

#include "agent/filter.h"
#include "common/metrics.h"
#include "common/text.h"

#define COUNTER(n, field, text)                                                                                     \
	{ .name = "blkprof_agent_" n, .help = text, .type = METRIC_COUNTER, .offset = offsetof(struct agent_metrics, field) }
#define GAUGE(n, field, text)                                                                                       \
	{ .name = "blkprof_agent_" n, .help = text, .type = METRIC_GAUGE, .offset = offsetof(struct agent_metrics, field) }
#define SECONDS(n, field, text)                                                                                     \
	{ .name = "blkprof_agent_" n, .help = text, .type = METRIC_SECONDS_COUNTER, .offset = offsetof(struct agent_metrics, field) }
#define SECONDS_GAUGE(n, field, text)                                                                               \
	{ .name = "blkprof_agent_" n, .help = text, .type = METRIC_SECONDS_GAUGE, .offset = offsetof(struct agent_metrics, field) }
#define DROPPED(cause, field)                                                                                       \
	{ .name = "blkprof_agent_spool_dropped_total", .labels = "cause=\"" cause "\"",                             \
	  .help = "Batches that the spool dropped.", .type = METRIC_COUNTER, .offset = offsetof(struct agent_metrics, field) }

static const struct metric table[] = {
	COUNTER("windows_total", windows, "Windows that ended."),
	COUNTER("profiles_total", profiles, "Profiles of services that were made."),
	COUNTER("profile_bytes_total", profile_bytes, "Bytes of these profiles, compressed."),
	COUNTER("window_failures_total", window_failures, "Windows that could not be made into a batch."),
	COUNTER("late_windows_total", late_windows, "Windows that ended more than a second behind their time."),
	SECONDS_GAUGE("last_window_seconds", last_window_ns, "Time that it took to end the last window."),
	COUNTER("reloads_total", reloads, "Configurations that were taken over."),
	COUNTER("reload_failures_total", reload_failures, "Configurations that were refused."),
	COUNTER("samples_total", samples, "Stacks that were taken."),
	COUNTER("own_operations_total", own_ops, "Operations of this agent, kept out."),
	COUNTER("second_level_operations_total", second_level_ops, "Operations of devices below a stacked one, kept out."),
	COUNTER("filtered_operations_total", filtered_ops, "Operations that the filters or exclude kept out."),
	SECONDS("cpu_seconds_total", cpu_ns, "CPU time of the agent's process."),
	SECONDS("bpf_seconds_total", bpf_ns, "Run time of its BPF programs; 0 unless kernel.bpf_stats_enabled is 1."),
	COUNTER("bpf_runs_total", bpf_runs, "Runs of its BPF programs; 0 unless kernel.bpf_stats_enabled is 1."),
	GAUGE("memory_budget_bytes", memory_budget, "What `memory` allows."),
	GAUGE("resident_bytes", rss, "Resident memory of the process."),
	GAUGE("peak_resident_bytes", peak_rss, "The most that was resident so far."),
	GAUGE("map_bytes", map_bytes, "Kernel memory of its BPF maps."),
	GAUGE("spool_files", spool.files, "Batches on disk."),
	GAUGE("spool_bytes", spool.bytes, "Bytes that they take."),
	GAUGE("spool_waiting", spool.waiting, "Batches in memory that are not durable yet."),
	GAUGE("spool_waiting_bytes", spool.waiting_bytes, "Bytes of these."),
	GAUGE("spool_unsent", spool.unsent, "Durable batches that were not sent since the last connection."),
	COUNTER("spool_added_total", spool.added, "Batches given to the spool."),
	COUNTER("spool_acknowledged_total", spool.acknowledged, "Batches that a collector acknowledged."),
	COUNTER("spool_recovered_total", spool.recovered, "Batches of earlier starts found in the spool."),
	COUNTER("spool_write_errors_total", spool.write_errors, "Attempts to write a batch that failed and are repeated."),
	DROPPED("spool_full", spool.dropped_full),
	DROPPED("disk_too_slow", spool.dropped_waiting),
	DROPPED("damaged", spool.dropped_damaged),
};

static void print_by_name(const char *metric, const char *label, const char *help, const uint64_t *values, unsigned n,
			  const char *(*name)(unsigned i), struct buf *ret)
{
	buf_printf(ret, "# HELP %s %s\n# TYPE %s counter\n", metric, help, metric);
	for (unsigned i = 0; i < n; i++)
		buf_printf(ret, "%s{%s=\"%s\"} %" PRIu64 "\n", metric, label, name(i), values[i]);
}

static const char *loss(unsigned i)
{
	return loss_name(i);
}

void agent_metrics_print(const struct agent_metrics *m, struct buf *ret)
{
	metrics_print(table, sizeof(table) / sizeof(*table), m, ret);
	print_by_name("blkprof_agent_operations_total", "op", "Operations recorded.", m->ops, OP_CLASSES, filter_op_name, ret);
	print_by_name("blkprof_agent_bytes_total", "op", "Their bytes.", m->bytes, OP_CLASSES, filter_op_name, ret);
	print_by_name("blkprof_agent_lost_total", "cause", "What is missing from profiles.", m->losses, LOSS_CAUSES, loss, ret);
}

void agent_metrics_summary(const struct agent_metrics *m, struct buf *ret)
{
	char rss[32], budget[32], maps[32], spooled[32], bytes[32];
	uint64_t ops = 0, moved = 0, lost = 0, dropped;

	for (unsigned i = 0; i < OP_CLASSES; i++) {
		ops += m->ops[i];
		moved += m->bytes[i];
	}
	for (unsigned i = 0; i < LOSS_CAUSES; i++)
		lost += m->losses[i];
	dropped = m->spool.dropped_full + m->spool.dropped_waiting + m->spool.dropped_damaged;
	buf_printf(ret,
		   "windows=%" PRIu64 " profiles=%" PRIu64 " operations=%" PRIu64 " moved=\"%s\" samples=%" PRIu64 " lost=%" PRIu64
		   " cpu_seconds=%.2f bpf_seconds=%.2f rss=\"%s\" of=\"%s\" maps=\"%s\" spool_batches=%" PRIu64
		   " spool=\"%s\" waiting=%" PRIu64 " acknowledged=%" PRIu64 " dropped=%" PRIu64,
		   m->windows, m->profiles, ops, text_bytes(bytes, sizeof(bytes), (double)moved), m->samples, lost,
		   (double)m->cpu_ns / 1e9, (double)m->bpf_ns / 1e9, text_bytes(rss, sizeof(rss), (double)m->rss),
		   text_bytes(budget, sizeof(budget), (double)m->memory_budget), text_bytes(maps, sizeof(maps), (double)m->map_bytes),
		   m->spool.files, text_bytes(spooled, sizeof(spooled), (double)m->spool.bytes), m->spool.waiting,
		   m->spool.acknowledged, dropped);
}
