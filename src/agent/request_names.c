// SPDX-License-Identifier: Apache-2.0
#include "agent/request_names.h"

#include <ctype.h>
#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/java_attach.h"
#include "agent/proc_status.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "common/thread.h"
#include "request/thread_dump.h"

// A dump of its threads stops a JVM for a moment: rarer and rarer, while its threads become known.
#define AGAIN_NS 2000000000ull
#define AGAIN_MOST_NS 60000000000ull
#define PIDS 256
#define NAMES 8192
#define ASK_MS 1000 // of the time that a stop may take
#define END_MS 4000 // as of java_attach

struct name {
	uint32_t tid;
	char text[100];
};

struct request_names {
	struct jvm_wake *waker; // not owned
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	struct {
		pid_t pid;
		uint64_t due, wait;
	} pids[PIDS];
	unsigned n_pids;
	uint64_t left_out;
	struct name *names; // that have come
	unsigned n;
	// Of the JVM that is being asked; the thread's own.
	struct {
		uint32_t inner, outer;
	} *tids;
	unsigned n_tids;
};

static uint32_t inner_tid(pid_t pid, const char *task)
{
	char path[100];
	struct buf b = { 0 };
	const char *line, *last;
	uint32_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/status", (int)pid, task);
	if (!file_read(path, 65536, &b)) {
		buf_byte(&b, 0);
		line = b.error ? NULL : strstr((char *)b.data, "\nNSpid:");
		last = line ? line + 7 + strcspn(line + 7, "\n") : NULL;
		while (last && last > line && isdigit((unsigned char)last[-1]))
			last--;
		n = last ? (uint32_t)strtoul(last, NULL, 10) : 0;
	}
	buf_free(&b);
	return n;
}

static void list_threads(struct request_names *n, pid_t pid)
{
	char path[64];
	DIR *d;

	n->n_tids = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	for (struct dirent *e; d && n->n_tids < NAMES && (e = readdir(d));) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		n->tids[n->n_tids].outer = (uint32_t)strtoul(e->d_name, NULL, 10);
		n->tids[n->n_tids++].inner = inner_tid(pid, e->d_name);
	}
	if (d)
		closedir(d);
}

static void keep(void *context, uint32_t nid, const char *text, size_t len)
{
	struct request_names *n = context;

	for (unsigned i = 0; i < n->n_tids; i++) {
		if (n->tids[i].inner != nid)
			continue;
		pthread_mutex_lock(&n->lock);
		if (n->n < NAMES) {
			n->names[n->n].tid = n->tids[i].outer;
			text_sanitize(n->names[n->n++].text, sizeof(n->names->text), text, len);
		}
		pthread_mutex_unlock(&n->lock);
		return;
	}
}

static bool is_stopped(void *context)
{
	struct request_names *n = context;
	bool stop;

	pthread_mutex_lock(&n->lock);
	stop = n->stop;
	pthread_mutex_unlock(&n->lock);
	return stop;
}

static void ask(struct request_names *n, pid_t pid)
{
	struct java_asking asking = { .wake = n->waker, .timeout_ms = ASK_MS, .ends = is_stopped, .context = n };
	struct proc_status status;
	struct buf dump = { 0 };

	if (!proc_status_read(pid, &status) && !java_attach_threads(pid, &status, &asking, &dump)) {
		list_threads(n, pid);
		thread_dump_parse((char *)dump.data, dump.len, NAMES, keep, n);
	}
	buf_free(&dump);
}

// One that is due; 0 = none is.
static pid_t next_due(struct request_names *n, uint64_t now)
{
	for (unsigned i = 0; i < n->n_pids; i++) {
		if (n->pids[i].due > now)
			continue;
		n->pids[i].due = now + n->pids[i].wait;
		n->pids[i].wait = 2 * n->pids[i].wait < AGAIN_MOST_NS ? 2 * n->pids[i].wait : AGAIN_MOST_NS;
		return n->pids[i].pid;
	}
	return 0;
}

static void *run(void *context)
{
	struct request_names *n = context;
	struct timespec until;
	pid_t pid;

	pthread_mutex_lock(&n->lock);
	while (!n->stop) {
		pid = next_due(n, clock_monotonic());
		if (pid) {
			pthread_mutex_unlock(&n->lock);
			ask(n, pid);
			pthread_mutex_lock(&n->lock);
			continue;
		}
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec++;
		pthread_cond_clockwait(&n->wake, &n->lock, CLOCK_MONOTONIC, &until);
	}
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

static void release(struct request_names *n)
{
	pthread_cond_destroy(&n->wake);
	pthread_mutex_destroy(&n->lock);
	free(n->names);
	free(n->tids);
	free(n);
}

struct request_names *request_names_new(struct jvm_wake *wake)
{
	struct request_names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->waker = wake;
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->wake, NULL);
	n->names = calloc(NAMES, sizeof(*n->names));
	n->tids = calloc(NAMES, sizeof(*n->tids));
	if (n->names && n->tids && !thread_start(&n->thread, run, n))
		return n;
	release(n);
	return NULL;
}

void request_names_free(struct request_names *n)
{
	if (!n)
		return;
	pthread_mutex_lock(&n->lock);
	n->stop = true;
	pthread_cond_signal(&n->wake);
	pthread_mutex_unlock(&n->lock);
	if (!thread_end(n->thread, END_MS))
		return;
	release(n);
}

void request_names_ask(struct request_names *n, pid_t pid)
{
	pthread_mutex_lock(&n->lock);
	if (n->n_pids < PIDS) {
		n->pids[n->n_pids].pid = pid;
		n->pids[n->n_pids].wait = AGAIN_NS;
		n->pids[n->n_pids++].due = 0;
		pthread_cond_signal(&n->wake);
	} else {
		n->left_out++;
	}
	pthread_mutex_unlock(&n->lock);
}

void request_names_forget(struct request_names *n, pid_t pid)
{
	pthread_mutex_lock(&n->lock);
	for (unsigned i = 0; i < n->n_pids; i++)
		if (n->pids[i].pid == pid)
			n->pids[i--] = n->pids[--n->n_pids];
	pthread_mutex_unlock(&n->lock);
}

uint64_t request_names_left_out(struct request_names *n)
{
	uint64_t left_out;

	pthread_mutex_lock(&n->lock);
	left_out = n->left_out;
	pthread_mutex_unlock(&n->lock);
	return left_out;
}

void request_names_take(struct request_names *n, request_name_fn fn, void *context)
{
	pthread_mutex_lock(&n->lock);
	for (unsigned i = 0; i < n->n; i++)
		fn(context, n->names[i].tid, n->names[i].text);
	n->n = 0;
	pthread_mutex_unlock(&n->lock);
}
