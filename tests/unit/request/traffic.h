// SPDX-License-Identifier: Apache-2.0
// Events as the kernel side would tell them, from a few words: connections, threads and a clock of their own.
#ifndef TESTS_REQUEST_TRAFFIC_H
#define TESTS_REQUEST_TRAFFIC_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "request/flow.h"

#define MS 1000000ull
#define GOT_MAX 64
#define TIDS 16

struct traffic {
	struct flow *flow;
	struct breakdown_table table;
	struct request_record got[GOT_MAX];
	unsigned n, attributed, ignored;
	uint64_t now; // ns
	uint32_t sequence[32];
	struct req_sums sums[TIDS];
	uint32_t jvm; // of the process, with what it has stood still
	uint64_t gc, safepoint;
};

static inline void traffic_ended(void *context, struct request_record *r)
{
	struct traffic *t = context;

	if (t->n < GOT_MAX)
		t->got[t->n] = *r;
	t->n++;
}

static inline void traffic_attributed(void *context, uint32_t tid, const struct req_sums *from, const struct req_sums *to)
{
	((struct traffic *)context)->attributed++;
}

static inline void traffic_ignore(void *context, uint64_t connection)
{
	((struct traffic *)context)->ignored++;
}

static inline struct traffic *traffic_new(unsigned connections, unsigned requests, size_t heads)
{
	struct traffic *t = calloc(1, sizeof(*t));
	struct flow_options o = { .max_connections = connections, .max_requests = requests, .max_heads = heads,
				  .ended = traffic_ended, .attributed = traffic_attributed, .ignore = traffic_ignore, .context = t };

	breakdown_table_init(&t->table);
	o.metrics = &t->table;
	t->flow = flow_new(&o);
	flow_set_clock(t->flow, 1000000000000ll);
	t->now = 1000 * MS;
	return t;
}

static inline void traffic_free(struct traffic *t)
{
	flow_free(t->flow);
	free(t);
}

// Time in which the thread runs.
static inline void runs(struct traffic *t, unsigned tid, uint64_t ns)
{
	t->now += ns;
	t->sums[tid].oncpu += ns;
}

static inline void blocks(struct traffic *t, unsigned tid, unsigned why, uint64_t ns)
{
	t->now += ns;
	t->sums[tid].blocked[why] += ns;
}

static inline int event(struct traffic *t, unsigned type, unsigned connection, unsigned tid, int64_t result, const char *text, size_t size)
{
	struct {
		struct req_event e;
		char payload[REQ_PAYLOAD_MAX];
	} r = { .e = { .type = (u16)type, .tgid = 7, .tid = tid, .connection = connection, .enter = t->now, .exit = t->now,
		       .result = result, .fd = 22, .sequence = ++t->sequence[connection % 32], .comm = "worker" } };

	if (size > REQ_PAYLOAD_MAX)
		size = REQ_PAYLOAD_MAX;
	r.e.payload_size = (u16)size;
	r.e.sums = t->sums[tid];
	r.e.jvm = t->jvm;
	r.e.gc = t->gc;
	r.e.safepoint = t->safepoint;
	memcpy(r.payload, text, size);
	if (type == REQ_NEXT)
		return flow_event(t->flow, &r, offsetof(struct req_event, sums));
	return flow_event(t->flow, &r, sizeof(r.e) + size);
}

static inline void reads(struct traffic *t, unsigned connection, unsigned tid, const char *text)
{
	event(t, REQ_READ, connection, tid, (int64_t)strlen(text), text, strlen(text));
}

// A read of which the kernel side kept only the beginning.
static inline void reads_cut(struct traffic *t, unsigned connection, unsigned tid, const char *text, int64_t bytes)
{
	event(t, REQ_READ, connection, tid, bytes, text, strlen(text));
}

static inline void reads_nothing(struct traffic *t, unsigned connection, unsigned tid)
{
	event(t, REQ_READ, connection, tid, -EAGAIN, "", 0);
}

static inline void reads_end(struct traffic *t, unsigned connection, unsigned tid)
{
	event(t, REQ_READ, connection, tid, 0, "", 0);
}

static inline void writes(struct traffic *t, unsigned connection, unsigned tid, const char *text)
{
	size_t size = strlen(text);

	event(t, REQ_WRITE, connection, tid, (int64_t)size, text, size < 64 ? size : 64);
}

static inline void cannot_write(struct traffic *t, unsigned connection, unsigned tid)
{
	event(t, REQ_WRITE, connection, tid, -EAGAIN, "", 0);
}

static inline void asks_next(struct traffic *t, unsigned connection, unsigned tid)
{
	event(t, REQ_NEXT, connection, tid, 0, "", 0);
}

static inline void closes(struct traffic *t, unsigned connection, unsigned tid)
{
	event(t, REQ_CLOSE, connection, tid, 0, "", 0);
}

static inline uint64_t value(const struct request_record *r, unsigned metric)
{
	return r->times.value[metric];
}

#define GET "GET /solr/books/select?q=secret&rows=10 HTTP/1.1\r\nHost: x\r\n\r\n"
#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

#endif
