// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include "common/clock.h"
#include "pace.h"

enum {
	PAGE = 4096,
	HUGE_PAGE = 2 << 20,
};

struct job {
	const struct entry *entry;
	const struct target *target;
	uint32_t *order; // owned: places of the target in the order of their turn
	uint64_t places;
	uint64_t requests;
	int fd;
	char *map;
	uint64_t started;
};

struct thread {
	pthread_t id;
	struct lane lane;
};

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static int make_order(struct job *j, struct error *e)
{
	uint64_t state = j->entry->seed;

	j->order = malloc(j->places * sizeof(*j->order));
	if (!j->order)
		return error_set(e, -ENOMEM, "no memory");
	for (uint64_t i = 0; i < j->places; i++)
		j->order[i] = (uint32_t)i;
	if (!j->entry->random)
		return 0;
	for (uint64_t i = j->places - 1; i > 0; i--) {
		uint64_t k = next_random(&state) % (i + 1);
		uint32_t swap = j->order[i];

		j->order[i] = j->order[k];
		j->order[k] = swap;
	}
	return 0;
}

static off_t place(const struct job *j, uint64_t i)
{
	return (off_t)(j->entry->skip + j->order[i % j->places] * j->entry->size);
}

static void count_requests(struct job *j)
{
	uint64_t piece = j->entry->method == METHOD_MMAP ? PAGE : j->entry->size;

	for (uint64_t i = 0; i < j->entry->count; i++) {
		for (uint64_t at = 0; at < j->entry->size; at += piece)
			j->requests += target_pieces(j->target, (uint64_t)place(j, i) + at, piece);
	}
}

static int lay_out(struct job *j, struct error *e)
{
	const struct entry *n = j->entry;
	uint64_t size = target_size(j->target);
	int r;

	if (size < n->skip + n->size)
		return error_set(e, -ERANGE, "%s is too small for a request", target_path(j->target));
	j->places = (size - n->skip) / n->size;
	if (j->places > UINT32_MAX)
		return error_set(e, -EFBIG, "%s is too large", target_path(j->target));
	if (method_info(n->method)->cached && n->count > j->places)
		return error_set(e, -ERANGE, "%s has %llu places for %llu cached requests: the second time is no I/O",
			target_path(j->target), (unsigned long long)j->places, (unsigned long long)n->count);
	r = make_order(j, e);
	if (!r)
		count_requests(j);
	return r;
}

static int open_target(struct job *j, struct error *e)
{
	const struct method_info *m = method_info(j->entry->method);
	uint64_t size = target_size(j->target);

	j->fd = target_fd(j->target, m->writes, m->direct, e);
	if (j->fd < 0)
		return j->fd;
	if (m->cached && j->entry->random)
		posix_fadvise(j->fd, 0, 0, POSIX_FADV_RANDOM);
	if (j->entry->method != METHOD_MMAP)
		return 0;
	j->map = mmap(NULL, size, PROT_READ, MAP_SHARED, j->fd, 0);
	if (j->map == MAP_FAILED) {
		int code = -errno;

		j->map = NULL;
		return error_set(e, code, "cannot map %s: %s", target_path(j->target), strerror(-code));
	}
	if (j->entry->random)
		madvise(j->map, size, MADV_RANDOM);
	return 0;
}

int job_new(const struct entry *n, const struct target *t, struct job **ret, struct error *e)
{
	struct job *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return error_set(e, -ENOMEM, "no memory");
	j->entry = n;
	j->target = t;
	j->fd = -1;
	r = lay_out(j, e);
	if (!r)
		r = open_target(j, e);
	if (r) {
		job_free(j);
		return r;
	}
	*ret = j;
	return 0;
}

void job_free(struct job *j)
{
	if (!j)
		return;
	if (j->map)
		munmap(j->map, target_size(j->target));
	if (j->fd >= 0)
		close(j->fd);
	free(j->order);
	free(j);
}

bool lane_next(const struct lane *l, uint64_t i, off_t *offset, uint64_t *due)
{
	const struct entry *n = l->entry;
	uint64_t turn = i * n->threads + l->index;

	if (turn >= n->count)
		return false;
	*offset = place(l->job, turn);
	*due = n->rate ? l->job->started + (uint64_t)((double)turn * 1e9 / (double)n->rate) : 0;
	return true;
}

char *lane_buffer(const struct lane *l, unsigned n)
{
	uint64_t state = l->entry->seed + l->index, word;
	size_t len = (l->entry->size * n + PAGE - 1) / PAGE * PAGE;
	char *buffer = aligned_alloc(len < HUGE_PAGE ? PAGE : HUGE_PAGE, len);

	if (!buffer)
		return NULL;
	// Of whole huge pages a large request is one bio, where small ones scattered over memory make several.
	if (len >= HUGE_PAGE)
		madvise(buffer, len, MADV_HUGEPAGE);
	memset(buffer, 0, len);
	for (size_t at = 0; at < len && !l->entry->zero; at += sizeof(word)) {
		word = next_random(&state);
		memcpy(buffer + at, &word, sizeof(word));
	}
	return buffer;
}

void lane_prepare(const struct lane *l, struct request *r, char *buffer)
{
	*r = (struct request){
		.method = l->entry->method,
		.fd = l->fd,
		.device = target_is_device(l->job->target),
		.buffer = buffer,
		.size = l->entry->size,
		.map = l->map,
	};
}

int lane_check(struct lane *l, ssize_t n, off_t offset)
{
	const char *path = target_path(l->job->target);

	if (n == (ssize_t)l->entry->size)
		return 0;
	l->result = n < 0 ? (int)n : -EIO;
	if (n < 0)
		error_set(&l->error, l->result, "%s: %s of %llu bytes at %lld of %s: %s", l->entry->function,
			method_info(l->entry->method)->name, (unsigned long long)l->entry->size, (long long)offset, path,
			strerror((int)-n));
	else
		error_set(&l->error, l->result, "%s: %zd bytes instead of %llu at %lld of %s", l->entry->function, n,
			(unsigned long long)l->entry->size, (long long)offset, path);
	return l->result;
}

static int sync_run(struct lane *l)
{
	char *buffer = lane_buffer(l, 1);
	struct request r;
	uint64_t due, from;

	if (!buffer)
		return l->result = error_set(&l->error, -ENOMEM, "no memory");
	lane_prepare(l, &r, buffer);
	for (uint64_t i = 0; lane_next(l, i, &r.offset, &due); i++) {
		ssize_t n;

		pace_until(due);
		from = clock_monotonic();
		n = l->entry->issue(&r);
		if (lane_check(l, n, r.offset))
			break;
		truth_add(&l->truth, r.size, clock_monotonic() - from);
	}
	l->truth.retries = r.retries;
	free(buffer);
	return l->result;
}

static int lane_run(struct lane *l)
{
	return method_info(l->entry->method)->engine == ENGINE_SYNC ? sync_run(l) : async_run(l);
}

static void *thread_main(void *arg)
{
	struct lane *l = arg;
	char name[16];

	if (l->entry->name[0]) {
		snprintf(name, sizeof(name), "%s%u", l->entry->name, l->index);
		pthread_setname_np(pthread_self(), name);
	}
	lane_run(l);
	return NULL;
}

static void lane_init(struct lane *l, const struct job *j, unsigned index)
{
	*l = (struct lane){.job = j, .entry = j->entry, .index = index, .fd = j->fd, .map = j->map};
}

static int run_threads(struct job *j, struct outcome *out, struct error *e)
{
	struct thread *threads = calloc(j->entry->threads, sizeof(*threads));
	unsigned started = 0;
	int r = 0;

	if (!threads)
		return error_set(e, -ENOMEM, "no memory");
	for (; started < j->entry->threads && !r; started++) {
		lane_init(&threads[started].lane, j, started);
		r = -pthread_create(&threads[started].id, NULL, thread_main, &threads[started].lane);
		if (r) {
			error_set(e, r, "cannot start a thread: %s", strerror(-r));
			break;
		}
	}
	out->cancellable = true;
	for (unsigned i = 0; i < started; i++) {
		pthread_join(threads[i].id, NULL);
		truth_merge(&out->truth, &threads[i].lane.truth);
		if (!r && threads[i].lane.result) {
			r = threads[i].lane.result;
			*e = threads[i].lane.error;
		}
	}
	free(threads);
	return r;
}

static void *thread_idle(void *arg)
{
	pthread_mutex_t *until = arg;

	pthread_mutex_lock(until);
	pthread_mutex_unlock(until);
	return NULL;
}

static int run_here(struct job *j, struct outcome *out, struct error *e)
{
	struct lane l;
	int r;

	lane_init(&l, j, 0);
	out->cancellable = !__libc_single_threaded;
	r = lane_run(&l);
	out->truth = l.truth;
	if (r)
		*e = l.error;
	return r;
}

// libc takes its cancellable path as soon as there is a second thread.
static int run_beside_idle(struct job *j, struct outcome *out, struct error *e)
{
	pthread_mutex_t until = PTHREAD_MUTEX_INITIALIZER;
	pthread_t idle;
	int r;

	pthread_mutex_lock(&until);
	r = -pthread_create(&idle, NULL, thread_idle, &until);
	if (r)
		return error_set(e, r, "cannot start a thread: %s", strerror(-r));
	r = run_here(j, out, e);
	pthread_mutex_unlock(&until);
	pthread_join(idle, NULL);
	return r;
}

static unsigned count_workers(void)
{
	char path[300], comm[32];
	unsigned n = 0;
	DIR *dir = opendir("/proc/self/task");

	if (!dir)
		return 0;
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", d->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f) && strncmp(comm, "iou-wrk-", 8) == 0)
			n++;
		fclose(f);
	}
	closedir(dir);
	return n;
}

int job_run(struct job *j, struct outcome *ret, struct error *e)
{
	enum method m = j->entry->method;
	struct outcome out = {.requests = j->requests};
	uint64_t cpu;
	int r = 0;

	if (method_info(m)->cached)
		r = target_drop_cache(j->target, e);
	if (r)
		return r;
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	j->started = out.started_ns = clock_monotonic();
	if (j->entry->threads > 1 || j->entry->name[0])
		r = run_threads(j, &out, e);
	else if (m == METHOD_PREAD_THREADED || m == METHOD_PWRITE_THREADED)
		r = run_beside_idle(j, &out, e);
	else
		r = run_here(j, &out, e);
	out.ended_ns = clock_monotonic();
	out.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	out.workers = count_workers();
	if (!r)
		*ret = out;
	return r;
}
