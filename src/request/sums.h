// SPDX-License-Identifier: Apache-2.0
// The kernel's sums of a thread as breakdown metrics.
#ifndef BLKPROF_REQUEST_SUMS_H
#define BLKPROF_REQUEST_SUMS_H

#include "bpf/request_rec.h"
#include "request/breakdown.h"

// What came between two looks at one thread. False (and everything missing) when the later one is smaller: it is another
// thread with the same number.
bool sums_between(const struct req_sums *from, const struct req_sums *to, struct breakdown *ret);
// The same of the metrics of plugins, of which a gauge is what it is at the end.
void sums_plugins(const struct breakdown_table *table, const struct req_sums *from, const struct req_sums *to, struct breakdown *ret);
// All that the sums could have said is not known.
void sums_missing(struct breakdown *ret);
// to += what came between.
void sums_add_between(const struct req_sums *from, const struct req_sums *to, struct req_sums *ret);

#endif
