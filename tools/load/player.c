// SPDX-License-Identifier: Apache-2.0
#include "player.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "pace.h"

enum {
	DEPTH = 512,
	REAP = 64,
};

struct slot {
	struct request request;
	uint64_t from;
	uint32_t stack;
};

struct player {
	const struct player_options *options;
	struct stream *stream;
	const struct stack *stacks;
	unsigned stack_count;
	int fd[2]; // O_DIRECT, through the page cache
	bool synchronous;
	aio_context_t aio;
	struct slot slots[DEPTH];
	unsigned free_slots[DEPTH], free_count, in_flight;
	char *read_buffer, *write_buffer;
	uint64_t random;
	struct performance out;
	struct error *error;
};

static size_t largest(const struct player *p)
{
	size_t size = 0;

	for (unsigned i = 0; i < p->stack_count; i++)
		size = p->stacks[i].size > size ? p->stacks[i].size : size;
	return size;
}

static off_t random_place(struct player *p, size_t size)
{
	uint64_t places = target_size(p->options->target) / size;

	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return (off_t)(p->random % places * size);
}

static int failed(struct player *p, const struct slot *s, ssize_t n)
{
	int code = n < 0 ? (int)n : -EIO;

	return error_set(p->error, code, "%s at %lld of %s: %s", p->stacks[s->stack].function,
		(long long)s->request.offset, target_path(p->options->target), strerror(-code));
}

static int finish(struct player *p, struct slot *s, ssize_t n, uint64_t now)
{
	if (n != (ssize_t)s->request.size)
		return failed(p, s, n);
	truth_add(&p->out.stacks[s->stack], s->request.size, now - s->from);
	return 0;
}

static int reap(struct player *p, uint64_t wait_ns)
{
	struct timespec t = {(time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u)};
	struct io_event events[REAP];
	long n = syscall(SYS_io_getevents, p->aio, wait_ns ? 1 : 0, REAP, events, &t);
	uint64_t now = clock_monotonic();
	int r = 0;

	if (n < 0)
		return errno == EINTR ? 0 : error_set(p->error, -errno, "io_getevents: %s", strerror(errno));
	for (long i = 0; i < n; i++) {
		unsigned token = (unsigned)events[i].data;
		int bad = finish(p, &p->slots[token], (ssize_t)events[i].res, now);

		r = r ? r : bad;
		p->free_slots[p->free_count++] = token;
		p->in_flight--;
	}
	return r;
}

static int wait_until(struct player *p, uint64_t due)
{
	uint64_t now = clock_monotonic();
	int r = 0;

	while (!r && p->free_count == 0)
		r = reap(p, 1000000000);
	while (!r && p->in_flight && now < due) {
		r = reap(p, due - now > PACE_SPIN_NS ? due - now - PACE_SPIN_NS : 0);
		now = clock_monotonic();
	}
	if (!r)
		pace_until(due);
	return r;
}

static enum method method_for(const struct player *p, const struct stack *k)
{
	if (k->syncs)
		return METHOD_WRITE_FDATASYNC;
	if (p->synchronous)
		return k->writes ? METHOD_PWRITE : METHOD_PREAD;
	return k->writes ? METHOD_AIO_WRITE : METHOD_AIO_READ;
}

static int submit(struct player *p, const struct event *v)
{
	const struct stack *k = &p->stacks[v->stack];
	unsigned token = p->free_slots[p->free_count - 1];
	struct slot *s = &p->slots[token];
	ssize_t n;

	s->stack = v->stack;
	s->request = (struct request){
		.method = method_for(p, k),
		.fd = p->fd[k->syncs],
		.buffer = k->writes ? p->write_buffer : p->read_buffer,
		.size = k->size,
		.offset = random_place(p, k->size),
		.aio = p->aio,
		.token = token,
	};
	s->from = clock_monotonic();
	n = k->issue(&s->request);
	if (n < 0)
		return failed(p, s, n);
	if (n > 0)
		return finish(p, s, n, clock_monotonic());
	p->free_count--;
	p->in_flight++;
	return 0;
}

static int play(struct player *p)
{
	const struct player_options *o = p->options;
	struct event v;
	int r = 0;

	while (!r && stream_next(p->stream, &v)) {
		uint64_t due = o->start_ns + (uint64_t)((double)v.due / o->scale), now;

		if (p->stacks[v.stack].device != o->device)
			continue;
		r = wait_until(p, due);
		now = clock_monotonic();
		if (now - due > p->out.lag_max_ns)
			p->out.lag_max_ns = now - due;
		p->out.events++;
		p->out.planned_ns = due;
		p->out.submitted_ns = now;
		if (!r)
			r = submit(p, &v);
	}
	while (p->in_flight) {
		int bad = reap(p, 1000000000);

		r = r ? r : bad;
	}
	return r;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static bool is_synchronous(const struct target *t)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/block/%s/mq", target_disk(t));
	return target_disk(t)[0] && access(path, F_OK) != 0;
}

static int player_open(struct player *p)
{
	const struct player_options *o = p->options;
	int r;

	p->stream = stream_new(o->load, (uint64_t)((double)o->duration_ns * o->scale), o->seed);
	if (!p->stream)
		return error_set(p->error, -EINVAL, "no load '%s', or no memory for it", o->load);
	p->stacks = stream_stacks(p->stream, &p->stack_count);
	p->synchronous = is_synchronous(o->target);
	for (unsigned i = 0; i < 2; i++) {
		p->fd[i] = target_fd(o->target, true, i == 0, p->error);
		if (p->fd[i] < 0)
			return p->fd[i];
	}
	p->read_buffer = aligned_alloc(4096, largest(p));
	p->write_buffer = aligned_alloc(4096, largest(p));
	if (!p->read_buffer || !p->write_buffer)
		return error_set(p->error, -ENOMEM, "no memory");
	memset(p->read_buffer, 0, largest(p));
	memset(p->write_buffer, 0x55, largest(p));
	r = syscall(SYS_io_setup, DEPTH, &p->aio) ? -errno : 0;
	if (r)
		return error_set(p->error, r, "io_setup: %s", strerror(-r));
	for (unsigned i = 0; i < DEPTH; i++)
		p->free_slots[p->free_count++] = i;
	return 0;
}

static void player_close(struct player *p)
{
	if (p->aio)
		syscall(SYS_io_destroy, p->aio);
	for (unsigned i = 0; i < 2; i++) {
		if (p->fd[i] >= 0)
			close(p->fd[i]);
	}
	free(p->read_buffer);
	free(p->write_buffer);
	stream_free(p->stream);
	free(p);
}

int player_run(const struct player_options *o, struct performance *ret, struct error *e)
{
	struct player *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return error_set(e, -ENOMEM, "no memory");
	p->options = o;
	p->error = e;
	p->fd[0] = p->fd[1] = -1;
	p->random = o->seed * 2 + 1;
	if (o->cpu >= 0)
		pin(o->cpu);
	r = player_open(p);
	if (!r)
		r = play(p);
	if (!r)
		*ret = p->out;
	player_close(p);
	return r;
}
