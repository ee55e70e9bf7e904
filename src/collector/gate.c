// SPDX-License-Identifier: Apache-2.0
#include "collector/gate.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include "common/clock.h"
#include "common/text.h"

#define ZAP "inproc://zeromq.zap.01"
#define MONITOR "inproc://collector-monitor"
#define FRAMES 7 // version, request, domain, address, routing id, mechanism, key
#define EVENTS (ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_ACCEPT_FAILED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED | \
		ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)

#define CHECK_NS 50000000ull

struct gate {
	struct gate_options options;
	void *zap, *monitor, *watched;
	pthread_t thread;
	int wake, stop;
	uint64_t check; // when the connections are looked at next, monotonic ns
	uint64_t said, unsaid; // refusals: one line a second
};

struct frame {
	uint8_t data[256];
	size_t size;
};

// The frames of a request, those beyond the ones that we know too. Their number, or negative when one is too large.
static int receive(void *socket, struct frame *frames)
{
	int n = 0, more = 1, err = 0;
	size_t size = sizeof(more);

	for (; more; n++) {
		struct frame rest, *f = n < FRAMES ? &frames[n] : &rest;
		int len = zmq_recv(socket, f->data, sizeof(f->data), 0);

		if (len < 0)
			return -errno;
		f->size = (size_t)len;
		if (f->size > sizeof(f->data)) {
			err = -EMSGSIZE;
			f->size = sizeof(f->data);
		}
		zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size);
	}
	return err ? err : n;
}

static void answer(struct gate *g, const struct frame *request, const char *status, const char *text, const char *user)
{
	zmq_send(g->zap, "1.0", 3, ZMQ_SNDMORE);
	zmq_send(g->zap, request->data, request->size, ZMQ_SNDMORE);
	zmq_send(g->zap, status, strlen(status), ZMQ_SNDMORE);
	zmq_send(g->zap, text, strlen(text), ZMQ_SNDMORE);
	zmq_send(g->zap, user, strlen(user), ZMQ_SNDMORE);
	zmq_send(g->zap, "", 0, 0);
}

// Anybody may knock: a line a second, and how many there were in between.
static void say_refused(struct gate *g, const char *key, const struct frame *address)
{
	char from[128], text[320];
	uint64_t now = clock_monotonic();

	if (!g->options.say || (g->said && now - g->said < 1000000000)) {
		g->unsaid++;
		return;
	}
	text_sanitize(from, sizeof(from), (const char *)address->data, address->size);
	snprintf(text, sizeof(text), "refused a connection from %s: the key %s is not in allowed_keys (%llu more since the last line)",
		 from, key, (unsigned long long)g->unsaid);
	g->said = now;
	g->unsaid = 0;
	g->options.say(g->options.say_context, text);
}

static void decide(struct gate *g)
{
	struct frame f[FRAMES];
	char key[KEY_TEXT], node[BATCH_NODE_MAX + 1];
	int n;

	memset(f, 0, sizeof(f));
	n = receive(g->zap, f);
	if (n == -EAGAIN || n == -EINTR || n == -ETERM)
		return;
	if (n != FRAMES || f[5].size != 5 || memcmp(f[5].data, "CURVE", 5) || f[6].size != KEY_SIZE || f[1].size > 255) {
		answer(g, &f[1], "400", "only CURVE", "");
		metric_add(&g->options.counters->handshakes_refused, 1);
		return;
	}
	key_text(f[6].data, key);
	if (g->options.allow && allow_node(g->options.allow, f[6].data, node)) {
		answer(g, &f[1], "200", "OK", key);
		return;
	}
	answer(g, &f[1], "400", "unknown key", "");
	metric_add(&g->options.counters->handshakes_refused, 1);
	say_refused(g, key, &f[3]);
}

static void note_event(struct gate *g)
{
	struct collector_counters *c = g->options.counters;
	uint8_t event[6] = { 0 };
	uint16_t what;
	int32_t value;
	char address[256];

	if (zmq_recv(g->monitor, event, sizeof(event), ZMQ_DONTWAIT) < 0)
		return;
	zmq_recv(g->monitor, address, sizeof(address), 0);
	memcpy(&what, event, sizeof(what));
	memcpy(&value, event + 2, sizeof(value));
	switch (what) {
	case ZMQ_EVENT_ACCEPTED:
		metric_add(&c->accepted, 1);
		connections_opened(g->options.connections, value);
		break;
	case ZMQ_EVENT_ACCEPT_FAILED:
		metric_add(&c->accept_errors, 1);
		break;
	case ZMQ_EVENT_DISCONNECTED:
		metric_add(&c->disconnected, 1);
		connections_closed(g->options.connections, value);
		break;
	case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
	case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
		metric_add(&c->handshakes_failed, 1);
		break;
	}
}

// What a fast network brings between two looks is kept by libzmq, so they are frequent; with many connections a look takes
// at most a twentieth of the time.
static void check(struct gate *g)
{
	uint64_t before = clock_monotonic(), took;

	connections_check(g->options.connections, g->options.max_unended);
	took = clock_monotonic() - before;
	g->check = before + (20 * took > CHECK_NS ? 20 * took : CHECK_NS);
}

static void *run(void *context)
{
	struct gate *g = context;
	zmq_pollitem_t items[] = { { NULL, g->wake, ZMQ_POLLIN, 0 }, { g->monitor, 0, ZMQ_POLLIN, 0 }, { g->zap, 0, ZMQ_POLLIN, 0 } };

	while (!__atomic_load_n(&g->stop, __ATOMIC_ACQUIRE)) {
		zmq_poll(items, g->zap ? 3 : 2, CHECK_NS / 1000000);
		if (items[1].revents)
			note_event(g);
		if (g->zap && items[2].revents)
			decide(g);
		if (clock_monotonic() >= g->check)
			check(g);
	}
	return NULL;
}

static void *open_socket(void *zmq, int type)
{
	void *s = zmq_socket(zmq, type);
	int none = 0;

	if (s)
		zmq_setsockopt(s, ZMQ_LINGER, &none, sizeof(none));
	return s;
}

static int open_sockets(struct gate *g, void *socket)
{
	int none = 0;

	if (g->options.allow) {
		g->zap = open_socket(g->options.zmq, ZMQ_REP);
		if (!g->zap || zmq_bind(g->zap, ZAP))
			return -errno;
	}
	if (zmq_socket_monitor(socket, MONITOR, EVENTS))
		return -errno;
	g->watched = socket;
	g->monitor = open_socket(g->options.zmq, ZMQ_PAIR);
	// Its writer is libzmq's I/O thread, which waits when there is no room.
	if (!g->monitor || zmq_setsockopt(g->monitor, ZMQ_RCVHWM, &none, sizeof(none)) || zmq_connect(g->monitor, MONITOR))
		return -errno;
	return 0;
}

static void destroy(struct gate *g)
{
	if (g->watched)
		zmq_socket_monitor(g->watched, NULL, 0);
	if (g->monitor)
		zmq_close(g->monitor);
	if (g->zap)
		zmq_close(g->zap);
	if (g->wake >= 0)
		close(g->wake);
	free(g);
}

int gate_new(const struct gate_options *options, void *socket, struct gate **ret, struct error *e)
{
	struct gate *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return error_set(e, -ENOMEM, "out of memory");
	g->options = *options;
	g->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = g->wake < 0 ? -errno : open_sockets(g, socket);
	if (!err)
		err = -pthread_create(&g->thread, NULL, run, g);
	if (err) {
		destroy(g);
		return error_set(e, err, "the handler of keys cannot be started: %s", zmq_strerror(-err));
	}
	pthread_setname_np(g->thread, "blkprof-gate");
	*ret = g;
	return 0;
}

void gate_free(struct gate *g)
{
	if (!g)
		return;
	__atomic_store_n(&g->stop, 1, __ATOMIC_RELEASE);
	eventfd_write(g->wake, 1);
	pthread_join(g->thread, NULL);
	destroy(g);
}
