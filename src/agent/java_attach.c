// SPDX-License-Identifier: Apache-2.0
#include "agent/java_attach.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/attach_files.h"
#include "common/clock.h"
#include "common/thread.h"

#define AGAIN_NS 60000000000ull
#define SOON_NS 5000000000ull // when it was still starting
#define TIMEOUT_MS 5000
#define LOOK_MS 100 // whether it is to end
#define CONNECT_MS 500
#define END_MS 4000 // longer than all it does takes, but for memory of a process that a hostile server has to give
#define QUEUE 16
#define ASKED 256 // processes remembered
#define ANSWER_MAX 65536
#define DUMP_MAX (4u << 20)

struct question {
	pid_t pid;
	struct proc_status status;
};

struct java_attach {
	pthread_t thread;
	struct jvm_wake *waker; // not owned; NULL: JVMs without a socket are let be
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	struct question queue[QUEUE];
	unsigned n;
	uint64_t asked_ns[ASKED]; // when, by pid modulo ASKED
};

static bool is_peer(int fd, pid_t pid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.pid == pid;
}

static int connect_to(int file, pid_t pid, const struct proc_status *status)
{
	struct timeval limit = { .tv_usec = CONNECT_MS * 1000 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct as_user user;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
	// Older JVMs answer only their own user.
	err = as_user_begin(&user, status);
	if (!err) {
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
			err = -errno;
		as_user_end(&user);
	}
	if (!err && !is_peer(fd, pid))
		err = -EACCES;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static bool ends(const struct java_asking *a)
{
	return a->ends && a->ends(a->context);
}

static bool is_stopped(void *context)
{
	struct java_attach *j = context;
	bool stop;

	pthread_mutex_lock(&j->lock);
	stop = j->stop;
	pthread_mutex_unlock(&j->lock);
	return stop;
}

// The terminator of each array is that of the last argument.
static const char perf_map[] = "1\0jcmd\0Compiler.perfmap\0\0", thread_print[] = "1\0jcmd\0Thread.print\0\0";

// With dump, the answer goes there.
static int ask(int fd, const struct java_asking *a, struct buf *dump)
{
	const char *question = dump ? thread_print : perf_map;
	size_t size = dump ? sizeof(thread_print) : sizeof(perf_map), most = dump ? DUMP_MAX : ANSWER_MAX;
	uint64_t until = clock_monotonic() + (uint64_t)a->timeout_ms * 1000000;
	char answer[1024], first = 0;
	size_t total = 0;

	if (send(fd, question, size, MSG_NOSIGNAL) != (ssize_t)size)
		return errno ? -errno : -EIO;
	while (total < most) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = clock_monotonic();
		ssize_t n;

		if (now >= until || ends(a))
			return -ETIMEDOUT;
		if (poll(&p, 1, LOOK_MS) <= 0)
			continue;
		n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		if (!total)
			first = answer[0];
		total += (size_t)n;
		if (dump)
			buf_append(dump, answer, (size_t)n);
	}
	return first == '0' ? 0 : -EOPNOTSUPP;
}

static int find_socket(pid_t pid, const struct proc_status *status, const struct java_asking *a)
{
	int file = attach_socket_find(pid, status), err;

	// Of one whose /tmp is remote it is counted that it is let be.
	if ((file != -ENOENT && file != -EREMOTE) || !a->wake)
		return file;
	if (ends(a))
		return -ECANCELED; // whom the waker belongs to may be gone
	err = jvm_wake_open(a->wake, pid, a->ends, a->context);
	return err ? err : attach_socket_find(pid, status);
}

static int attach(pid_t pid, const struct proc_status *status, const struct java_asking *a, struct buf *dump)
{
	int file = find_socket(pid, status, a), fd, err;

	if (file < 0)
		return file;
	fd = connect_to(file, pid, status);
	close(file);
	if (fd < 0)
		return fd;
	err = ask(fd, a, dump);
	close(fd);
	return err;
}

int java_attach_threads(pid_t pid, const struct proc_status *status, const struct java_asking *a, struct buf *ret)
{
	int err = attach(pid, status, a, ret);

	return err ? err : ret->error;
}

// Under the lock.
static void ask_sooner(struct java_attach *j, pid_t pid)
{
	j->asked_ns[(unsigned)pid % ASKED] -= AGAIN_NS - SOON_NS;
}

static void *answer_questions(void *context)
{
	struct java_attach *j = context;
	struct java_asking asking = { .wake = j->waker, .timeout_ms = TIMEOUT_MS, .ends = is_stopped, .context = j };
	struct question q;
	int err;

	pthread_mutex_lock(&j->lock);
	for (;;) {
		while (!j->stop && !j->n)
			pthread_cond_wait(&j->wake, &j->lock);
		if (j->stop)
			break;
		q = j->queue[--j->n];
		pthread_mutex_unlock(&j->lock);
		err = attach(q.pid, &q.status, &asking, NULL);
		pthread_mutex_lock(&j->lock);
		if (err == -EAGAIN || err == -EBUSY)
			ask_sooner(j, q.pid);
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

struct java_attach *java_attach_new(struct jvm_wake *wake)
{
	struct java_attach *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->waker = wake;
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->wake, NULL);
	if (!thread_start(&j->thread, answer_questions, j))
		return j;
	pthread_cond_destroy(&j->wake);
	pthread_mutex_destroy(&j->lock);
	free(j);
	return NULL;
}

void java_attach_free(struct java_attach *j)
{
	if (!j)
		return;
	pthread_mutex_lock(&j->lock);
	j->stop = true;
	pthread_cond_signal(&j->wake);
	pthread_mutex_unlock(&j->lock);
	if (!thread_end(j->thread, END_MS))
		return;
	pthread_cond_destroy(&j->wake);
	pthread_mutex_destroy(&j->lock);
	free(j);
}

void java_attach_ask(struct java_attach *j, pid_t pid, const struct proc_status *status)
{
	unsigned i = (unsigned)pid % ASKED;
	uint64_t now = clock_monotonic();

	pthread_mutex_lock(&j->lock);
	// JVMs that share a place wait for each other.
	if (j->n < QUEUE && (!j->asked_ns[i] || now - j->asked_ns[i] > AGAIN_NS)) {
		j->asked_ns[i] = now;
		j->queue[j->n++] = (struct question){ .pid = pid, .status = *status };
		pthread_cond_signal(&j->wake);
	}
	pthread_mutex_unlock(&j->lock);
}
