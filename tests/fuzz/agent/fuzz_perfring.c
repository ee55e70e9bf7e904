// SPDX-License-Identifier: Apache-2.0
// The bytes are a perf ring that has wrapped: every record is followed into a small process table. The first two bytes
// choose where the ring begins.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/perfring.h"
#include "agent/proctable.h"

#define RING 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void look_up(struct proctable *t, const struct proc_event *ev)
{
	struct proc *p = proctable_find(t, ev->pid, ev->time_ns);
	struct proc_mapping *m = p ? proctable_lookup(p, ev->start, ev->time_ns) : NULL;

	if (m && (ev->start < m->start || ev->start >= m->limit))
		abort();
	if (m && strlen(proc_text_string(m->file)) > 4096)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t scratch[PERF_RECORD_SIZE_MAX];
	struct proctable *t = proctable_new(16384);
	struct proctable_stats stats;
	struct perf_view v = { .size = RING, .scratch = scratch };
	struct proc_event ev;
	uint8_t *ring;
	size_t size;

	if (len < 2 || !t) {
		proctable_free(t);
		return 0;
	}
	v.tail = (uint64_t)(data[0] | data[1] << 8) & (RING - 8);
	data += 2;
	len -= 2;
	if (len > RING)
		len = RING;
	ring = calloc(1, RING);
	for (size_t i = 0; i < len; i++)
		ring[(v.tail + i) % RING] = data[i];
	v.data = ring;
	v.head = v.tail + len;
	while (!perf_view_peek(&v, &ev, &size)) {
		proctable_apply(t, &ev);
		look_up(t, &ev);
		v.tail += size;
	}
	proctable_forget(t, ev.time_ns);
	proctable_stats(t, &stats);
	if (stats.bytes > 16384)
		abort();
	proctable_free(t);
	free(ring);
	return 0;
}
