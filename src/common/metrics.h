// SPDX-License-Identifier: Apache-2.0
// Counters of a daemon: uint64_t in a struct of its own, changed by any thread, and a table that names them, from which
// they are printed for Prometheus.
#ifndef BLKPROF_COMMON_METRICS_H
#define BLKPROF_COMMON_METRICS_H

#include <stdint.h>

#include "common/buf.h"

enum metric_type {
	METRIC_COUNTER,
	METRIC_GAUGE,
	METRIC_SECONDS_COUNTER, // the value is nanoseconds, printed as seconds
	METRIC_SECONDS_GAUGE,
};

struct metric {
	const char *name;   // "blkprof_collector_batches_total"
	const char *labels; // "reason=\"oversized\"", or NULL
	const char *help;   // one sentence; of metrics with one name, which stand together, that of the first counts
	enum metric_type type;
	unsigned offset; // of the uint64_t
};

static inline void metric_add(uint64_t *value, uint64_t n)
{
	__atomic_fetch_add(value, n, __ATOMIC_RELAXED);
}

static inline void metric_set(uint64_t *value, uint64_t to)
{
	__atomic_store_n(value, to, __ATOMIC_RELAXED);
}

static inline uint64_t metric_get(const uint64_t *value)
{
	return __atomic_load_n(value, __ATOMIC_RELAXED);
}

// Prometheus text format 0.0.4.
void metrics_print(const struct metric *table, unsigned n, const void *values, struct buf *to);

#endif
