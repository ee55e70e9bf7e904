// SPDX-License-Identifier: Apache-2.0
// I/O seconds, operations and bytes by service, device and operation, for Prometheus. The heaviest services have series
// of their own, the others are added up in one; each series only grows. A service that loses its place loses its series
// and begins from 0 when it comes again, as a counter does after a restart: its past is not added to the others', where it
// would look like I/O of now.
#ifndef BLKPROF_AGENT_IO_METRICS_H
#define BLKPROF_AGENT_IO_METRICS_H

#include <stdint.h>

#include "common/buf.h"

#define IO_METRICS_SERVICES 50
#define IO_METRICS_CELLS 1000 // service, device and operation; beyond it devices of a service are one
#define IO_METRICS_OTHER "[other]"

struct io_metrics;

struct io_amount {
	uint64_t ops, bytes, time_ns;
};

struct io_item {
	const char *service, *device, *op;
	struct io_amount amount;
};

// 0 services and cells mean those above. NULL without memory.
struct io_metrics *io_metrics_new(unsigned services, unsigned cells);
void io_metrics_free(struct io_metrics *m); // NULL too
// Counts a window of so many seconds, several items of one kind as their sum, and gives the places to the services that
// are the heaviest of late (older I/O counts half every ten minutes).
void io_metrics_window(struct io_metrics *m, const struct io_item *items, unsigned n, double seconds);
// Any thread.
void io_metrics_print(struct io_metrics *m, struct buf *to);

#endif
