// SPDX-License-Identifier: Apache-2.0
// The server over real sockets of the loopback interface.
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/metrics.h"
#include "http/server.h"

struct world {
	atomic_int started;
	atomic_bool go;
};

static int hello(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	static const char *const names[] = { "name", NULL };
	const char *name = http_argument_of(q, "name");
	int err = http_check_arguments(q, names, e);

	(void)context;
	if (err)
		return err;
	buf_printf(&r->body, "hello %s", name ? name : "nobody");
	return 0;
}

static int slow(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	struct world *w = context;

	(void)e;
	w->started++;
	while (!w->go && !http_stopping(q->server))
		usleep(1000);
	buf_printf(&r->body, "done");
	return 0;
}

static int missing(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	(void)context;
	(void)q;
	buf_printf(&r->body, "half an answer");
	return error_set(e, -ENODATA, "there is no window then");
}

static int large(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	(void)context;
	(void)q;
	(void)e;
	for (unsigned i = 0; i < 1000000; i++)
		buf_append(&r->body, "0123456789", 10);
	return 0;
}

static const struct http_route routes[] = {
	{ .path = "/hello", .fn = hello, .quick = true },
	{ .path = "/slow", .fn = slow },
	{ .path = "/missing", .fn = missing },
	{ .path = "/large", .fn = large },
	{ .path = "/healthz", .fn = hello, .open = true, .quick = true },
	{ .path = NULL },
};

static int connect_to(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void ask(int fd, const char *path, const char *headers)
{
	char text[20000];
	int len = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", path, headers);

	assert_int_equal(send(fd, text, (size_t)len, MSG_NOSIGNAL), len);
}

// The whole answer; the caller frees it.
static char *answer(int fd)
{
	struct buf b = { 0 };
	char part[65536];
	ssize_t n;

	while ((n = recv(fd, part, sizeof(part), 0)) > 0)
		buf_append(&b, part, (size_t)n);
	buf_byte(&b, 0);
	close(fd);
	return (char *)b.data;
}

static void expect(uint16_t port, const char *path, const char *headers, const char *status, const char *contains)
{
	int fd = connect_to(port);
	char *text;

	ask(fd, path, headers);
	text = answer(fd);
	if (strncmp(text + 9, status, 3) || !strstr(text, contains))
		print_message("%s: %s\n", path, text);
	assert_int_equal(strncmp(text + 9, status, 3), 0);
	assert_non_null(strstr(text, contains));
	free(text);
}

static struct http_server *serve(struct http_options *o, struct world *w)
{
	struct http_server *s = NULL;
	struct error e = { "" };

	if (!o->listen)
		o->listen = "127.0.0.1:0";
	if (http_server_new(o, routes, w, &s, &e))
		print_message("%s\n", e.text);
	assert_non_null(s);
	return s;
}

static void answers(void **state)
{
	static const char post[] = "POST /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
			  garbage[] = "\x16\x03\x01\x02garbage\r\n\r\n";
	struct http_options o = { 0 };
	struct world w = { 0 };
	struct http_server *s = serve(&o, &w);
	uint16_t port = http_port(s);
	char many[4000] = "/hello?", *text;
	int fd;

	expect(port, "/hello", "", "200", "hello nobody");
	expect(port, "/hello?name=a%20b", "", "200", "hello a b");
	expect(port, "/hello?nam=x", "", "400", "there is no argument 'nam'; there are name");
	expect(port, "/nowhere", "", "404", "X-Go-Pprof: 1");
	expect(port, "/missing", "", "404", "there is no window then\n");
	for (unsigned i = 0; i < 40; i++)
		strcat(many, "name=x&");
	expect(port, many, "", "200", "hello x"); // one argument, said forty times
	for (unsigned i = 0; i < 40; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), "name=%u&", i);
	expect(port, many, "", "400", "too many arguments");
	fd = connect_to(port);
	assert_true(send(fd, post, sizeof(post) - 1, MSG_NOSIGNAL) > 0);
	text = answer(fd);
	assert_non_null(strstr(text, " 405 "));
	free(text);
	fd = connect_to(port);
	assert_true(send(fd, garbage, sizeof(garbage) - 1, MSG_NOSIGNAL) > 0);
	free(answer(fd));
	expect(port, "/hello", "", "200", "hello nobody");
	http_server_free(s);
}

static void limits(void **state)
{
	struct http_options o = { .response = 1000000 };
	struct world w = { 0 };
	struct http_server *s = serve(&o, &w);

	expect(http_port(s), "/large", "", "413", "more than is sent");
	http_server_free(s);
}

static void tokens(void **state)
{
	char path[] = "/tmp/blkprof-token-XXXXXX", basic[] = "Authorization: Basic dXNlcjowMTIzNDU2Nzg5YWJjZGVm\r\n";
	struct http_options o = { .token_file = path }, outside = { .listen = "0.0.0.0:0" };
	struct world w = { 0 };
	struct http_server *s = NULL;
	struct error e = { "" };
	int fd = mkstemp(path);
	uint16_t port;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "0123456789abcdef\n", 17), 17);
	close(fd);
	chmod(path, 0644);
	assert_int_equal(http_server_new(&(struct http_options){ .listen = "127.0.0.1:0", .token_file = path }, routes, &w, &s, &e), -EACCES);
	chmod(path, 0600);
	s = serve(&o, &w);
	port = http_port(s);
	expect(port, "/hello", "", "401", "a token is needed");
	expect(port, "/nowhere", "", "401", "a token is needed");
	expect(port, "/healthz", "", "200", "hello");
	expect(port, "/hello", "Authorization: Bearer 0123456789abcdef\r\n", "200", "hello");
	expect(port, "/hello", "Authorization: Bearer 0123456789abcdeg\r\n", "401", "token");
	expect(port, "/hello", "Authorization: Bearer 0123456789abcdef0\r\n", "401", "token");
	expect(port, "/hello", "Authorization: Bearer \r\n", "401", "token");
	expect(port, "/hello", basic, "200", "hello");
	expect(port, "/hello", "Authorization: Basic !!!\r\n", "401", "token");
	assert_int_equal(metric_get(&http_get_counters(s)->refused_token), 6);
	http_server_free(s);
	// From other machines not without one.
	assert_int_equal(http_server_new(&outside, routes, &w, &s, &e), -EACCES);
	assert_non_null(strstr(e.text, "set token_file"));
	unlink(path);
}

static void refused_options(void **state)
{
	static const char *const bad[] = { "", "6061", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:x", "host.example:80", ":", "[::1:80" };
	struct world w = { 0 };
	struct http_server *s, *other;
	struct error e;
	char taken[40];
	struct http_options o = { 0 }, tls = { .listen = "127.0.0.1:0", .tls_cert = "/etc/hostname" };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		o.listen = bad[i];
		assert_true(http_server_new(&o, routes, &w, &s, &e) < 0);
		assert_non_null(strstr(e.text, "listen = "));
	}
	assert_int_equal(http_server_new(&tls, routes, &w, &s, &e), -EINVAL);
	tls.tls_key = tls.tls_cert;
	assert_true(http_server_new(&tls, routes, &w, &s, &e) < 0);
	o.listen = NULL;
	s = serve(&o, &w);
	snprintf(taken, sizeof(taken), "127.0.0.1:%u", http_port(s));
	o.listen = taken;
	assert_int_equal(http_server_new(&o, routes, &w, &other, &e), -EADDRINUSE);
	http_server_free(s);
}

// While requests are being worked on, others wait, quick ones do not, and what is too much is told so.
static void busy(void **state)
{
	struct http_options o = { .running = 1, .waiting = 1 };
	struct world w = { 0 };
	struct http_server *s = serve(&o, &w);
	uint16_t port = http_port(s);
	int first = connect_to(port), second;
	char *text;

	ask(first, "/slow", "");
	while (!w.started)
		usleep(1000);
	second = connect_to(port);
	ask(second, "/slow", "");
	usleep(100000);
	expect(port, "/slow", "", "503", "Retry-After");
	expect(port, "/hello", "", "200", "hello");
	w.go = true;
	text = answer(first);
	assert_non_null(strstr(text, "done"));
	free(text);
	text = answer(second);
	assert_non_null(strstr(text, "done"));
	free(text);
	http_server_free(s);
}

// Ended while a request runs, one waits and one client does not read.
static void ends(void **state)
{
	struct http_options o = { .running = 1 };
	struct world w = { 0 };
	struct http_server *s = serve(&o, &w);
	int running = connect_to(http_port(s)), waiting = connect_to(http_port(s));
	char *text;

	ask(running, "/slow", "");
	while (!w.started)
		usleep(1000);
	ask(waiting, "/large", "");
	usleep(50000);
	http_server_free(s);
	// Who waited has an answer, though the server ended at once.
	text = answer(running);
	assert_non_null(strstr(text, "done"));
	free(text);
	close(waiting);
}

// A byte now and then is no reason to keep a place for ever.
static void trickles(void **state)
{
	struct http_options o = { .connections = 1, .timeout_s = 2 };
	struct world w = { 0 };
	struct http_server *s = serve(&o, &w);
	static const char text[] = "GET /hello HTTP/1.1\r\nHost: x\r\nX-Slow: 0123456789012345678901234567890123456789";
	int fd = connect_to(http_port(s));
	unsigned sent = 0;

	while (sent < sizeof(text) - 1 && send(fd, text + sent, 1, MSG_NOSIGNAL) == 1) {
		sent++;
		usleep(250000);
	}
	assert_in_range(sent, 1, sizeof(text) - 2);
	assert_int_equal(metric_get(&http_get_counters(s)->cut), 1);
	close(fd);
	expect(http_port(s), "/hello", "", "200", "hello");
	http_server_free(s);
}

// Nor does the time count that we take.
static void works_long(void **state)
{
	struct http_options o = { .timeout_s = 1 };
	struct world w = { 0 };
	struct http_server *s = serve(&o, &w);
	int fd = connect_to(http_port(s));
	char *text;

	ask(fd, "/slow", "");
	usleep(2500000);
	w.go = true;
	text = answer(fd);
	assert_non_null(strstr(text, "done"));
	free(text);
	assert_int_equal(metric_get(&http_get_counters(s)->cut), 0);
	http_server_free(s);
}

// Who stays silent after an answer is let go, which is no fault of theirs.
static void silence(void **state)
{
	static const char text[] = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n";
	struct http_options o = { .timeout_s = 1 };
	struct world w = { 0 };
	struct http_server *s = serve(&o, &w);
	int fd = connect_to(http_port(s));

	assert_true(send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL) > 0);
	free(answer(fd));
	assert_int_equal(metric_get(&http_get_counters(s)->cut), 0);
	http_server_free(s);
}

static void *ask_on(void *socket)
{
	static const char text[] = "GET /missing HTTP/1.1\r\nHost: x\r\n\r\n";
	int fd = *(int *)socket;
	char part[4096];

	while (send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL) > 0 && recv(fd, part, sizeof(part), 0) > 0)
		;
	close(fd);
	return NULL;
}

// A connection that stays asks on while the server ends, which takes its time with a client that does not read.
static void asked_to_the_end(void **state)
{
	struct http_options o = { .running = 2 };
	struct world w = { 0 };
	struct http_server *s = serve(&o, &w);
	int deaf = connect_to(http_port(s)), asking = connect_to(http_port(s));
	pthread_t thread;

	ask(deaf, "/large", "");
	while (metric_get(&http_get_counters(s)->bytes) < 10000000)
		usleep(1000);
	assert_int_equal(pthread_create(&thread, NULL, ask_on, &asking), 0);
	while (metric_get(&http_get_counters(s)->failed) < 10)
		usleep(1000);
	http_server_free(s);
	pthread_join(thread, NULL);
	close(deaf);
}

// What clients do not read stays in memory: a bounded amount of it, and no longer than they are there.
static void slow_readers(void **state)
{
	struct http_options o = { .response = 15000000 };
	struct world w = { 0 };
	struct http_server *s = serve(&o, &w);
	uint16_t port = http_port(s);
	int first = connect_to(port), second = connect_to(port);
	char *text;

	ask(first, "/large", "");
	ask(second, "/large", "");
	while (metric_get(&http_get_counters(s)->bytes) < 20000000)
		usleep(1000);
	expect(port, "/large", "", "503", "Retry-After");
	expect(port, "/hello", "", "200", "hello");
	close(first);
	text = answer(second);
	assert_non_null(strstr(text, "0123456789"));
	free(text);
	for (unsigned tries = 0; tries < 500; tries++) {
		int fd = connect_to(port);

		ask(fd, "/large", "");
		text = answer(fd);
		if (!strncmp(text + 9, "200", 3))
			break;
		free(text);
		text = NULL;
		usleep(20000);
	}
	assert_non_null(text);
	free(text);
	http_server_free(s);
}

static void many_connections(void **state)
{
	struct http_options o = { .connections = 50, .timeout_s = 2 };
	struct world w = { 0 };
	struct http_server *s = serve(&o, &w);
	int fds[500];

	for (unsigned i = 0; i < 500; i++) {
		fds[i] = connect_to(http_port(s));
		assert_true(send(fds[i], "GET /he", strlen("GET /he"), MSG_NOSIGNAL) != 0);
	}
	// The idle ones are let go, and then there is room again.
	sleep(3);
	for (unsigned i = 0; i < 500; i++)
		close(fds[i]);
	usleep(200000);
	expect(http_port(s), "/hello", "", "200", "hello");
	http_server_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers), cmocka_unit_test(limits), cmocka_unit_test(tokens), cmocka_unit_test(refused_options),
		cmocka_unit_test(busy),	   cmocka_unit_test(ends),   cmocka_unit_test(many_connections),
		cmocka_unit_test(slow_readers), cmocka_unit_test(asked_to_the_end),
		cmocka_unit_test(trickles), cmocka_unit_test(works_long), cmocka_unit_test(silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
