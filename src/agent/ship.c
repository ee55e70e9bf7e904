// SPDX-License-Identifier: Apache-2.0
#include "agent/ship.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/ship_internal.h"
#include "common/clock.h"
#include "wire/reply.h"

struct ship {
	struct ship_options options; // endpoints and key are our copies
	struct ship_endpoint *endpoints;
	struct key_pair key;
	struct ship_source source;
	struct ship_stats stats;
	pthread_t thread;
	int wake;
	int stop;	      // set before wake is written
	void *zmq;
	struct ship_link link;
	struct ship_flight flight;
	struct spool_item waiting; // data NULL = none: what the socket did not take
	uint64_t connect_by, answer_by; // monotonic ns, 0 = nothing to wait for
	uint64_t retry_at;
	unsigned pause_ms;
	unsigned fruitless; // attempts in a row that acknowledged nothing
};

static void say(struct ship *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct ship *s, const char *format, ...)
{
	char text[512];
	va_list args;

	if (!s->options.say)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	s->options.say(s->options.say_context, text);
}

static const struct ship_endpoint *endpoint(const struct ship *s)
{
	return &s->endpoints[s->stats.endpoint];
}

static bool stopping(const struct ship *s)
{
	return __atomic_load_n(&s->stop, __ATOMIC_ACQUIRE);
}

// Between half and all of it, so that the nodes that lost one collector do not come back all at once.
static uint64_t jittered(unsigned ms)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint32_t)clock_monotonic();
	return ((uint64_t)ms / 2 + random % (ms / 2 + 1)) * 1000000;
}

static void drop_waiting(struct ship *s)
{
	if (s->waiting.data)
		s->source.release(&s->waiting);
	memset(&s->waiting, 0, sizeof(s->waiting));
}

static void hang_up(struct ship *s)
{
	ship_link_close(&s->link);
	metric_add(&s->stats.again, s->flight.n);
	ship_flight_clear(&s->flight);
	metric_set(&s->stats.unacknowledged, 0);
	metric_set(&s->stats.connected, 0);
	drop_waiting(s);
	s->source.rewind(s->source.context);
	s->connect_by = s->answer_by = 0;
}

// The next endpoint's turn: at once while there are others to try, then after a pause that doubles. Only the first
// failure in a row is worth a line, or an hour without the network fills the log.
static void fail(struct ship *s, const char *why)
{
	bool first = s->fruitless++ < s->options.n_endpoints;

	metric_add(&s->stats.failures, 1);
	if (first)
		say(s, "collector %s: %s", endpoint(s)->address, why);
	hang_up(s);
	metric_set(&s->stats.endpoint, (s->stats.endpoint + 1) % s->options.n_endpoints);
	if (s->fruitless % s->options.n_endpoints) {
		s->retry_at = clock_monotonic() + jittered(s->options.pause_min_ms / 4);
		return;
	}
	s->retry_at = clock_monotonic() + jittered(s->pause_ms);
	s->pause_ms = s->pause_ms * 2 < s->options.pause_max_ms ? s->pause_ms * 2 : s->options.pause_max_ms;
}

static void connect_now(struct ship *s)
{
	struct error e;

	s->retry_at = 0;
	s->connect_by = clock_monotonic() + (uint64_t)s->options.connect_timeout_ms * 1000000;
	if (ship_link_open(&s->link, s->zmq, endpoint(s), s->options.key, &e))
		fail(s, e.text);
}

static void expect_answer(struct ship *s)
{
	s->answer_by = s->flight.n ? clock_monotonic() + (uint64_t)s->options.answer_timeout_ms * 1000000 : 0;
}

static bool room_for(const struct ship *s, size_t size)
{
	return !s->flight.n || (s->flight.n < s->options.max_batches && s->flight.bytes + size <= s->options.max_bytes);
}

// 1: sent; 0: not now.
static int send_one(struct ship *s)
{
	bool idle = !s->flight.n;

	if (!s->waiting.data && s->source.next(s->source.context, &s->waiting)) {
		memset(&s->waiting, 0, sizeof(s->waiting));
		return 0;
	}
	if (!room_for(s, s->waiting.size))
		return 0;
	if (ship_link_send(&s->link, &s->waiting, s->flight.token + 1))
		return 0;
	ship_flight_add(&s->flight, &s->waiting);
	metric_add(&s->stats.sent, 1);
	metric_add(&s->stats.sent_bytes, s->waiting.size);
	metric_set(&s->stats.unacknowledged, s->flight.n);
	drop_waiting(s);
	if (idle)
		expect_answer(s);
	return 1;
}

static void send_all(struct ship *s)
{
	while (s->link.up && s->flight.n < s->options.max_batches && send_one(s))
		;
}

static void acknowledged(struct ship *s, const struct ship_sent *sent, uint64_t *counter)
{
	metric_add(counter, 1);
	s->source.acknowledge(s->source.context, sent->instance, sent->sequence);
	if (s->fruitless)
		say(s, "collector %s: batches are acknowledged again", endpoint(s)->address);
	s->fruitless = 0;
	s->pause_ms = s->options.pause_min_ms;
}

// false: the connection is of no use any more.
static bool take_reply(struct ship *s, const struct reply *r)
{
	struct ship_sent sent;
	char why[REPLY_TEXT_MAX + 64];

	if (!ship_flight_take(&s->flight, r->token, &sent))
		return true;
	metric_set(&s->stats.unacknowledged, s->flight.n);
	expect_answer(s);
	switch (r->status) {
	case REPLY_STORED:
		acknowledged(s, &sent, &s->stats.stored);
		return true;
	case REPLY_DUPLICATE:
		acknowledged(s, &sent, &s->stats.duplicates);
		return true;
	case REPLY_REFUSED:
		say(s, "collector %s: batch %llu is refused and lost: %s", endpoint(s)->address, (unsigned long long)sent.sequence,
		    r->text);
		acknowledged(s, &sent, &s->stats.refused);
		return true;
	case REPLY_UNAUTHORIZED:
		metric_add(&s->stats.unauthorized, 1);
		break;
	case REPLY_VERSION:
		metric_add(&s->stats.version, 1);
		break;
	case REPLY_BUSY:
		metric_add(&s->stats.busy, 1);
		break;
	}
	snprintf(why, sizeof(why), "does not take batches: %s", r->text);
	fail(s, why);
	return false;
}

static void take_replies(struct ship *s)
{
	struct reply r;
	struct error e;
	int err;

	while (!(err = ship_link_receive(&s->link, &r, &e)))
		if (!take_reply(s, &r))
			return;
	if (err == -EBADMSG || err == -EPROTO)
		fail(s, e.text);
}

static void take_events(struct ship *s)
{
	enum ship_event event;

	while ((event = ship_link_event(&s->link)) != SHIP_NOTHING) {
		if (event == SHIP_UP) {
			metric_add(&s->stats.connects, 1);
			metric_set(&s->stats.connected, 1);
			s->connect_by = 0;
			continue;
		}
		if (event == SHIP_UNKNOWN_KEY)
			fail(s, "does not let this node's key in; is it in its allowed_keys?");
		else
			fail(s, s->link.up ? "the connection is lost" :
					     "cannot be reached, or has another key than the endpoint line says");
		return;
	}
}

static void check_times(struct ship *s)
{
	uint64_t now = clock_monotonic();

	if (s->connect_by && now >= s->connect_by)
		fail(s, "cannot be reached in time");
	else if (s->answer_by && now >= s->answer_by)
		fail(s, "does not answer in time");
}

static void sooner(uint64_t *at, uint64_t other)
{
	if (other && other < *at)
		*at = other;
}

static long wait_ms(const struct ship *s)
{
	uint64_t now = clock_monotonic(), at = now + 60ull * 1000000000;

	sooner(&at, s->retry_at);
	sooner(&at, s->connect_by);
	sooner(&at, s->answer_by);
	return at <= now ? 0 : (long)((at - now) / 1000000 + 1);
}

static void wait_for_something(struct ship *s)
{
	zmq_pollitem_t items[4] = { { NULL, s->wake, ZMQ_POLLIN, 0 } };
	int n = 1;

	if (s->link.socket) {
		items[n++] = (zmq_pollitem_t){ s->link.monitor, 0, ZMQ_POLLIN, 0 };
		// What waits because the socket is full goes when it has room; what waits for answers must not spin.
		items[n++] = (zmq_pollitem_t){ s->link.socket, 0,
					       ZMQ_POLLIN | (s->link.up && s->waiting.data && room_for(s, s->waiting.size) ?
							     ZMQ_POLLOUT : 0), 0 };
	}
	if (s->link.up && !s->waiting.data && s->flight.n < s->options.max_batches)
		items[n++] = (zmq_pollitem_t){ NULL, s->source.fd, ZMQ_POLLIN, 0 };
	zmq_poll(items, n, wait_ms(s));
}

static void *run(void *context)
{
	struct ship *s = context;

	s->source.rewind(s->source.context);
	while (!stopping(s)) {
		if (!s->link.socket && clock_monotonic() >= s->retry_at)
			connect_now(s);
		wait_for_something(s);
		if (!s->link.socket)
			continue;
		// Answers first: those of a connection that was lost afterwards count.
		take_replies(s);
		take_events(s);
		check_times(s);
		send_all(s);
	}
	hang_up(s);
	zmq_ctx_term(s->zmq);
	return NULL;
}

static void destroy(struct ship *s)
{
	if (s->wake >= 0)
		close(s->wake);
	free(s->endpoints);
	key_pair_clear(&s->key);
	free(s);
}

static unsigned or_default(unsigned value, unsigned fallback)
{
	return value ? value : fallback;
}

static int copy_options(struct ship *s, const struct ship_options *o)
{
	s->options = *o;
	s->endpoints = calloc(o->n_endpoints, sizeof(*s->endpoints));
	if (!s->endpoints)
		return -ENOMEM;
	memcpy(s->endpoints, o->endpoints, o->n_endpoints * sizeof(*s->endpoints));
	s->options.endpoints = s->endpoints;
	if (o->key) {
		s->key = *o->key;
		s->options.key = &s->key;
	}
	s->options.max_batches = or_default(o->max_batches, 16);
	if (s->options.max_batches > SHIP_BATCHES_MAX)
		s->options.max_batches = SHIP_BATCHES_MAX;
	if (!o->max_bytes)
		s->options.max_bytes = 4 << 20;
	s->options.connect_timeout_ms = or_default(o->connect_timeout_ms, 5000);
	s->options.answer_timeout_ms = or_default(o->answer_timeout_ms, 30000);
	s->options.pause_min_ms = or_default(o->pause_min_ms, 500);
	s->options.pause_max_ms = or_default(o->pause_max_ms, 60000);
	s->pause_ms = s->options.pause_min_ms;
	return 0;
}

static int check_options(const struct ship_options *o, struct error *e)
{
	if (!o->n_endpoints)
		return error_set(e, -ENODATA, "there is no endpoint to ship to");
	for (unsigned i = 0; i < o->n_endpoints; i++)
		if (o->endpoints[i].curve && !o->key)
			return error_set(e, -EINVAL, "endpoint %s has a key, and this node has none: set [ship] key to the file that "
					 "'blkprof keygen' made", o->endpoints[i].address);
	return 0;
}

static int start(struct ship *s, struct error *e)
{
	int err;

	s->zmq = zmq_ctx_new();
	if (!s->zmq)
		return error_set(e, -ENOMEM, "out of memory");
	err = -pthread_create(&s->thread, NULL, run, s);
	if (err) {
		zmq_ctx_term(s->zmq);
		return error_set(e, err, "no thread can be started: %s", strerror(-err));
	}
	pthread_setname_np(s->thread, "blkprof-ship");
	return 0;
}

int ship_open(const struct ship_options *options, const struct ship_source *source, struct ship **ret, struct error *e)
{
	struct ship *s;
	int err = check_options(options, e);

	if (err)
		return err;
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(e, -ENOMEM, "out of memory");
	s->source = *source;
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake < 0)
		err = error_set(e, -errno, "no event can be made: %s", strerror(errno));
	else if (copy_options(s, options))
		err = error_set(e, -ENOMEM, "out of memory");
	else
		err = start(s, e);
	if (err) {
		destroy(s);
		return err;
	}
	*ret = s;
	return 0;
}

bool ship_close(struct ship *s, unsigned timeout_ms)
{
	struct timespec until;
	uint64_t at = clock_realtime() + (uint64_t)timeout_ms * 1000000;

	if (!s)
		return true;
	__atomic_store_n(&s->stop, 1, __ATOMIC_RELEASE);
	eventfd_write(s->wake, 1);
	until.tv_sec = (time_t)(at / 1000000000);
	until.tv_nsec = (long)(at % 1000000000);
	if (pthread_timedjoin_np(s->thread, NULL, &until)) {
		pthread_detach(s->thread);
		return false;
	}
	destroy(s);
	return true;
}

void ship_stats(const struct ship *s, struct ship_stats *ret)
{
	const uint64_t *from = (const uint64_t *)&s->stats;
	uint64_t *to = (uint64_t *)ret;

	for (size_t i = 0; i < sizeof(*ret) / sizeof(*to); i++)
		to[i] = metric_get(&from[i]);
}
