// SPDX-License-Identifier: Apache-2.0
// Any order of any events. Each begins with eight bytes: type, connection, thread, what the result is, size of the text,
// what its sums do, and two that are added to the sequence and to the result; the text follows.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "request/flow.h"

#define CONNECTIONS 8
#define THREADS 4

struct run {
	struct flow *flow;
	struct breakdown_table table;
	uint32_t sequence[CONNECTIONS];
	struct req_sums sums[THREADS];
	uint64_t now, ended;
};

static void ended(void *context, struct request_record *r)
{
	struct run *run = context;
	struct buf json = { 0 };

	run->ended++;
	if (r->end < r->start || r->times.value[METRIC_DURATION] > run->now)
		abort();
	if (r->times.value[METRIC_GC] > run->now || r->times.value[METRIC_SAFEPOINT] > run->now + UINT8_MAX)
		abort();
	if (!r->incomplete && (!r->status || !*r->method))
		abort();
	record_json(r, &run->table, "host", &json);
	buf_free(&json);
}

static void change_sums(struct run *run, unsigned tid, uint8_t how)
{
	struct req_sums *s = &run->sums[tid];
	uint64_t took = how * 1000ull;

	run->now += took;
	if (how == 255) {
		memset(s, 0, sizeof(*s));
		return;
	}
	s->oncpu += took / 2;
	s->blocked[how % WAITS] += took - took / 2;
	s->calls[how % CALLS].ns += took;
	s->calls[how % CALLS].ops++;
	s->disk_max_ns = took;
}

static int64_t result_of(uint8_t kind, size_t text, uint8_t more)
{
	switch (kind % 6) {
	case 0:
		return 0;
	case 1:
		return -11;
	case 2:
		return -104;
	case 3:
		return (int64_t)text + more * 1000ll;
	default:
		return (int64_t)text;
	}
}

static size_t one_event(struct run *run, const uint8_t *data, size_t size)
{
	struct {
		struct req_event e;
		uint8_t text[256];
	} r;
	unsigned connection = data[1] % CONNECTIONS, tid = data[2] % THREADS;
	size_t text = data[4] < size - 8 ? data[4] : size - 8, record = sizeof(r.e);

	memset(&r, 0, sizeof(r));
	change_sums(run, tid, data[5]);
	r.e.type = data[0] % 7;
	r.e.connection = connection;
	r.e.tgid = 1;
	r.e.tid = tid;
	r.e.enter = run->now - (data[5] > run->now ? 0 : data[5]);
	r.e.exit = run->now;
	r.e.result = result_of(data[3], text, data[7]);
	r.e.sums = run->sums[tid];
	r.e.jvm = data[5] % 5;
	r.e.gc = run->now / 2;
	r.e.safepoint = run->now - data[6];
	run->sequence[connection] += 1 + (data[6] > 250 ? data[6] - 250u : 0);
	r.e.sequence = run->sequence[connection];
	if (r.e.result > 0) {
		r.e.payload_size = (u16)text;
		memcpy(r.text, data + 8, text);
		record += text;
	}
	flow_event(run->flow, &r, r.e.type == REQ_NEXT ? offsetof(struct req_event, sums) : record);
	if (data[7] == 255)
		flow_sweep(run->flow, run->now + data[6] * 30000000000ull);
	return 8 + text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run run = { .now = 1 };
	struct flow_options o = { .metrics = &run.table, .max_connections = 6, .max_requests = 20, .max_heads = 600, .ended = ended,
				  .context = &run };

	breakdown_table_init(&run.table);
	run.flow = flow_new(&o);
	while (size >= 8) {
		size_t used = one_event(&run, data, size);

		data += used;
		size -= used;
	}
	flow_end(run.flow, 0, run.now);
	if (flow_open(run.flow) || flow_connections(run.flow) || run.ended != flow_count(run.flow, FLOW_REQUESTS))
		abort();
	flow_free(run.flow);
	return 0;
}
