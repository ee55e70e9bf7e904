// SPDX-License-Identifier: Apache-2.0
// Sends records of requests to a collector as one node: a line of standard input is a document, taken as it is. Each batch is
// sent again until it is answered; ends when all are, and tells in JSON how.
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <zmq.h>

#include "common/clock.h"
#include "common/text.h"
#include "wire/batch.h"
#include "wire/header.h"
#include "wire/reply.h"

#define PATIENCE_MS 5000
#define TRIES 24
#define ANSWERS (REPLY_BUSY + 1)

struct sender {
	const char *address, *node;
	uint64_t per_batch;
	void *zmq, *socket;
	struct batch batch;
	struct batch_profile *document;
	char **line;
	uint64_t sent, answers[ANSWERS];
};

static int connect_socket(struct sender *s)
{
	int none = 0;

	if (s->socket)
		zmq_close(s->socket);
	s->socket = zmq_socket(s->zmq, ZMQ_DEALER);
	if (!s->socket)
		return -errno;
	zmq_setsockopt(s->socket, ZMQ_LINGER, &none, sizeof(none));
	return zmq_connect(s->socket, s->address) ? -errno : 0;
}

// The answer to this token; 0 = none in time.
static enum reply_status wait_answer(struct sender *s, uint64_t token)
{
	uint64_t until = clock_monotonic() + PATIENCE_MS * 1000000ull;
	zmq_pollitem_t item = { s->socket, 0, ZMQ_POLLIN, 0 };
	uint8_t data[4096];
	struct reply r;

	while (clock_monotonic() < until && zmq_poll(&item, 1, 100) >= 0) {
		int size = zmq_recv(s->socket, data, sizeof(data), ZMQ_DONTWAIT);

		if (size > 0 && (size_t)size <= sizeof(data) && !reply_decode(data, (size_t)size, &r, NULL) && r.token == token)
			return r.status;
	}
	return 0;
}

static int send_batch(struct sender *s)
{
	struct buf out = { 0 };
	int err;

	s->batch.sequence++;
	s->batch.end = clock_realtime();
	s->batch.start = s->batch.end - 1000000000u;
	err = batch_encode(&s->batch, &out);
	for (unsigned i = 0; i < TRIES && !err; i++) {
		enum reply_status status;

		message_header_set_token(out.data, s->batch.sequence);
		err = zmq_send(s->socket, out.data, out.len, 0) < 0 ? -errno : 0;
		status = err ? 0 : wait_answer(s, s->batch.sequence);
		if (status && status != REPLY_BUSY) {
			s->answers[status]++;
			s->sent++;
			break;
		}
		if (i + 1 == TRIES)
			err = -ETIMEDOUT;
		else if (!status)
			err = connect_socket(s);
	}
	buf_free(&out);
	return err;
}

static int send_all(struct sender *s)
{
	bool more = true;
	int err = 0;

	while (more && !err) {
		s->batch.n_requests = 0;
		while (s->batch.n_requests < s->per_batch) {
			size_t cap = 0;
			ssize_t len;

			free(s->line[s->batch.n_requests]);
			s->line[s->batch.n_requests] = NULL;
			len = getline(&s->line[s->batch.n_requests], &cap, stdin);
			more = len > 0;
			if (!more)
				break;
			len -= s->line[s->batch.n_requests][len - 1] == '\n';
			s->document[s->batch.n_requests] =
				(struct batch_profile){ .data = s->line[s->batch.n_requests], .size = (size_t)len };
			s->batch.n_requests++;
		}
		if (s->batch.n_requests)
			err = send_batch(s);
	}
	return err;
}

static int run(struct sender *s)
{
	int err;

	s->zmq = zmq_ctx_new();
	s->line = calloc(s->per_batch, sizeof(*s->line));
	s->document = calloc(s->per_batch, sizeof(*s->document));
	if (!s->zmq || !s->line || !s->document)
		return -ENOMEM;
	s->batch = (struct batch){ .kind = BATCH_REQUESTS, .node = s->node, .requests = s->document };
	if (getrandom(s->batch.instance, sizeof(s->batch.instance), 0) < 0)
		return -errno;
	err = connect_socket(s);
	return err ? err : send_all(s);
}

static int parse(struct sender *s, int argc, char **argv)
{
	static const struct option options[] = { { "address", 1, 0, 'a' }, { "node", 1, 0, 'n' }, { "batch", 1, 0, 'b' }, { 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'a')
			s->address = optarg;
		else if (c == 'n')
			s->node = optarg;
		else if (c != 'b' || text_number(optarg, 1, BATCH_REQUESTS_MAX, "batch", &s->per_batch, NULL))
			return -EINVAL;
	}
	return s->address && s->node ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
	struct sender s = { .per_batch = 100 };
	int err = parse(&s, argc, argv);

	if (err) {
		fprintf(stderr, "usage: requestload --address tcp://… --node NAME [--batch DOCUMENTS] <LINES\n");
		return 2;
	}
	err = run(&s);
	if (err)
		fprintf(stderr, "requestload: %s\n", zmq_strerror(-err));
	printf("{\"sent\": %llu, \"stored\": %llu, \"duplicate\": %llu, \"refused\": %llu}\n", (unsigned long long)s.sent,
	       (unsigned long long)s.answers[REPLY_STORED], (unsigned long long)s.answers[REPLY_DUPLICATE],
	       (unsigned long long)s.answers[REPLY_REFUSED]);
	if (s.socket)
		zmq_close(s.socket);
	if (s.zmq)
		zmq_ctx_term(s.zmq);
	for (uint64_t i = 0; s.line && i < s.per_batch; i++)
		free(s.line[i]);
	free(s.line);
	free(s.document);
	return err ? 1 : 0;
}
