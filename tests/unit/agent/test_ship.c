// SPDX-License-Identifier: Apache-2.0
// The ship against a ROUTER of the test: what is acknowledged goes, what is not comes again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include "agent/ship.h"
#include "common/clock.h"
#include "wire/header.h"
#include "wire/reply.h"

#define MANY 64

// A spool in memory: batch i is there until it is acknowledged.
struct store {
	pthread_mutex_t lock;
	bool there[MANY + 1];
	unsigned n, next, acknowledged;
	int fd;
};

static void encode(uint64_t sequence, struct spool_item *ret)
{
	struct batch b = { .kind = BATCH_WINDOW, .node = "n1", .instance = { 1 }, .sequence = sequence, .start = 1, .end = 2 };
	struct buf out = { 0 };

	assert_int_equal(batch_encode(&b, &out), 0);
	*ret = (struct spool_item){ .sequence = sequence, .data = out.data, .size = out.len };
	memcpy(ret->instance, b.instance, 16);
}

static int next(void *context, struct spool_item *ret)
{
	struct store *s = context;
	eventfd_t value;
	int err = -EAGAIN;

	pthread_mutex_lock(&s->lock);
	while (s->next <= s->n && !s->there[s->next])
		s->next++;
	if (s->next <= s->n) {
		encode(s->next++, ret);
		err = 0;
	} else {
		eventfd_read(s->fd, &value);
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

static void release(struct spool_item *item)
{
	free(item->data);
}

static void start_again(void *context)
{
	struct store *s = context;

	pthread_mutex_lock(&s->lock);
	s->next = 1;
	eventfd_write(s->fd, 1);
	pthread_mutex_unlock(&s->lock);
}

static void acknowledge(void *context, const uint8_t instance[16], uint64_t sequence)
{
	struct store *s = context;

	pthread_mutex_lock(&s->lock);
	assert_int_equal(instance[0], 1);
	s->acknowledged += s->there[sequence];
	s->there[sequence] = false;
	pthread_mutex_unlock(&s->lock);
}

static unsigned acknowledged(struct store *s)
{
	unsigned n;

	pthread_mutex_lock(&s->lock);
	n = s->acknowledged;
	pthread_mutex_unlock(&s->lock);
	return n;
}

static void fill(struct store *s, unsigned n)
{
	memset(s, 0, sizeof(*s));
	pthread_mutex_init(&s->lock, NULL);
	s->n = n;
	s->next = 1;
	s->fd = eventfd(1, EFD_NONBLOCK);
	for (unsigned i = 1; i <= n; i++)
		s->there[i] = true;
}

struct collector {
	void *zmq, *socket;
	char address[64];
};

static void set_int(void *socket, int option, int value)
{
	assert_int_equal(zmq_setsockopt(socket, option, &value, sizeof(value)), 0);
}

static void listen_at(struct collector *c, const char *address, const struct key_pair *key)
{
	size_t size = sizeof(c->address);

	c->zmq = zmq_ctx_new();
	c->socket = zmq_socket(c->zmq, ZMQ_ROUTER);
	set_int(c->socket, ZMQ_LINGER, 1000);
	set_int(c->socket, ZMQ_RCVTIMEO, 20000);
	if (key) {
		set_int(c->socket, ZMQ_CURVE_SERVER, 1);
		assert_int_equal(zmq_setsockopt(c->socket, ZMQ_CURVE_SECRETKEY, key->secret, KEY_SIZE), 0);
	}
	for (unsigned i = 0; zmq_bind(c->socket, address); i++) { // the port of a collector that just ended
		assert_true(i < 1000);
		usleep(10000);
	}
	assert_int_equal(zmq_getsockopt(c->socket, ZMQ_LAST_ENDPOINT, c->address, &size), 0);
}

static void stop(struct collector *c)
{
	zmq_close(c->socket);
	zmq_ctx_term(c->zmq);
}

// The sequence of the next batch, answered with status (0 = not at all).
static uint64_t serve(struct collector *c, int status)
{
	struct reply r = { .status = (enum reply_status)status, .text = "because" };
	struct message_header h;
	struct buf out = { 0 };
	uint8_t id[256], instance[16];
	uint64_t sequence;
	zmq_msg_t m;
	int n = zmq_recv(c->socket, id, sizeof(id), 0);

	assert_true(n > 0);
	zmq_msg_init(&m);
	assert_true(zmq_msg_recv(&m, c->socket, 0) > 0);
	assert_int_equal(message_header_get(zmq_msg_data(&m), zmq_msg_size(&m), &h, NULL), 0);
	assert_int_equal(batch_identity(zmq_msg_data(&m), zmq_msg_size(&m), instance, &sequence, NULL), 0);
	zmq_msg_close(&m);
	r.token = h.token;
	if (status) {
		assert_int_equal(reply_encode(&r, &out), 0);
		zmq_send(c->socket, id, (size_t)n, ZMQ_SNDMORE);
		zmq_send(c->socket, out.data, out.len, 0);
		buf_free(&out);
	}
	return sequence;
}

static struct ship *ship_to(struct store *s, const struct ship_endpoint *to, unsigned n, const struct key_pair *key)
{
	struct ship_options o = { .endpoints = to, .n_endpoints = n, .key = key, .max_batches = 8, .pause_min_ms = 20,
				  .pause_max_ms = 100 };
	struct ship_source source = { s, next, release, start_again, acknowledge, s->fd };
	struct ship *ship;

	assert_int_equal(ship_open(&o, &source, &ship, NULL), 0);
	return ship;
}

static struct ship_endpoint endpoint_of(const struct collector *c)
{
	struct ship_endpoint p;

	assert_int_equal(ship_endpoint_parse(c->address, false, &p, NULL), 0);
	return p;
}

static void wait_for(struct store *s, unsigned n)
{
	for (unsigned i = 0; acknowledged(s) < n && i < 2000; i++)
		usleep(10000);
	assert_int_equal(acknowledged(s), n);
}

static void what_is_acknowledged_goes(void **state)
{
	struct collector c;
	struct store s;
	struct ship_endpoint to;
	struct ship_stats stats;
	struct ship *ship;

	listen_at(&c, "tcp://127.0.0.1:*", NULL);
	to = endpoint_of(&c);
	fill(&s, MANY);
	ship = ship_to(&s, &to, 1, NULL);
	for (unsigned i = 1; i <= MANY; i++)
		assert_int_equal(serve(&c, i % 2 ? REPLY_STORED : REPLY_DUPLICATE), i);
	wait_for(&s, MANY);
	ship_stats(ship, &stats);
	assert_int_equal(stats.stored, MANY / 2);
	assert_int_equal(stats.duplicates, MANY / 2);
	assert_int_equal(stats.sent, MANY);
	assert_int_equal(stats.connected, 1);
	ship_close(ship, 1000);
	stop(&c);
	close(s.fd);
}

static void only_so_many_without_an_answer(void **state)
{
	struct collector c;
	struct store s;
	struct ship_endpoint to;
	struct ship *ship;
	char byte;

	listen_at(&c, "tcp://127.0.0.1:*", NULL);
	to = endpoint_of(&c);
	fill(&s, MANY);
	ship = ship_to(&s, &to, 1, NULL);
	for (unsigned i = 1; i <= 8; i++)
		assert_int_equal(serve(&c, 0), i);
	set_int(c.socket, ZMQ_RCVTIMEO, 200);
	assert_int_equal(zmq_recv(c.socket, &byte, 1, 0), -1);
	assert_int_equal(acknowledged(&s), 0);
	ship_close(ship, 1000);
	stop(&c);
	close(s.fd);
}

static void what_a_lost_connection_had_comes_again(void **state)
{
	struct collector c;
	struct store s;
	struct ship_endpoint to;
	struct ship *ship;
	char address[64];

	listen_at(&c, "tcp://127.0.0.1:*", NULL);
	to = endpoint_of(&c);
	fill(&s, 4);
	ship = ship_to(&s, &to, 1, NULL);
	assert_int_equal(serve(&c, REPLY_STORED), 1);
	assert_int_equal(serve(&c, 0), 2);
	wait_for(&s, 1);
	strcpy(address, c.address);
	stop(&c);
	listen_at(&c, address, NULL);
	for (unsigned i = 2; i <= 4; i++)
		assert_int_equal(serve(&c, REPLY_STORED), i);
	wait_for(&s, 4);
	ship_close(ship, 1000);
	stop(&c);
	close(s.fd);
}

static void the_next_endpoint_has_its_turn(void **state)
{
	struct collector a, b;
	struct store s;
	struct ship_endpoint to[3];
	struct ship *ship;

	listen_at(&a, "tcp://127.0.0.1:*", NULL);
	listen_at(&b, "tcp://127.0.0.1:*", NULL);
	assert_int_equal(ship_endpoint_parse("tcp://127.0.0.1:1", false, &to[0], NULL), 0); // nobody there
	to[1] = endpoint_of(&a);
	to[2] = endpoint_of(&b);
	fill(&s, 3);
	ship = ship_to(&s, to, 3, NULL);
	assert_int_equal(serve(&a, REPLY_STORED), 1);
	wait_for(&s, 1); // before the next answer ends the connection
	assert_int_equal(serve(&a, REPLY_BUSY), 2);
	assert_int_equal(serve(&b, REPLY_STORED), 2);
	assert_int_equal(serve(&b, REPLY_REFUSED), 3);
	wait_for(&s, 3);
	ship_close(ship, 1000);
	stop(&a);
	stop(&b);
	close(s.fd);
}

static void keys_are_checked(void **state)
{
	struct key_pair ours, theirs, other;
	struct collector c;
	struct store s;
	struct ship_endpoint to;
	struct ship_stats stats;
	struct ship *ship;

	assert_int_equal(key_pair_generate(&ours, NULL), 0);
	assert_int_equal(key_pair_generate(&theirs, NULL), 0);
	assert_int_equal(key_pair_generate(&other, NULL), 0);
	listen_at(&c, "tcp://127.0.0.1:*", &theirs);
	to = endpoint_of(&c);
	to.curve = true;
	memcpy(to.server_key, other.public, KEY_SIZE); // somebody in its place
	fill(&s, 1);
	ship = ship_to(&s, &to, 1, &ours);
	for (unsigned i = 0; i < 2000; i++) {
		ship_stats(ship, &stats);
		if (stats.failures)
			break;
		usleep(10000);
	}
	assert_true(stats.failures > 0);
	assert_int_equal(stats.sent, 0);
	ship_close(ship, 1000);
	memcpy(to.server_key, theirs.public, KEY_SIZE);
	ship = ship_to(&s, &to, 1, &ours);
	assert_int_equal(serve(&c, REPLY_STORED), 1);
	wait_for(&s, 1);
	ship_close(ship, 1000);
	stop(&c);
	close(s.fd);
}

static void closes_while_nobody_answers(void **state)
{
	struct ship_endpoint to;
	struct store s;
	struct ship *ship;
	uint64_t before;

	assert_int_equal(ship_endpoint_parse("tcp://127.0.0.1:1", false, &to, NULL), 0);
	fill(&s, 1);
	ship = ship_to(&s, &to, 1, NULL);
	usleep(50000);
	before = clock_monotonic();
	ship_close(ship, 10000);
	assert_true(clock_monotonic() - before < 9000000000ull); // it did not wait for the timeout
	close(s.fd);
}

static void endpoint_lines(void **state)
{
	static const char key[] = "559eac93108b569596ec472477a630c5cf66c1b79a24a2564c62e4a80c63290f";
	struct ship_endpoint p;
	struct error e;
	char line[200];

	snprintf(line, sizeof(line), "tcp://collector.example:6062  \t%s", key);
	assert_int_equal(ship_endpoint_parse(line, false, &p, NULL), 0);
	assert_true(p.curve);
	assert_int_equal(p.server_key[0], 0x55);
	assert_string_equal(p.address, "tcp://collector.example:6062");
	assert_int_equal(ship_endpoint_parse("tcp://collector.example:6062", false, &p, &e), -EINVAL);
	assert_non_null(strstr(e.text, "insecure = yes"));
	assert_int_equal(ship_endpoint_parse("tcp://collector.example:6062", true, &p, NULL), 0);
	assert_false(p.curve);
	assert_int_equal(ship_endpoint_parse("tcp://127.0.0.1:6062 abc", false, &p, &e), -EINVAL);
	assert_non_null(strstr(e.text, "64 hexadecimal"));
	assert_int_equal(ship_endpoint_parse("collector", false, &p, NULL), -EINVAL);
	assert_int_equal(ship_endpoint_parse("", true, &p, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_acknowledged_goes),
		cmocka_unit_test(only_so_many_without_an_answer),
		cmocka_unit_test(what_a_lost_connection_had_comes_again),
		cmocka_unit_test(the_next_endpoint_has_its_turn),
		cmocka_unit_test(keys_are_checked),
		cmocka_unit_test(closes_while_nobody_answers),
		cmocka_unit_test(endpoint_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
