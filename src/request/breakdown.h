// SPDX-License-Identifier: Apache-2.0
// Breakdown metrics: what a request's time and bytes are split into. A metric is declared once, in a table: its field,
// its kind, and how it combines within a thread (its parts between two readings) and across threads. The built-in ones
// and those of plugins are in one table; a source fills them, the core stores, adds up, ships, indexes and shows them.
#ifndef BLKPROF_REQUEST_BREAKDOWN_H
#define BLKPROF_REQUEST_BREAKDOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

enum breakdown_kind {
	KIND_TIMER,	// nanoseconds; a field in milliseconds, "_ms_f"
	KIND_COUNTER, // "_i", or "_l" for bytes and what may exceed 2^31
	KIND_GAUGE,	// a number that is what it is at a moment
};

enum breakdown_combine {
	COMBINE_SUM,
	COMBINE_MIN,
	COMBINE_MAX,
	COMBINE_AVG,
	COMBINE_SPAN, // from the first start to the last end: given by who merges, not by adding up
};

struct breakdown_metric {
	const char *field; // as it is indexed, with Solr's suffix
	const char *unit;  // "ns", "bytes", "count"
	enum breakdown_kind kind;
	enum breakdown_combine within, across;
	bool always; // in every record, 0 too; the others only when they are not 0
	const char *help;
};

// The built-in metrics: numbers of values in a struct breakdown. Those of plugins follow behind METRIC_BUILTIN.
enum metric_id {
	METRIC_DURATION,
	METRIC_TTFB,
	METRIC_REQ_BYTES,
	METRIC_RESP_BYTES,
	// The fields that every record has, reckoned from the others by breakdown_derive.
	METRIC_TOTAL_IO_DURATION,
	METRIC_READ_DURATION,
	METRIC_WRITE_DURATION,
	METRIC_READ_BYTES,
	METRIC_WRITE_BYTES,
	METRIC_READ_OPS,
	METRIC_WRITE_OPS,
	// Where the time between start and end went: these add up to the duration of the thread's part.
	METRIC_ONCPU,
	METRIC_RUNQ,
	METRIC_BLOCKED,
	// Why it was blocked: these add up to METRIC_BLOCKED.
	METRIC_DISK_WAIT,
	METRIC_LOCK_WAIT,
	METRIC_CLIENT_WAIT,
	METRIC_NET_WAIT,
	METRIC_POLL_WAIT,
	METRIC_PIPE_WAIT,
	METRIC_SLEEP_WAIT,
	METRIC_OTHER_WAIT,
	// System calls on regular files and block devices.
	METRIC_SYS_READ_OPS,
	METRIC_SYS_READ,
	METRIC_SYS_READ_BYTES,
	METRIC_SYS_PREAD_OPS,
	METRIC_SYS_PREAD,
	METRIC_SYS_PREAD_BYTES,
	METRIC_SYS_READV_OPS,
	METRIC_SYS_READV,
	METRIC_SYS_READV_BYTES,
	METRIC_SYS_WRITE_OPS,
	METRIC_SYS_WRITE,
	METRIC_SYS_WRITE_BYTES,
	METRIC_SYS_PWRITE_OPS,
	METRIC_SYS_PWRITE,
	METRIC_SYS_PWRITE_BYTES,
	METRIC_SYS_WRITEV_OPS,
	METRIC_SYS_WRITEV,
	METRIC_SYS_WRITEV_BYTES,
	METRIC_SYS_COPY_OPS,
	METRIC_SYS_COPY,
	METRIC_SYS_COPY_BYTES,
	METRIC_FSYNC_OPS,
	METRIC_FSYNC,
	METRIC_FDATASYNC_OPS,
	METRIC_FDATASYNC,
	METRIC_MSYNC_OPS,
	METRIC_MSYNC,
	METRIC_SYS_META_OPS,
	METRIC_SYS_META,
	// System calls on what is no file on a disk.
	METRIC_SOCKET_READ_OPS,
	METRIC_SOCKET_READ,
	METRIC_SOCKET_READ_BYTES,
	METRIC_SOCKET_WRITE_OPS,
	METRIC_SOCKET_WRITE,
	METRIC_SOCKET_WRITE_BYTES,
	METRIC_EVENT_OPS,
	METRIC_EVENT,
	METRIC_PSEUDO_OPS,
	METRIC_PSEUDO,
	METRIC_FUTEX_OPS,
	METRIC_FUTEX,
	METRIC_POLL_OPS,
	METRIC_POLL,
	METRIC_SYS_OTHER_OPS,
	METRIC_SYS_OTHER,
	// Page faults.
	METRIC_FAULT_IO_OPS,
	METRIC_FAULT_IO,
	METRIC_FAULT_DISK_OPS,
	METRIC_FAULT_DISK_BYTES,
	METRIC_MAJOR_FAULTS,
	METRIC_MINOR_FAULTS,
	// Block I/O that the thread submitted.
	METRIC_DISK_OPS,
	METRIC_DISK_READ_OPS,
	METRIC_DISK_READ_BYTES,
	METRIC_DISK_WRITE_OPS,
	METRIC_DISK_WRITE_BYTES,
	METRIC_DISK_DONE,
	METRIC_DISK_TIME,
	METRIC_DISK_MAX,
	METRIC_GC,
	METRIC_SAFEPOINT,
	METRIC_SWITCHES,
	METRIC_REQUESTS, // of a sum: how many requests it stands for
	METRIC_DROPPED,	 // events of this request that were lost
	METRIC_BUILTIN,
};

#define METRICS_MAX 128 // with those of plugins
#define METRIC_FIELD_MAX 48
#define METRIC_NO_SOURCE (-1) // its source failed: the metric is missing in every record

// The table of one process: built-in metrics and those that were added. Not changed while it is used.
struct breakdown_table {
	const struct breakdown_metric *metric[METRICS_MAX];
	unsigned n;
	int source[METRICS_MAX]; // of a plugin's: which of the numbers that the kernel side has of it; METRIC_NO_SOURCE
};

void breakdown_table_init(struct breakdown_table *m); // the built-in ones
const struct breakdown_metric *breakdown_builtin(unsigned i);
// Takes metric (not its memory) behind the others. -EEXIST for a field that is there or a record has, -EINVAL for a field whose name or
// suffix does not fit its kind, -ENOSPC. The number of its value in *ret; it has no source yet.
int breakdown_table_add(struct breakdown_table *m, const struct breakdown_metric *metric, unsigned *ret, struct error *e);

enum value_state {
	VALUE_ZERO = 0, // nothing happened
	VALUE_SET = 1,
	VALUE_MISSING = 2, // its source failed or did not see all of it: never shown as a number
};

// The values of one part (a thread's share of a request) or of several merged.
struct breakdown {
	unsigned parts;
	uint64_t value[METRICS_MAX];
	uint8_t state[METRICS_MAX]; // enum value_state
	// Of the parts, once several were merged; allocated then.
	struct breakdown_range {
		uint64_t min[METRICS_MAX], max[METRICS_MAX];
	} *range;
};

void breakdown_free(struct breakdown *b); // its range; the struct may be used again
void breakdown_set(struct breakdown *b, unsigned metric, uint64_t value);
void breakdown_missing(struct breakdown *b, unsigned metric);
// Another stretch of the same thread, by `within`.
void breakdown_extend(struct breakdown *to, const struct breakdown_table *m, const struct breakdown *more);
// Another part (thread, or request of a sum), by `across`; counted in parts. Spans are left as they are. -ENOMEM.
int breakdown_merge(struct breakdown *to, const struct breakdown_table *m, const struct breakdown *part);
// Fills what every record has, and the sums, from the others.
void breakdown_derive(struct breakdown *b);

// `,"field":number` for each value (with min_, max_ and avg_ where several parts were merged); what is missing goes by
// its field into `missing_ss` of the caller: breakdown_missing_json writes the names as `"a","b"`.
void breakdown_json(const struct breakdown *b, const struct breakdown_table *m, struct buf *ret);
void breakdown_missing_json(const struct breakdown *b, const struct breakdown_table *m, struct buf *ret);

#endif
