// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_AGENT_AGENT_METRICS_H
#define BLKPROF_AGENT_AGENT_METRICS_H

#include <stdint.h>

#include "agent/recorder.h"
#include "agent/spool.h"
#include "common/buf.h"

struct agent_metrics {
	uint64_t windows, profiles, profile_bytes; // made since the start
	uint64_t window_failures;		   // windows that could not be made into a batch
	uint64_t late_windows;			   // ended more than a second behind their time
	uint64_t last_window_ns;		   // what the last one cost to make, ns
	uint64_t reloads, reload_failures;
	uint64_t losses[LOSS_CAUSES];
	uint64_t samples, own_ops, second_level_ops, filtered_ops;
	uint64_t ops[OP_CLASSES], bytes[OP_CLASSES];
	uint64_t memory_budget, rss, peak_rss, map_bytes;
	uint64_t cpu_ns, bpf_ns, bpf_runs;
	struct spool_stats spool;
};

void agent_metrics_print(const struct agent_metrics *m, struct buf *ret);
void agent_metrics_summary(const struct agent_metrics *m, struct buf *ret);

#endif
