// SPDX-License-Identifier: Apache-2.0
#include "request/sums.h"

#include <stddef.h>
#include <string.h>

#define CALL(call, part) (offsetof(struct req_sums, calls) + (call) * sizeof(struct req_call_sums) + offsetof(struct req_call_sums, part))
#define TRIPLE(metric, call) { metric##_OPS, CALL(call, ops) }, { metric, CALL(call, ns) }, { metric##_BYTES, CALL(call, bytes) }
#define PAIR(metric, call) { metric##_OPS, CALL(call, ops) }, { metric, CALL(call, ns) }
#define AT(field) offsetof(struct req_sums, field)

static const struct {
	unsigned metric;
	size_t offset;
} map[] = {
	TRIPLE(METRIC_SYS_READ, CALL_READ), TRIPLE(METRIC_SYS_PREAD, CALL_PREAD), TRIPLE(METRIC_SYS_READV, CALL_READV),
	TRIPLE(METRIC_SYS_WRITE, CALL_WRITE), TRIPLE(METRIC_SYS_PWRITE, CALL_PWRITE), TRIPLE(METRIC_SYS_WRITEV, CALL_WRITEV),
	TRIPLE(METRIC_SYS_COPY, CALL_COPY), PAIR(METRIC_FSYNC, CALL_FSYNC), PAIR(METRIC_FDATASYNC, CALL_FDATASYNC),
	PAIR(METRIC_MSYNC, CALL_MSYNC), PAIR(METRIC_SYS_META, CALL_META), TRIPLE(METRIC_SOCKET_READ, CALL_SOCKET_READ),
	TRIPLE(METRIC_SOCKET_WRITE, CALL_SOCKET_WRITE), PAIR(METRIC_EVENT, CALL_EVENT), PAIR(METRIC_PSEUDO, CALL_PSEUDO),
	PAIR(METRIC_FUTEX, CALL_FUTEX), PAIR(METRIC_POLL, CALL_POLL), PAIR(METRIC_SYS_OTHER, CALL_OTHER),
	{ METRIC_ONCPU, AT(oncpu) }, { METRIC_RUNQ, AT(runq) }, { METRIC_DISK_WAIT, AT(blocked[WAIT_DISK]) },
	{ METRIC_LOCK_WAIT, AT(blocked[WAIT_LOCK]) }, { METRIC_NET_WAIT, AT(blocked[WAIT_NET]) },
	{ METRIC_POLL_WAIT, AT(blocked[WAIT_POLL]) }, { METRIC_PIPE_WAIT, AT(blocked[WAIT_PIPE]) },
	{ METRIC_SLEEP_WAIT, AT(blocked[WAIT_SLEEP]) }, { METRIC_OTHER_WAIT, AT(blocked[WAIT_OTHER]) },
	{ METRIC_SWITCHES, AT(switches) }, { METRIC_FAULT_IO_OPS, AT(fault_io_ops) }, { METRIC_FAULT_IO, AT(fault_io_ns) },
	{ METRIC_FAULT_DISK_OPS, AT(fault_disk_ops) }, { METRIC_FAULT_DISK_BYTES, AT(fault_disk_bytes) },
	{ METRIC_MAJOR_FAULTS, AT(major_faults) }, { METRIC_MINOR_FAULTS, AT(minor_faults) },
	{ METRIC_DISK_READ_OPS, AT(disk_read_ops) }, { METRIC_DISK_READ_BYTES, AT(disk_read_bytes) },
	{ METRIC_DISK_WRITE_OPS, AT(disk_write_ops) }, { METRIC_DISK_WRITE_BYTES, AT(disk_write_bytes) },
	{ METRIC_DISK_DONE, AT(disk_done) }, { METRIC_DISK_TIME, AT(disk_ns) },
};
#define N_MAP (sizeof(map) / sizeof(*map))

static uint64_t value(const struct req_sums *s, size_t offset)
{
	uint64_t v;

	memcpy(&v, (const char *)s + offset, sizeof(v));
	return v;
}

void sums_missing(struct breakdown *ret)
{
	for (size_t i = 0; i < N_MAP; i++)
		breakdown_missing(ret, map[i].metric);
	breakdown_missing(ret, METRIC_BLOCKED);
	breakdown_missing(ret, METRIC_CLIENT_WAIT);
	breakdown_missing(ret, METRIC_DISK_OPS);
	breakdown_missing(ret, METRIC_DISK_MAX);
}

bool sums_between(const struct req_sums *from, const struct req_sums *to, struct breakdown *ret)
{
	uint64_t blocked = 0;

	for (size_t i = 0; i < N_MAP; i++) {
		uint64_t a = value(from, map[i].offset), b = value(to, map[i].offset);

		if (b < a) {
			sums_missing(ret);
			return false;
		}
		breakdown_set(ret, map[i].metric, b - a);
	}
	for (unsigned i = 0; i < WAITS; i++)
		blocked += to->blocked[i] - from->blocked[i];
	breakdown_set(ret, METRIC_BLOCKED, blocked);
	breakdown_set(ret, METRIC_DISK_OPS, ret->value[METRIC_DISK_READ_OPS] + ret->value[METRIC_DISK_WRITE_OPS]);
	return true;
}

void sums_add_between(const struct req_sums *from, const struct req_sums *to, struct req_sums *ret)
{
	for (size_t i = 0; i < N_MAP; i++) {
		uint64_t sum = value(ret, map[i].offset) + value(to, map[i].offset) - value(from, map[i].offset);

		memcpy((char *)ret + map[i].offset, &sum, sizeof(sum));
	}
}

void sums_plugins(const struct breakdown_table *table, const struct req_sums *from, const struct req_sums *to, struct breakdown *ret)
{
	const uint64_t *a = from ? from->plugin[0] : NULL, *b = to ? to->plugin[0] : NULL;

	for (unsigned i = METRIC_BUILTIN; i < table->n; i++) {
		int at = table->source[i];

		if (!a || !b || at < 0 || at >= REQ_PLUGINS * REQ_PLUGIN_VALUES)
			breakdown_missing(ret, i);
		else if (table->metric[i]->kind == KIND_GAUGE)
			breakdown_set(ret, i, b[at]);
		else if (b[at] < a[at])
			breakdown_missing(ret, i);
		else
			breakdown_set(ret, i, b[at] - a[at]);
	}
}
