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

#define HEARTBEAT_MS 10000
#define HEARTBEAT_TIMEOUT_MS 20000
#define HANDSHAKE_MS 10000
#define BACKLOG 1024
#define PEER_MESSAGES 4 // that wait for one peer
#define PEER_ANSWERS 64
// What a peer may have sent when nothing of it ended: what waits, the message at hand, one in the kernel and headers.
#define UNENDED_MAX ((PEER_MESSAGES + 2ull) * BATCH_BYTES_MAX + (8u << 20))
#define PAUSE_MS 200 // after the store failed

struct receiver {
	struct messages messages;
	void *zmq;
	struct gate *gate;
	pthread_t thread;
	int wake, stop;
	bool store_failed; // the last transaction
};

static bool stopping(const struct receiver *r)
{
	return __atomic_load_n(&r->stop, __ATOMIC_ACQUIRE);
}

static int put(struct messages *m, unsigned first, unsigned n, int *results, struct error *e)
{
	const struct batch *batches[GROUP_MAX];

	for (unsigned i = 0; i < n; i++)
		batches[i] = m->group[first + i].batch;
	return store_put(m->options.store, batches, n, results, e);
}

static void answer_stored(struct messages *m, struct waiting *w, int result)
{
	struct collector_counters *c = m->options.counters;
	char text[256];

	switch (result) {
	case 0:
		metric_add(&c->stored, 1);
		messages_answer(m, &w->peer, w->token, REPLY_STORED, "");
		break;
	case -EEXIST:
		metric_add(&c->duplicates, 1);
		messages_answer(m, &w->peer, w->token, REPLY_DUPLICATE, "");
		break;
	default:
		metric_add(&c->bad_profile, 1);
		snprintf(text, sizeof(text), "refused batch %llu of node %s: the store cannot read its profiles",
			 (unsigned long long)w->batch->sequence, w->batch->node);
		messages_say(m, text);
		messages_answer(m, &w->peer, w->token, REPLY_REFUSED, "the store cannot read its profiles");
	}
}

static void put_off(struct receiver *r, unsigned first, unsigned n, const struct error *e)
{
	struct messages *m = &r->messages;
	char text[640];

	metric_add(&m->options.counters->commit_errors, 1);
	metric_add(&m->options.counters->put_off, n);
	if (!r->store_failed) {
		snprintf(text, sizeof(text), "nothing can be stored, agents keep it: %s", e->text);
		messages_say(m, text);
	}
	r->store_failed = true;
	for (unsigned i = first; i < first + n; i++)
		messages_answer(m, &m->group[i].peer, m->group[i].token, REPLY_BUSY, e->text);
}

static int commit_some(struct receiver *r, unsigned first, unsigned n, struct error *e)
{
	struct messages *m = &r->messages;
	int results[GROUP_MAX] = { 0 };
	uint64_t before = clock_monotonic();
	int err = put(m, first, n, results, e);

	metric_add(&m->options.counters->commit_ns, clock_monotonic() - before);
	if (err)
		return err;
	metric_add(&m->options.counters->commits, 1);
	if (r->store_failed)
		messages_say(m, "batches are stored again");
	r->store_failed = false;
	for (unsigned i = 0; i < n; i++)
		answer_stored(m, &m->group[first + i], results[i]);
	return 0;
}

// What is too large for the store will be so the next time too.
static void fail_one(struct receiver *r, unsigned i, int err, const struct error *e)
{
	if (err == -EFBIG)
		answer_stored(&r->messages, &r->messages.group[i], err);
	else
		put_off(r, i, 1, e);
}

// What fails for one batch must not hold up the others: they get a transaction each.
static void commit_each(struct receiver *r)
{
	struct error e = { 0 };

	for (unsigned i = 0; i < r->messages.n && !stopping(r); i++) {
		int err = commit_some(r, i, 1, &e);

		if (err)
			fail_one(r, i, err, &e);
	}
}

static bool disk_failed(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EIO || err == -EROFS;
}

static void commit(struct receiver *r)
{
	struct messages *m = &r->messages;
	struct error e = { 0 };
	int err = commit_some(r, 0, m->n, &e);

	if (err && disk_failed(err))
		put_off(r, 0, m->n, &e);
	else if (err && m->n == 1)
		fail_one(r, 0, err, &e);
	else if (err)
		commit_each(r);
	messages_clear(m);
}

// Takes what is there, and after the first batch waits a moment for more.
static void gather(struct receiver *r)
{
	struct messages *m = &r->messages;
	zmq_pollitem_t item = { m->socket, 0, ZMQ_POLLIN, 0 };
	uint64_t until = 0, now;

	while (m->n < GROUP_MAX && m->bytes < GROUP_BYTES && !stopping(r)) {
		bool none = messages_take(m);

		now = clock_monotonic();
		if (m->n && !until)
			until = now + GROUP_WAIT_NS;
		// Also when there is always something: a flood of refused messages must not delay what was accepted.
		if (m->n ? now >= until : none)
			return;
		if (none)
			zmq_poll(&item, 1, (long)((until - now) / 1000000 + 1));
	}
}

static void *run(void *context)
{
	struct receiver *r = context;
	zmq_pollitem_t items[] = { { NULL, r->wake, ZMQ_POLLIN, 0 }, { r->messages.socket, 0, ZMQ_POLLIN, 0 } };

	while (!stopping(r)) {
		zmq_poll(items, 2, -1);
		gather(r);
		if (r->messages.n)
			commit(r);
		if (r->store_failed)
			zmq_poll(items, 1, PAUSE_MS);
	}
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
	messages_clear(&r->messages);
	gate_free(r->gate);
	if (r->messages.socket)
		zmq_close(r->messages.socket);
	if (r->zmq)
		zmq_ctx_term(r->zmq);
	connections_free(r->messages.connections);
	bomb_check_free(r->messages.bombs);
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
	r->messages.bombs = bomb_check_new();
	if (r->wake < 0 || !r->zmq || !r->messages.connections || !r->messages.bombs)
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
