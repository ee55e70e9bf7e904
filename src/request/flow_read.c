// SPDX-License-Identifier: Apache-2.0
// What is read from a connection: heads in pieces, bodies, several requests in one read, and holes where the kernel side
// kept only the beginning.
#include <string.h>

#include "request/flow_internal.h"

void connection_head_free(struct flow *f, struct connection *c)
{
	f->heads -= c->head.len;
	buf_free(&c->head);
	c->head_start = 0;
}

static void count_read(struct flow *f, struct connection *c, const struct req_event *e, uint64_t bytes)
{
	if (!c->end)
		return;
	c->end->req_bytes += bytes;
	c->end->expects = false;
	request_bind(f, c->first, e);
}

static void lose_sight(struct flow *f, struct connection *c)
{
	connection_head_free(f, c);
	c->blind = true;
	body_of_length(&c->body, 0);
}

static void not_http(struct flow *f, struct connection *c, enum flow_count what, bool ignore)
{
	f->counts[what]++;
	lose_sight(f, c);
	if (!ignore)
		return;
	c->ignored = true;
	if (f->options.ignore)
		f->options.ignore(f->options.context, c->key);
}

static void opened(struct flow *f, struct connection *c, const struct req_event *e, const struct http_head *head, uint64_t bytes)
{
	struct open_request *r = request_open(f, c, e, head);

	if (r)
		r->req_bytes = bytes;
	connection_head_free(f, c);
}

static void take_head(struct flow *f, struct connection *c, const struct req_event *e, const struct http_head *head, struct piece *p)
{
	size_t had = c->head.len - p->known; // of it, in earlier reads

	if (head->chunked)
		body_in_chunks(&c->body);
	else
		body_of_length(&c->body, head->has_length ? head->content_length : 0);
	opened(f, c, e, head, head->size);
	piece_advance(p, head->size > had ? head->size - had : 0);
}

// A head that goes on behind what the kernel side kept: its first line is all there will be of it.
static void take_cut_head(struct flow *f, struct connection *c, const struct req_event *e, struct piece *p)
{
	struct http_head head;
	bool known = http_first_line(c->head.data, c->head.len, &head), of_many = c->n || c->unseen;
	struct open_request *r;

	opened(f, c, e, known ? &head : NULL, c->head.len - p->known + p->total);
	r = c->end;
	if (r && r->record)
		request_missing(r->record, "headers");
	if (of_many)
		connection_unseen(f, c, UNCOUNTED); // more of a pipeline, most likely
	body_open(&c->body);
	p->total = 0;
}

static bool keep_head(struct flow *f, struct connection *c, const struct req_event *e, const struct piece *p)
{
	if (!c->head.len)
		c->head_start = e->exit;
	if (f->heads + p->known > f->options.max_heads || c->head.len + p->known > HTTP_HEAD_MAX) {
		f->counts[FLOW_HEADS_DROPPED]++;
		return false;
	}
	buf_append(&c->head, p->at, p->known);
	if (c->head.error)
		return false;
	f->heads += p->known;
	return true;
}

// A head whose first line was looked at is whole when an empty line comes: others of its bytes need no look at all of it.
static bool may_be_whole(const struct connection *c, const struct piece *p)
{
	const char *data = (const char *)c->head.data, *end = data + c->head.len;
	size_t old = c->head.len - p->known;
	const char *at = data + (old > 2 ? old - 2 : 0);

	if (!old || !memchr(data, '\n', old))
		return true;
	for (; (at = memchr(at, '\n', (size_t)(end - at))); at++) {
		size_t left = (size_t)(end - at);

		if ((left > 1 && at[1] == '\n') || (left > 2 && at[1] == '\r' && at[2] == '\n'))
			return true;
	}
	return false;
}

static enum http_result parse_kept(const struct flow *f, const struct connection *c, const struct piece *p, struct http_head *ret)
{
	return may_be_whole(c, p) ? http_parse_head(c->head.data, c->head.len, f->options.trace_header, ret) : HTTP_MORE;
}

static void read_head(struct flow *f, struct connection *c, const struct req_event *e, struct piece *p)
{
	struct http_head head;

	if (!keep_head(f, c, e, p)) {
		lose_sight(f, c);
		p->total = 0;
		return;
	}
	switch (parse_kept(f, c, p, &head)) {
	case HTTP_HEAD:
		take_head(f, c, e, &head, p);
		return;
	case HTTP_MORE:
		if (p->known < p->total)
			take_cut_head(f, c, e, p);
		break;
	case HTTP_H2:
		not_http(f, c, FLOW_H2, true);
		break;
	case HTTP_TLS:
		not_http(f, c, FLOW_TLS, true);
		break;
	case HTTP_OTHER:
		not_http(f, c, FLOW_NOT_HTTP, false);
		break;
	}
	p->total = 0;
}

// After something that could not be followed, a read that begins like a request is one.
static bool in_sight(struct connection *c, const struct piece *p)
{
	struct http_head head;
	enum http_result how;

	if (!c->blind)
		return true;
	how = http_parse_head(p->at, p->known, NULL, &head);
	if (!p->known || how == HTTP_OTHER || (how == HTTP_MORE && p->known < 4))
		return false;
	c->blind = false;
	return true;
}

#define LINE_END 2 // clients that send one behind a body

// Requests that were read, and that nobody can see.
static void out_of_sight(struct flow *f, struct connection *c, uint64_t bytes)
{
	lose_sight(f, c);
	if (bytes > LINE_END)
		connection_unseen(f, c, UNCOUNTED);
}

void connection_data(struct flow *f, struct connection *c, const struct req_event *e, const char *payload)
{
	struct piece p = { payload, e->payload_size, (uint64_t)e->result };

	if (c->first)
		request_waited(c->first, e);
	if (!in_sight(c, &p)) {
		count_read(f, c, e, p.total);
		return;
	}
	while (p.total && !c->ignored) {
		if (c->body.kind) {
			count_read(f, c, e, body_take(&c->body, &p));
		} else if (!p.known) {
			out_of_sight(f, c, p.total); // behind a body that ended in what was not kept
			return;
		} else {
			read_head(f, c, e, &p);
		}
	}
}

void connection_answered_early(struct flow *f, struct connection *c, const struct req_event *e)
{
	struct http_head head;
	bool known = http_first_line(c->head.data, c->head.len, &head);
	size_t bytes = c->head.len;

	opened(f, c, e, known ? &head : NULL, bytes);
	if (c->first)
		request_missing(c->first->record, "headers");
	c->blind = true;
}
