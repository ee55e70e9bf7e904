// SPDX-License-Identifier: Apache-2.0
// What is written to a connection: whose answer it is. Answers to a pipeline may come several in one write, or one in many;
// where one ends is known from its head as far as that was kept. Where it is not, nobody is given another's answer.
#include <errno.h>
#include <string.h>

#include "request/flow_internal.h"

#define STATUS_SIZE sizeof(((struct open_request *)0)->answer)

static bool is_started(const struct connection *c)
{
	return c->unseen_answer || (c->first && c->first->answered);
}

// Others wait for their answers behind the one that is being written.
static bool others_wait(const struct connection *c)
{
	if (c->unseen_answer)
		return c->first || c->unseen;
	return c->first && (c->first->next || c->first->behind);
}

static bool is_whole(const struct connection *c)
{
	return is_started(c) && c->answer.kind == BODY_NONE && (c->unseen_answer || c->first->record->status);
}

void connection_doubt(struct flow *f, struct connection *c)
{
	if (c->doubtful)
		return;
	c->doubtful = true;
	c->unseen_answer = false;
	f->counts[FLOW_PIPELINES_LOST]++;
	if (!c->first || !c->first->answered)
		return;
	c->first->shared = c->first->end_unseen = true;
	request_missing(c->first->record, "answer_end");
	request_finish(f, c->first, END_NEXT_RESPONSE);
}

// The one whose answer is whole is over, and the next answer begins: in the same write, or in this one.
static void next_answer(struct flow *f, struct connection *c, bool same_write)
{
	if (c->unseen_answer) {
		c->unseen_answer = false;
		if (c->first)
			c->first->shared |= same_write;
		return;
	}
	c->first->coalesced |= same_write;
	c->first->shared |= same_write;
	request_finish(f, c->first, END_NEXT_RESPONSE);
}

static bool has_no_body(int status, const char *method)
{
	return status == 204 || status == 304 || !strcmp(method, "HEAD");
}

static void set_answer(struct connection *c, const struct http_answer *a, const char *method)
{
	if (!a || a->bad_header || a->status == 101 || !strcmp(method, "CONNECT"))
		body_open(&c->answer);
	else if (has_no_body(a->status, method))
		body_of_length(&c->answer, 0);
	else if (a->chunked)
		body_in_chunks(&c->answer);
	else if (a->has_length)
		body_of_length(&c->answer, a->content_length);
	else
		body_open(&c->answer);
}

// What follows in this write may hold the begin of another answer that is not seen.
static bool may_hide_another(const struct connection *c, const struct piece *was)
{
	static const char begin[] = "HTTP/1.";

	if (c->answer.kind != BODY_OPEN)
		return false;
	return was->known < was->total || (was->known > 1 && memmem(was->at + 1, was->known - 1, begin, sizeof(begin) - 1));
}

static uint64_t take_body(struct connection *c, struct piece *p, bool *hides)
{
	struct piece was = *p;
	uint64_t part = body_take(&c->answer, p);

	*hides = may_hide_another(c, &was);
	return part;
}

// Refused before its body was asked for: what comes next is another request.
static void no_body(struct connection *c)
{
	c->first->expects = false;
	body_of_length(&c->body, 0);
}

// The first bytes of an answer tell its status; 0 while they do not.
static int answer_status(struct open_request *r, const struct piece *p)
{
	size_t more = STATUS_SIZE - r->answer_size;

	if (more > p->known)
		more = p->known;
	memcpy(r->answer + r->answer_size, p->at, more);
	r->answer_size += (unsigned)more;
	return http_parse_status(r->answer, r->answer_size);
}

static bool is_interim(int status)
{
	return status >= 100 && status < 200 && status != 101;
}

static void switch_protocol(struct flow *f, struct connection *c)
{
	f->counts[c->first->upgrade_h2c ? FLOW_H2 : FLOW_NOT_HTTP]++;
	request_finish(f, c->first, END_NEXT_RESPONSE);
	c->ignored = true;
	if (f->options.ignore)
		f->options.ignore(f->options.context, c->key);
}

static void take_all(struct piece *p)
{
	piece_advance(p, p->total);
}

// An answer to a request that was not seen: it is counted, and the requests behind it wait on.
static void begin_unseen(struct flow *f, struct connection *c, const struct req_event *e, struct piece *p)
{
	int status = http_parse_status(p->at, p->known);
	struct http_answer a;
	bool known = http_parse_answer(p->at, p->known, &a), hides = false;

	if (is_interim(status) && known) {
		piece_advance(p, a.size);
		return;
	}
	if (status < 0 || !p->known)
		connection_doubt(f, c);
	if (status < 200) {
		take_all(p);
		return;
	}
	f->counts[FLOW_ANSWERS_UNMATCHED]++;
	c->unseen--;
	c->unseen_answer = true;
	set_answer(c, known ? &a : NULL, "");
	if (known)
		piece_advance(p, a.size);
	take_body(c, p, &hides);
	if (c->first)
		request_waits_on(f, c->first, e);
	if (hides && others_wait(c))
		connection_doubt(f, c);
}

static void begin_answer(struct flow *f, struct connection *c, const struct req_event *e, struct piece *p)
{
	bool within = p->total != (uint64_t)e->result;
	struct open_request *r = c->first;
	bool fresh = !r->answer_size, hides = false;
	struct http_answer a = { 0 };
	bool known = http_parse_answer(p->at, p->known, &a) && fresh;
	int status = answer_status(r, p);
	uint64_t part = known ? a.size : 0;

	if (is_interim(status)) {
		part = part ? part : p->total;
		r->expects = false;
		r->resp_bytes += part;
		r->answer_size = 0;
		piece_advance(p, part);
		return;
	}
	// The rest of the answer before, whose end was not known; or a server that does not keep to what it says.
	if (!status && fresh && p->known && (within || r->record->number > 1)) {
		r->answer_size = 0;
		if (within || others_wait(c))
			connection_doubt(f, c);
		take_all(p);
		return;
	}
	r->record->status = status > 0 ? status : 0;
	if (r->expects && status >= 200 && !r->next)
		no_body(c);
	set_answer(c, known ? &a : NULL, r->record->method);
	piece_advance(p, part);
	part += take_body(c, p, &hides);
	request_written(f, r, e, part);
	if (status == 101)
		switch_protocol(f, c);
	else if (hides && others_wait(c))
		connection_doubt(f, c);
}

static void go_on(struct flow *f, struct connection *c, const struct req_event *e, struct piece *p)
{
	bool hides = false;
	uint64_t part;

	if (c->answer.kind == BODY_NONE)
		body_open(&c->answer); // more than it was to be
	part = take_body(c, p, &hides);
	if (!c->unseen_answer)
		request_written(f, c->first, e, part);
	else if (c->first)
		request_waits_on(f, c->first, e);
	if (hides && others_wait(c))
		connection_doubt(f, c);
}

static bool status_is_in_pieces(const struct connection *c)
{
	const struct open_request *r = c->first;

	return !c->unseen_answer && r && r->answered && !r->record->status && r->answer_size && r->answer_size < STATUS_SIZE;
}

// A write that begins as an answer does, where the end of the one before is not known, or the rest of it was not seen.
static void begins_next(struct flow *f, struct connection *c, const struct piece *p)
{
	bool followed = body_is_followed(&c->answer);

	if (!is_started(c) || !others_wait(c) || is_whole(c) || http_parse_status(p->at, p->known) <= 0)
		return;
	if (status_is_in_pieces(c) || (followed && !c->asked))
		return;
	if (followed && !c->unseen_answer)
		request_missing(c->first->record, "answer_end");
	next_answer(f, c, false);
}

static void take_answers(struct flow *f, struct connection *c, const struct req_event *e, const char *payload)
{
	struct piece p = { payload, e->payload_size, (uint64_t)e->result };

	begins_next(f, c, &p);
	while (p.total && !c->ignored && !c->doubtful) {
		bool within = p.total != (uint64_t)e->result;

		if (is_whole(c) && others_wait(c))
			next_answer(f, c, within);
		else if (is_started(c) && !status_is_in_pieces(c))
			go_on(f, c, e, &p);
		else if (within && p.known < p.total && p.known < STATUS_SIZE && others_wait(c))
			connection_doubt(f, c); // it begins out of sight
		else if (c->unseen)
			begin_unseen(f, c, e, &p);
		else if (c->first)
			begin_answer(f, c, e, &p);
		else
			break;
	}
	if (c->doubtful && p.total)
		f->counts[FLOW_ANSWERS_UNMATCHED] += http_parse_status(p.at, p.known) > 0;
}

void connection_written(struct flow *f, struct connection *c, const struct req_event *e, const char *payload)
{
	int status = e->result > 0 ? http_parse_status(payload, e->payload_size) : 0;

	if (status && !c->first && !c->unseen && !c->unseen_answer && c->head.len && !c->doubtful)
		connection_answered_early(f, c, e);
	if (c->doubtful || (!c->first && !c->unseen && !c->unseen_answer)) {
		f->counts[FLOW_ANSWERS_UNMATCHED] += status > 0;
		return;
	}
	if (c->first) {
		request_waited(c->first, e);
		if (e->result == -EAGAIN) {
			request_disk(c->first, e);
			request_wait(c->first, e);
		}
	}
	if (e->result <= 0)
		return;
	take_answers(f, c, e, payload);
	c->asked = false;
}
