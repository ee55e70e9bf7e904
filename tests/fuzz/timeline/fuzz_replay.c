// SPDX-License-Identifier: Apache-2.0
// A recorded raw stream from anywhere: decoded, put in order, made a trace, whose packets must be readable again.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "timeline/timeline.h"
#include "unit/timeline/decode.h"

static int keep(void *context, const void *data, size_t len)
{
	buf_append(context, data, len);
	return 0;
}

static void read_back(const struct buf *b)
{
	const uint8_t *at = b->data;
	struct field f;
	bool bad = false;

	while (field_next(&at, b->data + b->len, &f, &bad))
		if (f.number != 1 || f.wire != 2)
			abort();
	if (bad)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[EVENT_TEXT_MAX + 1];
	struct buf out = { 0 }, summary = { 0 };
	// The smallest that there is, so that traces become full; a window that is passed
	struct timeline_options o = { .sink = keep, .context = &out, .max_size = 1 << 20, .window_ns = 1000 };
	struct timeline *t;
	struct event e;
	size_t at;
	long used;

	if (event_file_check(data, size, &at, NULL))
		return 0;
	t = timeline_new(&o);
	if (!t)
		return 0;
	for (; at < size; at += (size_t)used) {
		used = event_decode(data + at, size - at, &e, text, NULL);
		if (used <= 0)
			break;
		if (timeline_add(t, &e, NULL))
			break;
	}
	if (timeline_end(t, NULL) && out.len)
		abort();
	if (out.len > o.max_size)
		abort();
	if (out.len)
		read_back(&out);
	timeline_summary(t, 3, &summary);
	buf_free(&summary);
	timeline_free(t);
	buf_free(&out);
	return 0;
}
