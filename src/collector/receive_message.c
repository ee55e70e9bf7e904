// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collector/receive_internal.h"
#include "common/hash.h"
#include "wire/header.h"

// Who sent a message, as libzmq's handshake found out.
struct sender {
	char key[KEY_TEXT];	     // "" = plain
	char node[BATCH_NODE_MAX + 1]; // "" = any
	int fd;
};

void messages_say(const struct messages *m, const char *text)
{
	if (m->options.say)
		m->options.say(m->options.say_context, text);
}

// A line a second for each cause and key.
static void say_refused(struct messages *m, const struct sender *s, const char *why)
{
	uint64_t who = hash_bytes(s->key, strlen(s->key), hash_bytes(why, strcspn(why, ":'"), 1)), now = clock_monotonic();
	struct refusal *r = &m->refusals[who % REFUSALS];
	char text[640];

	if (r->who == who && now - r->said < 1000000000) {
		r->unsaid++;
		return;
	}
	snprintf(text, sizeof(text), "refused a message of %s%s%s%s: %s", s->key[0] ? "key " : "a connection without a key",
		 s->key, s->node[0] ? ", node " : "", s->node, why);
	if (r->who == who && r->unsaid)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " (%llu more since the last line)",
			 (unsigned long long)r->unsaid);
	*r = (struct refusal){ .who = who, .said = now };
	messages_say(m, text);
}

void messages_answer(struct messages *m, zmq_msg_t *peer, uint64_t token, enum reply_status status, const char *text)
{
	struct reply r = { .token = token, .status = status };
	struct buf out = { 0 };
	zmq_msg_t to;

	snprintf(r.text, sizeof(r.text), "%s", text);
	if (reply_encode(&r, &out))
		return; // no memory: the agent asks again
	zmq_msg_init(&to);
	// To a peer that is gone or does not read its answers it is dropped, and the agent sends its batch again.
	if (!zmq_msg_copy(&to, peer) && zmq_msg_send(&to, m->socket, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0)
		zmq_send(m->socket, out.data, out.len, ZMQ_DONTWAIT);
	zmq_msg_close(&to);
	buf_free(&out);
}

static void refuse(struct messages *m, zmq_msg_t *peer, uint64_t token, const struct sender *s, enum reply_status status,
		   uint64_t *counter, const char *why)
{
	metric_add(counter, 1);
	say_refused(m, s, why);
	messages_answer(m, peer, token, status, why);
}

static void malformed(struct messages *m, const struct sender *s, const char *why)
{
	metric_add(&m->options.counters->malformed, 1);
	say_refused(m, s, why);
	connections_cut(m->connections, s->fd);
}

static void who_sent(zmq_msg_t *payload, struct sender *ret)
{
	const char *key = zmq_msg_gets(payload, "User-Id");

	memset(ret, 0, sizeof(*ret));
	ret->fd = zmq_msg_get(payload, ZMQ_SRCFD);
	if (key && strlen(key) < sizeof(ret->key))
		strcpy(ret->key, key);
}

// Looked up for every message: the connection may be older than the list.
static bool allowed(struct messages *m, struct sender *s)
{
	uint8_t key[KEY_SIZE];

	if (!m->options.allow)
		return true;
	return !key_parse(s->key, key, NULL) && allow_node(m->options.allow, key, s->node);
}

static void keep(struct messages *m, zmq_msg_t *peer, zmq_msg_t *payload, struct batch *b, uint64_t token)
{
	struct group *g = m->group;
	struct waiting *w = &g->item[g->n++];

	zmq_msg_init(&w->peer);
	zmq_msg_move(&w->peer, peer);
	zmq_msg_init(&w->message);
	zmq_msg_move(&w->message, payload);
	w->batch = b;
	w->token = token;
	if (g->n == 1)
		g->due = clock_monotonic() + GROUP_WAIT_NS;
	g->bytes += zmq_msg_size(&w->message);
}

static void judge(struct messages *m, zmq_msg_t *peer, zmq_msg_t *payload, struct sender *s)
{
	struct collector_counters *c = m->options.counters;
	size_t size = zmq_msg_size(payload);
	struct message_header h;
	struct batch *b;
	struct error e, why;
	int err = message_header_get(zmq_msg_data(payload), size, &h, &e);

	if (err == -EBADMSG) {
		malformed(m, s, e.text);
		return;
	}
	if (!allowed(m, s)) {
		refuse(m, peer, h.token, s, REPLY_UNAUTHORIZED, &c->unknown_key, "the key is not in allowed_keys");
		return;
	}
	if (!err)
		err = batch_decode_borrow(zmq_msg_data(payload), size, &b, &e);
	if (err == -EPROTO) {
		refuse(m, peer, h.token, s, REPLY_VERSION, &c->version, e.text);
	} else if (err == -ENOMEM) {
		refuse(m, peer, h.token, s, REPLY_BUSY, &c->put_off, e.text);
	} else if (err) {
		refuse(m, peer, h.token, s, REPLY_REFUSED, &c->broken, e.text);
	} else if (s->node[0] && strcmp(s->node, b->node)) {
		error_set(&why, 0, "its key may not speak for another node: '%s'", b->node);
		batch_free(b);
		refuse(m, peer, h.token, s, REPLY_UNAUTHORIZED, &c->wrong_node, why.text);
	} else {
		keep(m, peer, payload, b, h.token);
	}
}

// The parts of a message that should have two: routing id and payload.
static int receive_parts(struct messages *m, zmq_msg_t *peer, zmq_msg_t *payload, bool *ret_more)
{
	zmq_msg_t rest;

	if (zmq_msg_recv(peer, m->socket, ZMQ_DONTWAIT) < 0)
		return -errno;
	if (!zmq_msg_more(peer))
		return -EBADMSG;
	if (zmq_msg_recv(payload, m->socket, ZMQ_DONTWAIT) < 0)
		return -EBADMSG;
	*ret_more = zmq_msg_more(payload);
	for (bool more = *ret_more; more;) {
		zmq_msg_init(&rest);
		more = zmq_msg_recv(&rest, m->socket, ZMQ_DONTWAIT) >= 0 && zmq_msg_more(&rest);
		zmq_msg_close(&rest);
	}
	return 0;
}

int messages_take(struct messages *m)
{
	struct sender s;
	zmq_msg_t peer, payload;
	bool more = false;
	int err;

	zmq_msg_init(&peer);
	zmq_msg_init(&payload);
	err = receive_parts(m, &peer, &payload, &more);
	if (!err) {
		who_sent(&payload, &s);
		metric_add(&m->options.counters->received, 1);
		metric_add(&m->options.counters->received_bytes, zmq_msg_size(&payload));
		connections_heard(m->connections, s.fd);
		if (more)
			malformed(m, &s, "the message has several parts");
		else
			judge(m, &peer, &payload, &s);
	}
	zmq_msg_close(&peer);
	zmq_msg_close(&payload);
	return err == -EAGAIN || err == -ETERM ? -EAGAIN : 0;
}

void group_clear(struct group *g)
{
	for (unsigned i = 0; i < g->n; i++) {
		zmq_msg_close(&g->item[i].peer);
		batch_free(g->item[i].batch);
		zmq_msg_close(&g->item[i].message);
	}
	g->n = 0;
	g->bytes = 0;
}
