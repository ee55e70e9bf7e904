// SPDX-License-Identifier: Apache-2.0
// client PORT PLAN: lines of a plan, `T` begins a thread with the lines behind it; of a thread, one after the other: `C` connects,
// `S TEXT` sends (\r and \n are written as such), `B N` sends N bytes of a body, `P MS` pauses, `A N` takes N bytes of answers.
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS 32
#define LINES 20000

static char *lines[LINES];
static unsigned n_lines, port;

static void fail(const char *what, unsigned line)
{
	fprintf(stderr, "client: %s, line %u: %m\n", what, line + 1);
	exit(1);
}

static int open_connection(unsigned line)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = 60 }, sizeof(struct timeval));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
		fail("connect", line);
	return fd;
}

static size_t unescape(char *text)
{
	char *out = text;

	for (const char *at = text; *at && *at != '\n'; at++)
		*out++ = *at != '\\' ? *at : *++at == 'r' ? '\r' : '\n';
	return (size_t)(out - text);
}

static void send_all(int fd, const char *data, size_t size, unsigned line)
{
	if (send(fd, data, size, MSG_NOSIGNAL) != (ssize_t)size)
		fail("send", line);
}

static void take_answers(int fd, size_t size, unsigned line)
{
	char data[65536];

	while (size) {
		ssize_t n = recv(fd, data, size < sizeof(data) ? size : sizeof(data), 0);

		if (n <= 0)
			fail("answers", line);
		size -= (size_t)n;
	}
}

static void *play(void *first)
{
	static const char body[65536];
	int fd = -1;

	for (unsigned i = (unsigned)((char **)first - lines); i < n_lines && *lines[i] != 'T'; i++) {
		char *rest = lines[i] + 2;
		size_t n = *lines[i] == 'S' || *lines[i] == 'C' ? 0 : strtoul(rest, NULL, 10);

		if (*lines[i] == 'C') {
			close(fd);
			fd = open_connection(i);
		} else if (*lines[i] == 'S') {
			n = unescape(rest);
			send_all(fd, rest, n, i);
		} else if (*lines[i] == 'B') {
			send_all(fd, body, n, i);
		} else if (*lines[i] == 'P') {
			usleep((useconds_t)n * 1000);
		} else {
			take_answers(fd, n, i);
		}
	}
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	FILE *f = argc == 3 ? fopen(argv[2], "r") : NULL;
	pthread_t thread[THREADS];
	unsigned n = 0;

	for (size_t room = 0; f && n_lines < LINES && getline(&lines[n_lines], &room, f) > 0; room = 0)
		n_lines++;
	if (!n_lines) {
		fprintf(stderr, "client: no plan\n");
		return 1;
	}
	port = (unsigned)strtoul(argv[1], NULL, 10);
	for (unsigned i = 0; i < n_lines && n < THREADS; i++)
		if (*lines[i] == 'T')
			pthread_create(&thread[n++], NULL, play, &lines[i + 1]);
	while (n)
		pthread_join(thread[--n], NULL);
	return 0;
}
