// SPDX-License-Identifier: Apache-2.0
#include "request/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "request/flow_internal.h"

#define SECOND 1000000000ull
#define SILENT_ANSWERED (60 * SECOND)	// an answer that is not gone on with for so long is over
#define SILENT_UNANSWERED (3600 * SECOND)

static const struct {
	const char *name, *help;
} counts[FLOW_COUNTS] = {
	[FLOW_REQUESTS] = { "requests", "requests seen" },
	[FLOW_INCOMPLETE] = { "incomplete", "requests of which something was not seen" },
	[FLOW_HANDED_OVER] = { "handed_over", "requests answered by another thread than read them: their times are not known" },
	[FLOW_SHARED] = { "shared_thread", "requests on a thread that had several open at once: their times are not known" },
	[FLOW_ANSWERS_UNMATCHED] = { "answers_unmatched", "answers whose request was not seen" },
	[FLOW_PIPELINES_LOST] = { "pipelines_lost", "connections with more requests at once than could be followed: they are told without their answers" },
	[FLOW_H2] = { "h2_connections", "HTTP/2 connections: their requests are not attributed (Solr speaks HTTP/1.1 between its nodes with -Dsolr.http1=true)" },
	[FLOW_TLS] = { "tls_connections", "TLS connections: their requests cannot be read" },
	[FLOW_NOT_HTTP] = { "not_http", "times that something on a connection was no HTTP" },
	[FLOW_EVENTS_LOST] = { "events_lost", "events of connections lost on the way" },
	[FLOW_CONNECTIONS_EVICTED] = { "connections_evicted", "connections forgotten because there are too many" },
	[FLOW_REQUESTS_EVICTED] = { "requests_evicted", "requests not followed because too many are open" },
	[FLOW_HEADS_DROPPED] = { "heads_dropped", "request heads dropped because they were too long or too many were not whole" },
	[FLOW_BAD_EVENTS] = { "bad_events", "events that were damaged" },
};

const char *flow_count_name(enum flow_count what)
{
	return counts[what].name;
}

const char *flow_count_help(enum flow_count what)
{
	return counts[what].help;
}

uint64_t flow_count(const struct flow *f, enum flow_count what)
{
	return f->counts[what];
}

unsigned flow_connections(const struct flow *f)
{
	return f->n_connections;
}

unsigned flow_open(const struct flow *f)
{
	return f->n_requests;
}

struct flow *flow_new(const struct flow_options *options)
{
	struct flow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->options = *options;
	if (!f->options.max_connections)
		f->options.max_connections = 65536;
	if (!f->options.max_requests)
		f->options.max_requests = 8192;
	if (!f->options.max_heads)
		f->options.max_heads = 4u << 20;
	TAILQ_INIT(&f->by_age);
	return f;
}

void flow_set_clock(struct flow *f, int64_t offset)
{
	f->clock = offset;
}

static void connection_end(struct flow *f, struct connection *c, enum request_end why)
{
	while (c->first)
		request_finish(f, c->first, why);
	connection_head_free(f, c);
	TAILQ_REMOVE(&f->by_age, c, by_age);
	HASH_DEL(f->connections, c);
	f->n_connections--;
	free(c);
}

static struct connection *connection_new(struct flow *f, uint64_t key)
{
	struct connection *c;

	if (f->n_connections >= f->options.max_connections) {
		f->counts[FLOW_CONNECTIONS_EVICTED]++;
		connection_end(f, TAILQ_FIRST(&f->by_age), END_IDLE);
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->key = key;
	HASH_ADD(hh, f->connections, key, sizeof(c->key), c);
	if (!c->hh.tbl) {
		free(c);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&f->by_age, c, by_age);
	f->n_connections++;
	return c;
}

static struct connection *connection_of(struct flow *f, const struct req_event *e)
{
	struct connection *c;

	HASH_FIND(hh, f->connections, &e->connection, sizeof(e->connection), c);
	if (c || e->type == REQ_CLOSE || e->type == REQ_NEXT)
		return c;
	c = connection_new(f, e->connection);
	// It has been told of before: forgotten meanwhile, and in the midst of something.
	if (c && e->sequence > 1) {
		c->blind = true;
		c->sequence = e->sequence - 1;
	}
	return c;
}

// The kernel side forgets a connection that was silent for long, and counts from 1 again: nothing was lost. Two threads at
// once on one connection may be told of in the other order, or with one number: the gap was counted before.
static bool is_late(struct connection *c, const struct req_event *e)
{
	if ((int32_t)(e->sequence - c->sequence) > 0)
		return false;
	if (e->sequence == 1)
		c->sequence = 1;
	return true;
}

// The answer, that the connection was asked for more, and the next request: an answer that comes now may be that one's.
#define LOST_A_REQUEST 3

static void lost_answers(struct flow *f, struct connection *c, uint32_t lost)
{
	if (body_is_followed(&c->answer))
		body_open(&c->answer);
	c->unseen_answer = false;
	if (!c->first)
		c->unseen = 0;
	else if (c->unseen || c->first->next || c->first->behind)
		connection_doubt(f, c);
	else if (!c->first->answered && lost >= LOST_A_REQUEST)
		request_finish(f, c->first, END_NEXT_READ);
}

// What was lost may have been anything.
static void check_sequence(struct flow *f, struct connection *c, const struct req_event *e)
{
	uint32_t lost = e->sequence - c->sequence - 1;

	if (is_late(c, e))
		return;
	c->sequence = e->sequence;
	if (!lost)
		return;
	f->counts[FLOW_EVENTS_LOST] += lost;
	for (struct open_request *r = c->first; r; r = r->next)
		r->lost += lost;
	connection_head_free(f, c);
	c->blind = true;
	body_of_length(&c->body, 0);
	lost_answers(f, c, lost);
}

// Its answer is whole once the connection is asked for more, unless the request's own body is still coming, or the rest of
// the answer.
static bool is_over(const struct connection *c)
{
	if (!c->first || !c->first->answered || body_is_followed(&c->answer))
		return false;
	return c->first->next || !body_is_followed(&c->body);
}

static void on_next(struct flow *f, struct connection *c, enum request_end why)
{
	c->asked = true;
	if (!body_is_followed(&c->answer))
		c->unseen_answer = false;
	while (c->doubtful && c->first)
		request_finish(f, c->first, why);
	if (!is_over(c))
		return;
	if (!c->first->next && c->body.kind == BODY_OPEN)
		body_of_length(&c->body, 0);
	request_finish(f, c->first, why);
}

static void on_read(struct flow *f, struct connection *c, const struct req_event *e, const char *payload)
{
	struct open_request *r = c->first;

	if (r && !r->answered)
		request_disk(r, e);
	if (e->result > 0) {
		on_next(f, c, END_NEXT_READ);
		connection_data(f, c, e, payload);
	} else if (e->result == -EAGAIN) {
		if (is_over(c))
			on_next(f, c, END_NEXT_READ);
		else if (r && !r->answered && c->body.kind)
			request_wait(r, e);
	} else if (is_over(c)) {
		on_next(f, c, END_EOF);
	}
}

static int bad_event(struct flow *f)
{
	f->counts[FLOW_BAD_EVENTS]++;
	return -EINVAL;
}

static int dispatch(struct flow *f, const struct req_event *e, const char *payload)
{
	struct connection *c = connection_of(f, e);

	if (!c || c->ignored) {
		if (c && e->type == REQ_CLOSE)
			connection_end(f, c, END_CLOSED);
		return 0;
	}
	check_sequence(f, c, e);
	c->last = e->exit;
	c->tgid = e->tgid;
	TAILQ_REMOVE(&f->by_age, c, by_age);
	TAILQ_INSERT_TAIL(&f->by_age, c, by_age);
	if (e->type == REQ_READ)
		on_read(f, c, e, payload);
	else if (e->type == REQ_WRITE)
		connection_written(f, c, e, payload);
	else if (e->type == REQ_NEXT)
		on_next(f, c, END_NEXT_READ);
	else
		connection_end(f, c, END_CLOSED);
	return 0;
}

int flow_event(struct flow *f, const void *record, size_t size)
{
	struct req_event copy;
	const struct req_event *e = &copy;

	if (size < offsetof(struct req_event, sums))
		return bad_event(f);
	// Those of the kernel side are looked at where they lie.
	if (size >= sizeof(copy) && !((uintptr_t)record % _Alignof(struct req_event))) {
		e = record;
	} else {
		memset(&copy, 0, sizeof(copy));
		memcpy(&copy, record, size < sizeof(copy) ? size : sizeof(copy));
	}
	if (e->type < REQ_READ || e->type > REQ_NEXT || (e->type != REQ_NEXT && size < sizeof(*e)) || e->exit < e->enter)
		return bad_event(f);
	if (e->type == REQ_EXIT)
		return 0;
	if (e->payload_size && (size < sizeof(*e) || e->payload_size > size - sizeof(*e) || e->result <= 0 || e->payload_size > e->result))
		return bad_event(f);
	return dispatch(f, e, (const char *)record + (size < sizeof(*e) ? size : sizeof(*e)));
}

void flow_sweep(struct flow *f, uint64_t now)
{
	struct connection *c, *next;

	for (c = TAILQ_FIRST(&f->by_age); c; c = next) {
		uint64_t age = now > c->last ? now - c->last : 0;

		next = TAILQ_NEXT(c, by_age);
		if (age < SILENT_ANSWERED)
			break;
		if (c->first && c->first->answered)
			request_finish(f, c->first, END_IDLE);
		if (age > SILENT_UNANSWERED)
			connection_end(f, c, END_IDLE);
	}
}

// Its answer was being written: it took until now at least.
static void cut_answer(struct connection *c, uint64_t now)
{
	struct open_request *r = c->first;

	if (c->unseen_answer || c->answer.kind == BODY_NONE)
		return;
	request_missing(r->record, "answer_end");
	if (now > r->end)
		r->end = now;
}

void flow_end(struct flow *f, uint32_t tgid, uint64_t now)
{
	struct connection *c, *next;

	for (c = TAILQ_FIRST(&f->by_age); c; c = next) {
		next = TAILQ_NEXT(c, by_age);
		if (tgid && c->tgid != tgid)
			continue;
		if (c->first && c->first->answered)
			cut_answer(c, now);
		else if (c->first && now > c->last)
			c->last = now;
		connection_end(f, c, END_STOPPED);
	}
}

void flow_free(struct flow *f)
{
	if (!f)
		return;
	f->options.ended = NULL;
	f->options.attributed = NULL;
	while (!TAILQ_EMPTY(&f->by_age))
		connection_end(f, TAILQ_FIRST(&f->by_age), END_STOPPED);
	free(f);
}
