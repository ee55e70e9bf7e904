// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/ship_internal.h"
#include "wire/header.h"
#include "wire/reply.h"

#define HEARTBEAT_MS 5000
#define HEARTBEAT_TIMEOUT_MS 15000
#define HANDSHAKE_MS 10000
#define REPLY_MAX 4096
#define EVENTS (ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | \
		ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_CONNECT_RETRIED)

static void set_int(void *socket, int option, int value)
{
	zmq_setsockopt(socket, option, &value, sizeof(value));
}

static int set_keys(void *socket, const struct ship_endpoint *to, const struct key_pair *key)
{
	if (!to->curve)
		return 0;
	if (!key)
		return -EINVAL;
	if (zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, to->server_key, KEY_SIZE) ||
	    zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, key->public, KEY_SIZE) ||
	    zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, key->secret, KEY_SIZE))
		return -errno;
	return 0;
}

static int set_up(struct ship_link *l, const struct ship_endpoint *to, const struct key_pair *key)
{
	int64_t max = REPLY_MAX;
	int err = set_keys(l->socket, to, key);

	if (err)
		return err;
	set_int(l->socket, ZMQ_LINGER, 0);
	set_int(l->socket, ZMQ_IMMEDIATE, 1); // nothing waits in a queue of a connection that is not there
	set_int(l->socket, ZMQ_SNDHWM, SHIP_BATCHES_MAX);
	set_int(l->socket, ZMQ_RCVHWM, SHIP_BATCHES_MAX);
	set_int(l->socket, ZMQ_RECONNECT_IVL, -1);
	set_int(l->socket, ZMQ_HEARTBEAT_IVL, HEARTBEAT_MS);
	set_int(l->socket, ZMQ_HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS);
	set_int(l->socket, ZMQ_HEARTBEAT_TTL, 2 * HEARTBEAT_TIMEOUT_MS);
	set_int(l->socket, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS);
	set_int(l->socket, ZMQ_IPV6, 1);
	zmq_setsockopt(l->socket, ZMQ_MAXMSGSIZE, &max, sizeof(max));
	return 0;
}

static int open_monitor(struct ship_link *l, void *zmq)
{
	char name[64];

	snprintf(name, sizeof(name), "inproc://ship-monitor-%p", l->socket);
	if (zmq_socket_monitor(l->socket, name, EVENTS))
		return -errno;
	l->monitor = zmq_socket(zmq, ZMQ_PAIR);
	if (!l->monitor)
		return -errno;
	set_int(l->monitor, ZMQ_LINGER, 0);
	return zmq_connect(l->monitor, name) ? -errno : 0;
}

int ship_link_open(struct ship_link *l, void *zmq, const struct ship_endpoint *to, const struct key_pair *key, struct error *e)
{
	int err;

	memset(l, 0, sizeof(*l));
	l->socket = zmq_socket(zmq, ZMQ_DEALER);
	err = l->socket ? set_up(l, to, key) : -errno;
	if (!err)
		err = open_monitor(l, zmq);
	if (!err && zmq_connect(l->socket, to->address))
		err = -errno;
	if (err) {
		ship_link_close(l);
		return error_set(e, err, "%s", zmq_strerror(-err));
	}
	return 0;
}

void ship_link_close(struct ship_link *l)
{
	if (l->socket)
		zmq_socket_monitor(l->socket, NULL, 0);
	if (l->monitor)
		zmq_close(l->monitor);
	if (l->socket)
		zmq_close(l->socket);
	memset(l, 0, sizeof(*l));
}

enum ship_event ship_link_event(struct ship_link *l)
{
	uint8_t event[6] = { 0 };
	uint16_t what = 0;
	char address[256];

	if (!l->monitor || zmq_recv(l->monitor, event, sizeof(event), ZMQ_DONTWAIT) < 0)
		return SHIP_NOTHING;
	zmq_recv(l->monitor, address, sizeof(address), ZMQ_DONTWAIT);
	memcpy(&what, event, sizeof(what));
	switch (what) {
	case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
		l->up = true;
		return SHIP_UP;
	case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
		return SHIP_UNKNOWN_KEY;
	default:
		return SHIP_DOWN;
	}
}

int ship_link_send(struct ship_link *l, const struct spool_item *item, uint64_t token)
{
	zmq_msg_t message;
	int err = 0;

	if (item->size < MESSAGE_HEADER_SIZE)
		return -EBADMSG;
	if (zmq_msg_init_size(&message, item->size))
		return -ENOMEM;
	memcpy(zmq_msg_data(&message), item->data, item->size);
	message_header_set_token(zmq_msg_data(&message), token);
	if (zmq_msg_send(&message, l->socket, ZMQ_DONTWAIT) < 0) {
		err = -errno;
		zmq_msg_close(&message);
	}
	return err;
}

int ship_link_receive(struct ship_link *l, struct reply *ret, struct error *e)
{
	zmq_msg_t message;
	int err;

	zmq_msg_init(&message);
	if (zmq_msg_recv(&message, l->socket, ZMQ_DONTWAIT) < 0) {
		err = -errno;
		zmq_msg_close(&message);
		return err;
	}
	err = reply_decode(zmq_msg_data(&message), zmq_msg_size(&message), ret, e);
	if (zmq_msg_more(&message))
		err = error_set(e, -EBADMSG, "the answer has several parts");
	zmq_msg_close(&message);
	return err;
}
