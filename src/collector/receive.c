// SPDX-License-Identifier: Apache-2.0
#include "collector/receive.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "collector/gate.h"
#include "collector/receive_internal.h"
#include "collector/receive_store.h"

#define HEARTBEAT_MS 10000
#define HEARTBEAT_TIMEOUT_MS 20000
#define HANDSHAKE_MS 10000
#define BACKLOG 1024
// That wait for one peer, besides the one at hand: with those of all peers they are what an overload may take. With CURVE one
// less, since libzmq counts a peer's credential for ever: 1 would be none.
#define PEER_MESSAGES 2
#define PEER_ANSWERS 64
// What a peer may have sent when nothing of it ended: what waits, the message at hand, one in the kernel and headers.
#define UNENDED_MAX ((PEER_MESSAGES + 2ull) * BATCH_BYTES_MAX + (8u << 20))
#define PAUSE_NS 200000000ull // after the store failed
#define TAKE 32

struct receiver {
	struct messages messages;
	void *zmq;
	struct gate *gate;
	pthread_t thread;
	struct group groups[2]; // one is filled while the other is stored
	struct storer *storer;
	uint64_t pause_until;
	int wake, stop;
	bool store_failed; // the last transaction
};

static bool stopping(const struct receiver *r)
{
	return __atomic_load_n(&r->stop, __ATOMIC_ACQUIRE);
}

static void answer_stored(struct messages *m, struct waiting *w)
{
	struct collector_counters *c = m->options.counters;
	char text[256];

	switch (w->result) {
	case 0:
		metric_add(&c->stored, 1);
		messages_answer(m, &w->peer, w->token, REPLY_STORED, "");
		break;
	case -EEXIST:
		metric_add(&c->duplicates, 1);
		messages_answer(m, &w->peer, w->token, REPLY_DUPLICATE, "");
		break;
	default:
		metric_add(w->result == -EFBIG ? &c->bombs : w->result == -EUSERS ? &c->no_room : &c->bad_profile, 1);
		snprintf(text, sizeof(text), "refused batch %llu of node %s: %s", (unsigned long long)w->batch->sequence,
			 w->batch->node, w->why.text);
		messages_say(m, text);
		messages_answer(m, &w->peer, w->token, REPLY_REFUSED, w->why.text);
	}
}

static void answer_group(struct receiver *r, struct group *g)
{
	struct messages *m = &r->messages;
	struct collector_counters *c = m->options.counters;
	char text[640];

	metric_add(&c->commit_ns, g->ns);
	metric_add(&c->commits, g->commits);
	metric_add(&c->commit_errors, g->failures);
	if (r->store_failed && g->commits)
		messages_say(m, "batches are stored again");
	r->store_failed = r->store_failed && !g->commits;
	for (unsigned i = 0; i < g->n; i++) {
		struct waiting *w = &g->item[i];

		// What is too large for the store will be so the next time too.
		if (w->failed == -EFBIG) {
			w->result = -EBADMSG;
			w->why = g->why;
		}
		if (!w->failed || w->failed == -EFBIG) {
			answer_stored(m, w);
			continue;
		}
		if (!r->store_failed) {
			snprintf(text, sizeof(text), "nothing can be stored, agents keep it: %s", g->why.text);
			messages_say(m, text);
		}
		r->store_failed = true;
		metric_add(&c->put_off, 1);
		messages_answer(m, &w->peer, w->token, REPLY_BUSY, g->why.text);
	}
	if (r->store_failed)
		r->pause_until = clock_monotonic() + PAUSE_NS;
	group_clear(g);
}

static bool is_full(const struct group *g)
{
	return g->n >= GROUP_MAX || g->bytes >= GROUP_BYTES;
}

static void give(struct receiver *r)
{
	struct messages *m = &r->messages;
	struct group *g = m->group;
	uint64_t now = clock_monotonic();

	if (storer_busy(r->storer) || !g->n || now < r->pause_until || (!is_full(g) && now < g->due))
		return;
	m->group = g == &r->groups[0] ? &r->groups[1] : &r->groups[0];
	storer_give(r->storer, g);
}

// Until the group may be given to the store; for ever while that is busy or there is nothing to store.
static long time_left(const struct receiver *r)
{
	const struct group *g = r->messages.group;
	uint64_t until = g->due > r->pause_until ? g->due : r->pause_until, now = clock_monotonic();

	if (storer_busy(r->storer) || !g->n)
		return -1;
	return until > now ? (long)((until - now) / 1000000 + 1) : 0;
}

static void finish(struct receiver *r)
{
	zmq_pollitem_t item = { NULL, storer_fd(r->storer), ZMQ_POLLIN, 0 };
	struct group *g = NULL;

	storer_stop(r->storer);
	while (storer_busy(r->storer) && !g) {
		zmq_poll(&item, 1, -1);
		g = storer_done(r->storer);
	}
	if (g)
		answer_group(r, g);
}

// A full group is all that is taken while the store is busy: the rest stays with those who sent it.
static void *run(void *context)
{
	struct receiver *r = context;
	struct messages *m = &r->messages;
	zmq_pollitem_t items[] = { { NULL, r->wake, ZMQ_POLLIN, 0 }, { NULL, storer_fd(r->storer), ZMQ_POLLIN, 0 },
				   { m->socket, 0, ZMQ_POLLIN, 0 } };
	struct group *g;

	while (!stopping(r)) {
		zmq_poll(items, is_full(m->group) ? 2 : 3, time_left(r));
		g = storer_done(r->storer);
		if (g)
			answer_group(r, g);
		// A few at a time: a flood of refused messages must not delay the answers to what was accepted.
		for (unsigned i = 0; i < TAKE && !is_full(m->group) && !messages_take(m); i++)
			;
		give(r);
	}
	finish(r);
	return NULL;
}

static void set_int(void *socket, int option, int value)
{
	zmq_setsockopt(socket, option, &value, sizeof(value));
}

static int set_up(void *socket, const struct key_pair *key)
{
	// A batch that is a little too large is answered by batch_decode; the rest costs the connection.
	int64_t max = BATCH_BYTES_MAX + 4096;

	set_int(socket, ZMQ_LINGER, 200);
	set_int(socket, ZMQ_RCVHWM, PEER_MESSAGES);
	set_int(socket, ZMQ_SNDHWM, PEER_ANSWERS);
	set_int(socket, ZMQ_BACKLOG, BACKLOG);
	set_int(socket, ZMQ_HEARTBEAT_IVL, HEARTBEAT_MS);
	set_int(socket, ZMQ_HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS);
	set_int(socket, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS);
	set_int(socket, ZMQ_IPV6, 1);
	zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max, sizeof(max));
	if (!key)
		return 0;
	set_int(socket, ZMQ_CURVE_SERVER, 1);
	return zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, key->secret, KEY_SIZE) ? -errno : 0;
}

static int open_socket(struct receiver *r, struct error *e)
{
	const struct receive_options *o = &r->messages.options;
	struct gate_options gate = { .zmq = r->zmq, .allow = o->allow, .connections = r->messages.connections,
				     .counters = o->counters, .max_unended = UNENDED_MAX, .say = o->say,
				     .say_context = o->say_context };
	int err;

	r->messages.socket = zmq_socket(r->zmq, ZMQ_ROUTER);
	if (!r->messages.socket)
		return error_set(e, -errno, "no socket: %s", zmq_strerror(errno));
	err = set_up(r->messages.socket, o->key);
	if (err)
		return error_set(e, err, "the key cannot be used: %s", zmq_strerror(-err));
	err = gate_new(&gate, r->messages.socket, &r->gate, e);
	for (unsigned i = 0; i < o->n_bind && !err; i++)
		if (zmq_bind(r->messages.socket, o->bind[i])) {
			err = -errno;
			error_set(e, err, "cannot listen at %s: %s", o->bind[i], zmq_strerror(-err));
		}
	return err;
}

static void destroy(struct receiver *r)
{
	storer_free(r->storer);
	group_clear(&r->groups[0]);
	group_clear(&r->groups[1]);
	gate_free(r->gate);
	if (r->messages.socket)
		zmq_close(r->messages.socket);
	if (r->zmq)
		zmq_ctx_term(r->zmq);
	connections_free(r->messages.connections);
	if (r->wake >= 0)
		close(r->wake);
	free(r);
}

static int start(struct receiver *r, struct error *e)
{
	const struct receive_options *o = &r->messages.options;
	int err;

	r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->zmq = zmq_ctx_new();
	r->messages.connections = connections_new(o->max_connections, o->counters);
	r->messages.group = &r->groups[0];
	r->storer = storer_new(o->store);
	if (r->wake < 0 || !r->storer || !r->zmq || !r->messages.connections)
		return error_set(e, -ENOMEM, "out of memory or of open files");
	zmq_ctx_set(r->zmq, ZMQ_MAX_SOCKETS, 64);
	err = open_socket(r, e);
	if (err)
		return err;
	err = -pthread_create(&r->thread, NULL, run, r);
	if (err)
		return error_set(e, err, "no thread can be started: %s", strerror(-err));
	pthread_setname_np(r->thread, "blkprof-receive");
	return 0;
}

int receiver_new(const struct receive_options *options, struct receiver **ret, struct error *e)
{
	struct receiver *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return error_set(e, -ENOMEM, "out of memory");
	r->wake = -1;
	r->messages.options = *options;
	err = start(r, e);
	if (err)
		destroy(r);
	else
		*ret = r;
	return err;
}

bool receiver_free(struct receiver *r, unsigned timeout_ms)
{
	uint64_t at = clock_realtime() + (uint64_t)timeout_ms * 1000000;
	struct timespec until = { (time_t)(at / 1000000000), (long)(at % 1000000000) };

	if (!r)
		return true;
	__atomic_store_n(&r->stop, 1, __ATOMIC_RELEASE);
	eventfd_write(r->wake, 1);
	if (pthread_timedjoin_np(r->thread, NULL, &until))
		return false;
	destroy(r);
	return true;
}
