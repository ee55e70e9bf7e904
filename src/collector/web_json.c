// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/web_internal.h"
#include "common/text.h"
#include "common/when.h"

void web_json_text(struct buf *to, const char *text)
{
	size_t len = strlen(text);
	char *clean = malloc(len + 1);

	if (!clean) {
		to->error = to->error ? to->error : -ENOMEM;
		return;
	}
	// Without control characters: only these two are left that JSON does not take.
	len = text_sanitize(clean, len + 1, text, len);
	buf_byte(to, '"');
	for (size_t i = 0; i < len; i++) {
		if (clean[i] == '"' || clean[i] == '\\')
			buf_byte(to, '\\');
		buf_byte(to, (uint8_t)clean[i]);
	}
	buf_byte(to, '"');
	free(clean);
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
