// SPDX-License-Identifier: Apache-2.0
// Sends batches to a collector as many nodes at once, each over a connection of its own and with a key of its own, and
// tells in JSON how they were answered and how long that took. No batch is sent again: what has no answer is counted.
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zmq.h>

#include "batches.h"
#include "common/clock.h"
#include "common/text.h"
#include "wire/header.h"
#include "wire/keys.h"
#include "wire/reply.h"

#define WINDOW_NS 10000000000ull
#define ANSWERS (REPLY_BUSY + 1)

struct node {
	char name[BATCH_NODE_MAX + 1];
	uint8_t instance[16];
	struct key_pair key;
	void *socket;
	uint64_t sequence, due; // monotonic ns
	uint64_t sent_at[64];	// by token % 64
	unsigned waiting;
};

struct load {
	const char *address, *server_key, *keys_file, *prefix;
	uint64_t nodes, services, samples, interval_ms, batches, seconds, max_waiting, first, age;
	unsigned bad;
	void *zmq;
	struct node *node;
	struct batches content;
	uint64_t answers[ANSWERS], sent, bytes, unsent;
	double *latency; // ms
	size_t n_latency, cap_latency;
};

static volatile sig_atomic_t stopped;

static void on_stop(int signal)
{
	stopped = 1;
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "batchload: %s: %s\n", what, err ? zmq_strerror(err < 0 ? -err : err) : "wrong");
	return 1;
}

static int write_keys(const struct load *l)
{
	FILE *f = fopen(l->keys_file, "w");
	char text[KEY_TEXT];

	if (!f)
		return -errno;
	for (uint64_t i = 0; i < l->nodes; i++) {
		key_text(l->node[i].key.public, text);
		fprintf(f, "%s %s\n", text, l->node[i].name);
	}
	return fclose(f) ? -errno : 0;
}

static int make_nodes(struct load *l)
{
	l->node = calloc(l->nodes, sizeof(*l->node));
	if (!l->node)
		return -ENOMEM;
	for (uint64_t i = 0; i < l->nodes; i++) {
		struct node *n = &l->node[i];

		snprintf(n->name, sizeof(n->name), "%.40s-%llu", l->prefix, (unsigned long long)(i + 1));
		n->sequence = l->first;
		if (getrandom(n->instance, sizeof(n->instance), 0) < 0 || key_pair_generate(&n->key, NULL))
			return -EIO;
	}
	return l->keys_file ? write_keys(l) : 0;
}

static int connect_node(struct load *l, struct node *n, const uint8_t *server_key)
{
	int none = 0, many = 64, one = 1;

	n->socket = zmq_socket(l->zmq, ZMQ_DEALER);
	if (!n->socket)
		return -errno;
	zmq_setsockopt(n->socket, ZMQ_LINGER, &none, sizeof(none));
	zmq_setsockopt(n->socket, ZMQ_SNDHWM, &many, sizeof(many));
	zmq_setsockopt(n->socket, ZMQ_IMMEDIATE, &one, sizeof(one));
	if (server_key) {
		zmq_setsockopt(n->socket, ZMQ_CURVE_SERVERKEY, server_key, KEY_SIZE);
		zmq_setsockopt(n->socket, ZMQ_CURVE_PUBLICKEY, n->key.public, KEY_SIZE);
		zmq_setsockopt(n->socket, ZMQ_CURVE_SECRETKEY, n->key.secret, KEY_SIZE);
	}
	return zmq_connect(n->socket, l->address) ? -errno : 0;
}

static int connect_all(struct load *l)
{
	uint8_t key[KEY_SIZE];
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	l->zmq = zmq_ctx_new();
	zmq_ctx_set(l->zmq, ZMQ_MAX_SOCKETS, (int)l->nodes + 16);
	if (l->server_key && key_parse(l->server_key, key, NULL))
		return -EINVAL;
	for (uint64_t i = 0; i < l->nodes; i++) {
		int err = connect_node(l, &l->node[i], l->server_key ? key : NULL);

		if (err)
			return err;
	}
	return 0;
}

static int send_batch(struct load *l, struct node *n, uint64_t now)
{
	uint64_t start = (clock_realtime() / 1000000000 - l->age) * 1000000000 / WINDOW_NS * WINDOW_NS;
	struct buf out = { 0 };
	int err = batches_encode(&l->content, n->name, n->instance, n->sequence, start - WINDOW_NS, start, (enum bad)l->bad, &out);

	if (!err) {
		message_header_set_token(out.data, n->sequence);
		if (l->bad == BAD_GARBAGE)
			memset(out.data, 'x', MESSAGE_HEADER_SIZE);
		if (l->bad == BAD_PARTS && zmq_send(n->socket, "part", 4, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
			err = -errno;
		if (!err && zmq_send(n->socket, out.data, out.len, ZMQ_DONTWAIT) < 0)
			err = -errno;
	}
	if (!err) {
		n->sent_at[n->sequence++ % 64] = now;
		n->waiting++;
		l->sent++;
		l->bytes += out.len;
	}
	buf_free(&out);
	return err;
}

static void note_latency(struct load *l, uint64_t ns)
{
	double *more;

	if (l->n_latency == l->cap_latency) {
		l->cap_latency = l->cap_latency ? 2 * l->cap_latency : 4096;
		more = realloc(l->latency, l->cap_latency * sizeof(*more));
		if (!more)
			return;
		l->latency = more;
	}
	l->latency[l->n_latency++] = (double)ns / 1e6;
}

static void take_answers(struct load *l, struct node *n)
{
	uint8_t data[4096];
	struct reply r;
	int size;

	while ((size = zmq_recv(n->socket, data, sizeof(data), ZMQ_DONTWAIT)) >= 0) {
		if ((size_t)size > sizeof(data) || reply_decode(data, (size_t)size, &r, NULL))
			continue;
		l->answers[r.status]++;
		n->waiting -= n->waiting > 0;
		note_latency(l, clock_monotonic() - n->sent_at[r.token % 64]);
	}
}

// One look at every node; how many have something left to do.
static uint64_t look(struct load *l, uint64_t begin, uint64_t until)
{
	uint64_t busy = 0, now = clock_monotonic();

	for (uint64_t i = 0; i < l->nodes; i++) {
		struct node *n = &l->node[i];

		take_answers(l, n);
		if (!n->due)
			n->due = begin + i * l->interval_ms * 1000000 / l->nodes; // spread, as agents are
		while (now >= n->due && now < until && n->sequence < l->first + l->batches && n->waiting < l->max_waiting) {
			if (send_batch(l, n, now))
				break;
			n->due += l->interval_ms * 1000000;
		}
		busy += n->waiting || (now < until && n->sequence < l->first + l->batches);
	}
	return busy;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(struct load *l, double q)
{
	return l->n_latency ? l->latency[(size_t)(q * (double)(l->n_latency - 1))] : 0;
}

static void report(struct load *l, double seconds)
{
	uint64_t waiting = 0;

	for (uint64_t i = 0; i < l->nodes; i++)
		waiting += l->node[i].waiting;
	if (l->n_latency)
		qsort(l->latency, l->n_latency, sizeof(*l->latency), by_value);
	printf("{\"sent\": %llu, \"bytes\": %llu, \"stored\": %llu, \"duplicate\": %llu, \"refused\": %llu, \"unauthorized\": %llu, "
	       "\"version\": %llu, \"busy\": %llu, \"unanswered\": %llu, \"seconds\": %.3f, "
	       "\"ms_median\": %.2f, \"ms_p99\": %.2f, \"ms_max\": %.2f}\n",
	       (unsigned long long)l->sent, (unsigned long long)l->bytes, (unsigned long long)l->answers[REPLY_STORED],
	       (unsigned long long)l->answers[REPLY_DUPLICATE], (unsigned long long)l->answers[REPLY_REFUSED],
	       (unsigned long long)l->answers[REPLY_UNAUTHORIZED], (unsigned long long)l->answers[REPLY_VERSION],
	       (unsigned long long)l->answers[REPLY_BUSY], (unsigned long long)waiting, seconds, quantile(l, 0.5),
	       quantile(l, 0.99), quantile(l, 1));
}

static int run(struct load *l)
{
	uint64_t begin, until, end;
	int err = make_nodes(l);

	if (err)
		return fail("keys", err);
	err = batches_make(&l->content, (unsigned)l->services, (unsigned)l->samples);
	if (err)
		return fail("profiles", err);
	if (l->keys_file) { // the collector reads them before anybody connects
		printf("ready\n");
		fflush(stdout);
		if (getchar() == EOF)
			return 1;
	}
	err = connect_all(l);
	if (err)
		return fail(l->address, err);
	begin = clock_monotonic();
	until = begin + l->seconds * 1000000000;
	end = until + 10000000000; // for the last answers
	while (look(l, begin, until) && clock_monotonic() < end && !stopped)
		usleep(l->nodes > 100 ? 10000 : 1000);
	report(l, (double)(clock_monotonic() - begin) / 1e9);
	return 0;
}

static int parse(struct load *l, int argc, char **argv)
{
	static const struct option options[] = {
		{ "address", 1, 0, 'a' }, { "server-key", 1, 0, 'k' }, { "keys", 1, 0, 'f' }, { "prefix", 1, 0, 'p' },
		{ "nodes", 1, 0, 'n' }, { "services", 1, 0, 's' }, { "samples", 1, 0, 'm' }, { "interval-ms", 1, 0, 'i' },
		{ "batches", 1, 0, 'b' }, { "seconds", 1, 0, 't' }, { "waiting", 1, 0, 'w' }, { "first", 1, 0, '1' },
		{ "age", 1, 0, 'g' }, { "bad", 1, 0, 'x' }, { 0 },
	};
	struct error e;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		static const char letters[] = "nsmibtw1g";
		uint64_t *const numbers[] = { &l->nodes, &l->services, &l->samples, &l->interval_ms, &l->batches, &l->seconds,
					      &l->max_waiting, &l->first, &l->age };
		const char *at = strchr(letters, c);

		if (at && text_number(optarg, 0, 1000000000, "number", numbers[at - letters], &e))
			return fail(e.text, 0);
		if (c == 'a')
			l->address = optarg;
		else if (c == 'k')
			l->server_key = optarg;
		else if (c == 'f')
			l->keys_file = optarg;
		else if (c == 'p')
			l->prefix = optarg;
		else if (c == 'x')
			while (l->bad < BADS && strcmp(bad_names[l->bad], optarg))
				l->bad++;
		else if (!at)
			return 2;
	}
	if (!l->address || !l->nodes || l->bad == BADS || !l->max_waiting || l->max_waiting > 64)
		return fail("usage: batchload --address tcp://… [--server-key KEY --keys FILE] [--nodes N]…", 0);
	return 0;
}

int main(int argc, char **argv)
{
	static struct load l = { .nodes = 1, .services = 3, .samples = 20, .batches = 1000000000, .seconds = 10, .max_waiting = 8,
				 .first = 1, .prefix = "node" };
	int status = parse(&l, argc, argv);

	signal(SIGTERM, on_stop);
	signal(SIGPIPE, SIG_IGN);
	if (!status)
		status = run(&l);
	for (uint64_t i = 0; l.node && i < l.nodes; i++)
		if (l.node[i].socket)
			zmq_close(l.node[i].socket);
	if (l.zmq)
		zmq_ctx_term(l.zmq);
	batches_free(&l.content);
	free(l.node);
	free(l.latency);
	return status;
}
