// SPDX-License-Identifier: Apache-2.0
// Events put in order of their time: they come nearly so, from rings that several CPUs write to. Bounded: what is held is
// of one stretch of time and at most so many events.
#ifndef BLKPROF_TIMELINE_ORDER_H
#define BLKPROF_TIMELINE_ORDER_H

#include <stdbool.h>

#include "timeline/event.h"

struct order;

struct order *order_new(uint64_t window_ns, size_t max);
void order_free(struct order *o);
// 0 or -ENOMEM. An event without text.
int order_add(struct order *o, const struct event *e);
// The earliest event, when nothing earlier is to be expected (or `all`). Equal times: in the order in which they came.
bool order_take(struct order *o, bool all, struct event *ret);
uint64_t order_late(const struct order *o); // events that came when later ones had been taken
size_t order_held(const struct order *o);

#endif
