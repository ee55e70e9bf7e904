// SPDX-License-Identifier: Apache-2.0
// server DEVICE TRUTH: an HTTP/1.1 server that does what a request asks for (?pread=3&fault=2&…), as Java servers do: connections
// wander between its threads, heads come in pieces that several of them read, bodies are waited for. It tells its port, and at
// /quit writes into TRUTH what it measured: a line of X-Trace-Id, thread, futex calls, ns in each kind of work.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define THREADS 12
#define READ_SIZE 8192
#define TRUTHS 4096

enum work { WORK_READ, WORK_PREAD, WORK_READV, WORK_FAULT, WORK_WRITE, WORK_PWRITE, WORK_FSYNC, WORK_SLEEP, WORK_LOCK, WORKS };
static const char *const names[WORKS] = { "read", "pread", "readv", "fault", "write", "pwrite", "fsync", "sleep", "lock" };

struct truth {
	char trace[32];
	int tid;
	unsigned futexes;
	unsigned long ns[WORKS];
};

struct connection {
	int fd;
	size_t len;
	char data[128 * 1024];
};

struct server {
	int epoll, listener, direct, buffered;
	const char *map, *truth_path;
	atomic_uint page, n_truths, tick;
	struct truth truths[TRUTHS];
};

static _Thread_local char *page_buffer;

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

// Each page once: none is in the cache.
static off_t next_page(struct server *s)
{
	return (off_t)(++s->page) * PAGE;
}

static void sleep_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000l }, NULL);
}

// Until the next tick of the thread that ticks.
static void wait_tick(struct server *s, struct truth *t)
{
	unsigned tick = s->tick;

	while (tick == s->tick) {
		t->futexes++;
		syscall(SYS_futex, &s->tick, FUTEX_WAIT_PRIVATE, tick, NULL, NULL, 0);
	}
}

static void *ticking(void *context)
{
	struct server *s = context;

	for (;;) {
		sleep_ms(3);
		s->tick++;
		syscall(SYS_futex, &s->tick, FUTEX_WAKE_PRIVATE, 1000, NULL, NULL, 0);
	}
	return NULL;
}

static void work_once(struct server *s, enum work w, struct truth *t)
{
	struct iovec v = { page_buffer, PAGE };
	ssize_t n = PAGE;

	switch (w) {
	case WORK_READ:
		n = read(s->direct, page_buffer, PAGE); // threads share its place: each reads another page
		break;
	case WORK_PREAD:
		n = pread(s->direct, page_buffer, PAGE, next_page(s));
		break;
	case WORK_READV:
		n = preadv(s->direct, &v, 1, next_page(s));
		break;
	case WORK_FAULT:
		page_buffer[0] = *(volatile const char *)(s->map + next_page(s));
		break;
	case WORK_WRITE:
		n = write(s->buffered, page_buffer, PAGE);
		break;
	case WORK_PWRITE:
		n = pwrite(s->direct, page_buffer, PAGE, next_page(s));
		break;
	case WORK_FSYNC:
		n = fsync(s->buffered) ? -1 : PAGE;
		break;
	case WORK_SLEEP:
		sleep_ms(3);
		break;
	default:
		wait_tick(s, t);
	}
	if (n != PAGE) {
		perror(names[w]);
		exit(1);
	}
}

static unsigned long parameter(const char *head, const char *name, unsigned long otherwise)
{
	const char *end = strchr(head, '\r');
	char text[32];

	for (const char *format = "?%s=\0&%s="; *format; format += strlen(format) + 1) {
		const char *at;

		snprintf(text, sizeof(text), format, name);
		at = strstr(head, text);
		if (at && at < end)
			return strtoul(at + strlen(text), NULL, 10);
	}
	return otherwise;
}

static void work(struct server *s, const char *head)
{
	struct truth *t = &s->truths[s->n_truths++ % TRUTHS];
	const char *trace = strstr(head, "X-Trace-Id: ");

	if (trace)
		sscanf(trace, "X-Trace-Id: %31[^\r]", t->trace);
	t->tid = gettid();
	for (enum work w = 0; w < WORKS; w++) {
		unsigned long n = parameter(head, names[w], 0), start = now();

		for (unsigned long i = 0; i < n; i++)
			work_once(s, w, t);
		t->ns[w] = n ? now() - start : 0;
	}
}

static void write_all(int fd, struct iovec *v)
{
	ssize_t n = writev(fd, v, 2);

	if (n != (ssize_t)(v[0].iov_len + v[1].iov_len)) {
		perror("writev");
		exit(1);
	}
}

// With mapped=1 the body is a page that must come from the disk while it is sent.
static void answer(struct server *s, struct connection *c, const char *head)
{
	static char body[65536];
	unsigned long size = parameter(head, "bytes", 100), chunks = parameter(head, "chunks", 0);
	bool mapped = parameter(head, "mapped", 0);
	char text[200];
	struct iovec v[2] = { { text, 0 }, { mapped ? (char *)s->map + next_page(s) : body, mapped ? PAGE : size } };

	if (!chunks) {
		v[0].iov_len = (size_t)sprintf(text, "HTTP/1.1 %lu X\r\nContent-Length: %zu\r\n\r\n", parameter(head, "status", 200), v[1].iov_len);
		write_all(c->fd, v);
		return;
	}
	v[0].iov_len = (size_t)sprintf(text, "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n%lx\r\n", size);
	while (chunks--) {
		write_all(c->fd, v);
		v[0].iov_len = (size_t)sprintf(text, "\r\n%lx\r\n", size);
	}
	write_all(c->fd, (struct iovec[]){ { "\r\n0\r\n", 5 }, { "\r\n", 2 } });
}

static void quit(struct server *s)
{
	FILE *f = fopen(s->truth_path, "w");

	for (unsigned i = 0; f && i < s->n_truths; i++) {
		const struct truth *t = &s->truths[i];

		fprintf(f, "%s %d %u", *t->trace ? t->trace : "-", t->tid, t->futexes);
		for (enum work w = 0; w < WORKS; w++)
			fprintf(f, " %lu", t->ns[w]);
		fputs("\n", f);
	}
	exit(!f || fclose(f));
}

// What came; -EAGAIN when nothing has yet, 0 at the end.
static ssize_t take(struct connection *c)
{
	size_t room = sizeof(c->data) - 1 - c->len;
	ssize_t n = read(c->fd, c->data + c->len, room < READ_SIZE ? room : READ_SIZE);

	if (n > 0)
		c->len += (size_t)n;
	c->data[c->len] = 0;
	return n < 0 ? -errno : n;
}

// The requests that are whole, one after the other; of the last one the body is waited for.
static bool serve(struct server *s, struct connection *c)
{
	char *end;

	while ((end = strstr(c->data, "\r\n\r\n"))) {
		const char *length = strstr(c->data, "Content-Length: ");
		size_t size = (size_t)(end + 4 - c->data) + (length && length < end ? strtoul(length + 16, NULL, 10) : 0);

		while (c->len < size) {
			ssize_t n = take(c);

			if (!n || (n < 0 && n != -EAGAIN))
				return false;
			if (n == -EAGAIN)
				poll(&(struct pollfd){ .fd = c->fd, .events = POLLIN }, 1, -1);
		}
		if (!strncmp(c->data, "GET /quit", 9))
			quit(s);
		work(s, c->data);
		answer(s, c, c->data);
		c->len -= size;
		memmove(c->data, c->data + size, c->len + 1);
	}
	return true;
}

static void watch(struct server *s, int how, int fd, struct connection *c)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLONESHOT, .data.ptr = c };

	if (epoll_ctl(s->epoll, how, fd, &e)) {
		perror("epoll_ctl");
		exit(1);
	}
}

static void connection_ready(struct server *s, struct connection *c)
{
	ssize_t n;

	while ((n = take(c)) > 0)
		if (!serve(s, c))
			break;
	if (n == -EAGAIN) {
		watch(s, EPOLL_CTL_MOD, c->fd, c);
		return;
	}
	close(c->fd);
	munmap(c, sizeof(*c));
}

static void listener_ready(struct server *s)
{
	int fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK);
	struct connection *c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	watch(s, EPOLL_CTL_MOD, s->listener, NULL);
	if (fd < 0 || c == MAP_FAILED)
		return;
	c->fd = fd;
	watch(s, EPOLL_CTL_ADD, fd, c);
}

static void *serving(void *context)
{
	struct server *s = context;
	struct epoll_event e;

	page_buffer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	for (;;) {
		if (epoll_wait(s->epoll, &e, 1, -1) < 1)
			continue;
		if (e.data.ptr)
			connection_ready(s, e.data.ptr);
		else
			listener_ready(s);
	}
	return NULL;
}

static bool open_disk(struct server *s, const char *device)
{
	off_t size;

	s->direct = open(device, O_RDWR | O_DIRECT);
	s->buffered = open(device, O_RDWR);
	size = lseek(s->buffered, 0, SEEK_END);
	s->map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, s->buffered, 0);
	s->page = (unsigned)(size / PAGE / 2); // those before are for the calls that have a place
	lseek(s->buffered, size / 4, SEEK_SET);
	return s->direct >= 0 && s->map != MAP_FAILED && !madvise((void *)s->map, (size_t)size, MADV_RANDOM); // a fault reads one page
}

int main(int argc, char **argv)
{
	static struct server s;
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(a);
	pthread_t thread;

	s.truth_path = argc > 2 ? argv[2] : "";
	s.epoll = epoll_create1(0);
	s.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (argc != 3 || !open_disk(&s, argv[1]) || bind(s.listener, (struct sockaddr *)&a, size) || listen(s.listener, 100) ||
	    getsockname(s.listener, (struct sockaddr *)&a, &size)) {
		perror("server");
		return 1;
	}
	watch(&s, EPOLL_CTL_ADD, s.listener, NULL);
	pthread_create(&thread, NULL, ticking, &s);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, serving, &s);
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	pthread_join(thread, NULL);
	return 0;
}
