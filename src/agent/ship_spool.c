// SPDX-License-Identifier: Apache-2.0
// The spool as the source of batches.
#include "agent/ship.h"

static int next(void *context, struct spool_item *ret)
{
	return spool_next(context, ret);
}

static void rewind_spool(void *context)
{
	spool_rewind(context);
}

static void acknowledge(void *context, const uint8_t instance[16], uint64_t sequence)
{
	spool_acknowledge(context, instance, sequence);
}

struct ship_source ship_source_spool(struct spool *s)
{
	return (struct ship_source){ .context = s, .next = next, .release = spool_item_free, .rewind = rewind_spool,
				     .acknowledge = acknowledge, .fd = spool_fd(s) };
}
