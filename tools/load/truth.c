// SPDX-License-Identifier: Apache-2.0
#include "truth.h"

#include <inttypes.h>

// Lower bounds: 0, 1 us, 2 us, 5 us, 10 us …
static uint64_t class_bound(unsigned index)
{
	static const unsigned steps[] = {1, 2, 5};
	uint64_t bound = 1000;

	if (index == 0)
		return 0;
	for (unsigned i = (index - 1) / 3; i > 0; i--)
		bound *= 10;
	return bound * steps[(index - 1) % 3];
}

static unsigned class_of(uint64_t ns)
{
	unsigned index = 0;

	while (index + 1 < LATENCY_CLASSES && class_bound(index + 1) <= ns)
		index++;
	return index;
}

void truth_add(struct truth *t, uint64_t bytes, uint64_t ns)
{
	if (t->calls == 0 || ns < t->min_ns)
		t->min_ns = ns;
	if (ns > t->max_ns)
		t->max_ns = ns;
	t->calls++;
	t->bytes += bytes;
	t->total_ns += ns;
	t->latency[class_of(ns)]++;
}

void truth_merge(struct truth *to, const struct truth *from)
{
	if (from->calls && (to->calls == 0 || from->min_ns < to->min_ns))
		to->min_ns = from->min_ns;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
	to->calls += from->calls;
	to->bytes += from->bytes;
	to->total_ns += from->total_ns;
	to->retries += from->retries;
	for (int i = 0; i < LATENCY_CLASSES; i++)
		to->latency[i] += from->latency[i];
}

void truth_print(const struct truth *t, struct buf *out)
{
	const char *comma = "";

	buf_printf(out, "\"calls\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"time_ns\": %" PRIu64 ", ", t->calls, t->bytes,
		t->total_ns);
	buf_printf(out, "\"min_ns\": %" PRIu64 ", \"max_ns\": %" PRIu64 ", \"retries\": %" PRIu64 ", \"latency\": {",
		t->min_ns, t->max_ns, t->retries);
	for (unsigned i = 0; i < LATENCY_CLASSES; i++) {
		if (t->latency[i] == 0)
			continue;
		buf_printf(out, "%s\"%" PRIu64 "\": %" PRIu64, comma, class_bound(i), t->latency[i]);
		comma = ", ";
	}
	buf_printf(out, "}");
}

void truth_string(struct buf *out, const char *text)
{
	buf_byte(out, '"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c < 0x20)
			buf_printf(out, "\\u%04x", c);
		else
			buf_byte(out, c);
	}
	buf_byte(out, '"');
}
