// SPDX-License-Identifier: Apache-2.0
// One request, from its head to its record.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "request/flow_internal.h"
#include "request/sums.h"

void request_missing(struct request_record *r, const char *what)
{
	size_t used = strlen(r->missing);

	r->incomplete = true;
	if (strstr(r->missing, what))
		return;
	snprintf(r->missing + used, sizeof(r->missing) - used, "%s%s", used ? "," : "", what);
}

static void copy_text(char *out, size_t cap, struct http_text t)
{
	text_sanitize(out, cap, t.at ? t.at : "", t.len);
}

// "00-TRACE-SPAN-FLAGS".
static void take_traceparent(struct request_record *r, struct http_text t)
{
	if (t.len < 55 || t.at[2] != '-' || t.at[35] != '-' || t.at[52] != '-')
		return;
	if (!*r->trace_id)
		text_sanitize(r->trace_id, sizeof(r->trace_id), t.at + 3, 32);
	text_sanitize(r->parent_span, sizeof(r->parent_span), t.at + 36, 16);
}

static struct request_record *new_record(struct flow *f, const struct http_head *head)
{
	const struct target_rules *rules = f->options.rules ? f->options.rules : &f->no_rules;
	struct request_record *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->kind = REQUEST_ONE;
	if (!head) {
		request_missing(r, "request_line");
		return r;
	}
	copy_text(r->method, sizeof(r->method), head->method);
	copy_text(r->proto, sizeof(r->proto), head->proto);
	copy_text(r->trace_id, sizeof(r->trace_id), head->trace_id);
	take_traceparent(r, head->traceparent);
	target_parse(rules, head->target, r);
	return r;
}

static struct owner *owner_of(const struct flow *f, uint32_t tid)
{
	struct owner *o;

	HASH_FIND(hh, f->owners, &tid, sizeof(tid), o);
	return o;
}

bool flow_thread_busy(const struct flow *f, uint32_t tid)
{
	return owner_of(f, tid) != NULL;
}

static void release(struct flow *f, struct open_request *r)
{
	struct owner *o = r->bound ? owner_of(f, r->tid) : NULL;

	r->bound = false;
	if (!o || o->request != r)
		return;
	HASH_DEL(f->owners, o);
	free(o);
}

// The thread works on this request now. One that it has not answered yet shares it.
static void own(struct flow *f, struct open_request *r, uint32_t tid)
{
	struct owner *o;

	if (r->bound && r->tid == tid)
		return;
	release(f, r);
	o = owner_of(f, tid);
	if (o && !o->request->answered)
		o->request->shared = r->shared = true;
	if (!o) {
		o = calloc(1, sizeof(*o));
		if (!o)
			return;
		o->tid = tid;
		HASH_ADD(hh, f->owners, tid, sizeof(o->tid), o);
		if (!o->hh.tbl) {
			free(o);
			return;
		}
	} else {
		o->request->bound = false;
	}
	o->request = r;
	r->tid = tid;
	r->bound = true;
}

static struct pauses pauses_of(const struct req_event *e)
{
	return (struct pauses){ e->jvm, e->gc, e->safepoint };
}

static void rebase(struct flow *f, struct open_request *r, const struct req_event *e)
{
	own(f, r, e->tid);
	r->tid = e->tid;
	r->tgid = e->tgid;
	r->base = r->last = e->sums;
	r->base_time = e->exit;
	r->calls_ns = r->disk_max = r->disk_dev = 0;
	r->waits = false;
	memset(r->client_blocked, 0, sizeof(r->client_blocked));
	memcpy(r->comm, e->comm, sizeof(r->comm));
}

struct open_request *request_open(struct flow *f, struct connection *c, const struct req_event *e, const struct http_head *head)
{
	struct open_request *r;

	if (f->n_requests >= f->options.max_requests || c->n >= PIPELINE_MAX) {
		f->counts[FLOW_REQUESTS_EVICTED]++;
		connection_unseen(f, c, 1);
		return NULL;
	}
	r = calloc(1, sizeof(*r));
	if (r)
		r->record = new_record(f, head);
	if (!r || !r->record) {
		free(r);
		f->counts[FLOW_REQUESTS_EVICTED]++;
		connection_unseen(f, c, 1);
		return NULL;
	}
	f->n_requests++;
	r->connection = c;
	r->upgrade_h2c = head && head->upgrade_h2c;
	r->expects = head && head->expects_continue;
	r->start = c->head_start ? c->head_start : e->exit;
	r->paused_base = r->paused = pauses_of(e);
	r->record->number = ++c->requests;
	r->record->connection = c->key;
	if (c->first) {
		c->end->next = r;
		r->tgid = e->tgid;
	} else {
		c->first = r;
		rebase(f, r, e);
	}
	c->end = r;
	c->n++;
	return r;
}

void request_bind(struct flow *f, struct open_request *r, const struct req_event *e)
{
	if (r->answered)
		return;
	if (!r->bound || r->tid != e->tid)
		rebase(f, r, e);
	else
		r->calls_ns += e->exit - e->enter;
}

void request_wait(struct open_request *r, const struct req_event *e)
{
	r->waits = r->tid == e->tid;
	memcpy(r->wait_blocked, e->sums.blocked, sizeof(r->wait_blocked));
}

void request_waited(struct open_request *r, const struct req_event *e)
{
	if (r->waits && r->tid == e->tid)
		for (unsigned i = 0; i < WAITS; i++)
			if (i != WAIT_DISK && e->sums.blocked[i] > r->wait_blocked[i])
				r->client_blocked[i] += e->sums.blocked[i] - r->wait_blocked[i];
	r->waits = false;
}

static void note_disk(struct open_request *r, const struct req_event *e)
{
	if (e->sums.disk_max_ns <= r->disk_max)
		return;
	r->disk_max = e->sums.disk_max_ns;
	r->disk_dev = e->sums.disk_max_dev;
}

void request_disk(struct open_request *r, const struct req_event *e)
{
	if (r->tid == e->tid)
		note_disk(r, e);
}

void request_written(struct flow *f, struct open_request *r, const struct req_event *e, uint64_t bytes)
{
	if (e->tid != r->tid) {
		r->handed_over = true;
		release(f, r);
		r->tid = e->tid;
		memcpy(r->comm, e->comm, sizeof(r->comm));
	} else if (!r->bound && !r->handed_over) {
		r->shared = true; // its thread has begun another one meanwhile
	}
	if (!r->answered) {
		r->answered = true;
		r->first_write = e->enter;
	}
	note_disk(r, e);
	r->resp_bytes += bytes;
	r->calls_ns += e->exit - e->enter;
	r->last = e->sums;
	r->paused = pauses_of(e);
	r->end = e->exit;
}

// Time blocked for the client is not for locks, polls and sockets.
static void set_client_wait(struct open_request *r, struct breakdown *b)
{
	static const unsigned metrics[WAITS] = { METRIC_DISK_WAIT, METRIC_LOCK_WAIT,  METRIC_NET_WAIT, METRIC_POLL_WAIT,
						 METRIC_PIPE_WAIT, METRIC_SLEEP_WAIT, METRIC_OTHER_WAIT };
	uint64_t client = 0, net, head = r->base_time > r->start ? r->base_time - r->start : 0;

	for (unsigned i = 0; i < WAITS; i++) {
		uint64_t part = r->client_blocked[i] < b->value[metrics[i]] ? r->client_blocked[i] : b->value[metrics[i]];

		b->value[metrics[i]] -= part;
		client += part;
	}
	// Calls that wait themselves, on this connection.
	net = r->calls_ns < b->value[METRIC_NET_WAIT] ? r->calls_ns : b->value[METRIC_NET_WAIT];
	b->value[METRIC_NET_WAIT] -= net;
	// Until the thread that served it had all of the head.
	breakdown_set(b, METRIC_CLIENT_WAIT, client + net + head);
	b->value[METRIC_BLOCKED] += head;
}

// Of a CPU's clock against another's.
#define SKEW_NS 1000000

static void set_pause(struct breakdown *b, unsigned metric, uint64_t from, uint64_t to)
{
	int64_t between = (int64_t)(to - from);

	if (between < -SKEW_NS)
		breakdown_missing(b, metric);
	else
		breakdown_set(b, metric, between > 0 ? (uint64_t)between : 0);
}

// The whole process stands still, whoever of its threads serves the request.
static void set_pauses(const struct open_request *r, struct breakdown *b)
{
	const struct pauses *from = &r->paused_base, *to = &r->paused;

	if (from->jvm == JVM_NONE && to->jvm == JVM_NONE)
		return;
	if (from->jvm == JVM_SEEN && to->jvm == JVM_SEEN && r->answered) {
		set_pause(b, METRIC_GC, from->gc, to->gc);
		set_pause(b, METRIC_SAFEPOINT, from->safepoint, to->safepoint);
		return;
	}
	breakdown_missing(b, METRIC_GC);
	breakdown_missing(b, METRIC_SAFEPOINT);
}

static void set_times(struct flow *f, struct open_request *r, struct breakdown *b)
{
	breakdown_set(b, METRIC_DURATION, r->end > r->start ? r->end - r->start : 0);
	breakdown_set(b, METRIC_REQ_BYTES, r->req_bytes);
	if (r->end_unseen)
		breakdown_missing(b, METRIC_RESP_BYTES);
	else
		breakdown_set(b, METRIC_RESP_BYTES, r->resp_bytes);
	if (r->first_write)
		breakdown_set(b, METRIC_TTFB, r->first_write > r->start ? r->first_write - r->start : 0);
	if (r->lost)
		breakdown_set(b, METRIC_DROPPED, r->lost);
	if (r->handed_over || r->shared || !r->answered) {
		sums_missing(b);
		sums_plugins(f->options.metrics, NULL, NULL, b);
	} else if (sums_between(&r->base, &r->last, b)) {
		set_client_wait(r, b);
		sums_plugins(f->options.metrics, &r->base, &r->last, b);
		if (r->disk_max)
			breakdown_set(b, METRIC_DISK_MAX, r->disk_max);
		if (f->options.attributed)
			f->options.attributed(f->options.context, r->tid, &r->base, &r->last);
	}
	set_pauses(r, b);
	breakdown_derive(b);
}

static void complete(struct flow *f, struct open_request *r, enum request_end why)
{
	struct request_record *record = r->record;

	if (!r->answered) {
		r->end = r->connection->last > r->start ? r->connection->last : r->start;
		request_missing(record, "answer");
	} else if (!record->status) {
		request_missing(record, "status");
	}
	if (r->lost)
		request_missing(record, "events");
	if (r->handed_over)
		request_missing(record, "hand_over");
	if (r->shared)
		request_missing(record, "shared_thread");
	record->attribution = r->shared ? ATTRIBUTION_SHARED_THREAD : r->handed_over ? ATTRIBUTION_HANDLER_THREAD : ATTRIBUTION_EXACT;
	record->ended = why;
	record->pid = r->tgid;
	record->tid = r->tid;
	record->start = r->start + (uint64_t)f->clock;
	record->end = r->end + (uint64_t)f->clock;
	text_sanitize(record->comm, sizeof(record->comm), r->comm, sizeof(r->comm));
	record->device_number = r->disk_dev;
	set_times(f, r, &record->times);
	f->counts[FLOW_REQUESTS]++;
	f->counts[FLOW_INCOMPLETE] += record->incomplete;
	f->counts[FLOW_HANDED_OVER] += r->handed_over;
	f->counts[FLOW_SHARED] += r->shared;
}

void connection_unseen(struct flow *f, struct connection *c, uint64_t n)
{
	uint64_t *sum = c->end ? &c->end->behind : &c->unseen;

	*sum = n == UNCOUNTED || *sum == UNCOUNTED ? UNCOUNTED : *sum + n;
	if (c->unseen == UNCOUNTED)
		connection_doubt(f, c);
}

// The next one of a pipeline begins when the one before has been answered.
static void promote(struct flow *f, struct open_request *next, const struct open_request *before)
{
	if (before->end > next->start && !before->coalesced)
		next->start = before->end;
	next->shared |= before->coalesced;
	next->base = next->last = before->last;
	if (before->answered)
		next->paused_base = next->paused = before->paused;
	next->base_time = next->start;
	memcpy(next->comm, before->comm, sizeof(next->comm));
	if (before->answered)
		own(f, next, before->tid);
	next->tid = before->tid;
	next->tgid = before->tgid;
}

void request_waits_on(struct flow *f, struct open_request *r, const struct req_event *e)
{
	if (r->answered)
		return;
	if (e->exit > r->start)
		r->start = e->exit;
	r->paused_base = r->paused = pauses_of(e);
	rebase(f, r, e);
}

// Behind it there may be some that were not seen: theirs are the next answers.
static void leave(struct flow *f, struct open_request *r)
{
	struct connection *c = r->connection;

	c->first = r->next;
	c->n--;
	f->n_requests--;
	release(f, r);
	if (r->next)
		promote(f, r->next, r);
	else
		c->end = NULL;
	if (r->behind)
		c->unseen = r->behind == UNCOUNTED || c->unseen == UNCOUNTED ? UNCOUNTED : c->unseen + r->behind;
	if (c->unseen == UNCOUNTED)
		connection_doubt(f, c);
}

void request_finish(struct flow *f, struct open_request *r, enum request_end why)
{
	leave(f, r);
	complete(f, r, why);
	if (f->options.ended)
		f->options.ended(f->options.context, r->record);
	record_free(r->record);
	free(r->record);
	free(r);
}
