// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "collector/web_internal.h"
#include "common/quote.h"
#include "common/when.h"

void web_json_text(struct buf *to, const char *text)
{
	quote_append(to, text, strlen(text));
}

void web_json_time(struct buf *to, uint64_t ns)
{
	char text[WHEN_SIZE];

	buf_printf(to, "\"%s\"", when_text(ns, text));
}

void web_json_coverage(struct buf *to, const struct store_query *q, const struct store_coverage *c)
{
	buf_printf(to, "{\"from\":");
	web_json_time(to, q->from);
	buf_printf(to, ",\"to\":");
	web_json_time(to, q->to);
	buf_printf(to, ",\"nodes\":%u,\"windows\":%u,\"node_seconds\":%.3f,\"straddling\":%u,\"rolled_up\":%u,\"left_out\":%u,"
		       "\"lost_windows\":%" PRIu64 ",\"lost_seconds\":%.3f}",
		   c->nodes, c->windows, (double)c->node_seconds_ns / 1e9, c->straddling, c->rollups, c->ambiguous, c->lost,
		   (double)c->lost_ns / 1e9);
}
