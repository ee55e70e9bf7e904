// SPDX-License-Identifier: Apache-2.0
// Keeps up to `depth` requests in flight through one aio context or one io_uring, without a library between, so that the
// named function makes the system call.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "pace.h"
#include "run.h"

enum {
	SQPOLL_IDLE_MS = 50,
};

struct slot {
	struct request request;
	uint64_t from;
};

struct async {
	struct lane *lane;
	aio_context_t aio;
	struct ring ring;
	struct slot *slots;
	unsigned *free_slots, free_count;
	unsigned in_flight;
	char *buffer;
};

static int ring_map(struct ring *g, const struct io_uring_params *p)
{
	size_t sq = p->sq_off.array + p->sq_entries * sizeof(unsigned);
	size_t cq = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	char *base;

	g->rings_len = sq > cq ? sq : cq;
	g->sqes_len = p->sq_entries * sizeof(struct io_uring_sqe);
	base = mmap(NULL, g->rings_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, g->fd, IORING_OFF_SQ_RING);
	if (base == MAP_FAILED)
		return -errno;
	g->rings = base;
	g->sqes = mmap(NULL, g->sqes_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, g->fd, IORING_OFF_SQES);
	if (g->sqes == MAP_FAILED) {
		g->sqes = NULL;
		return -errno;
	}
	g->sq_tail = (unsigned *)(base + p->sq_off.tail);
	g->sq_mask = (unsigned *)(base + p->sq_off.ring_mask);
	g->sq_flags = (unsigned *)(base + p->sq_off.flags);
	g->sq_array = (unsigned *)(base + p->sq_off.array);
	g->cq_head = (unsigned *)(base + p->cq_off.head);
	g->cq_tail = (unsigned *)(base + p->cq_off.tail);
	g->cq_mask = (unsigned *)(base + p->cq_off.ring_mask);
	g->cqes = (struct io_uring_cqe *)(base + p->cq_off.cqes);
	return 0;
}

static int ring_open(struct ring *g, unsigned depth, bool sqpoll)
{
	struct io_uring_params p = {0};
	int r;

	g->sqpoll = sqpoll;
	if (sqpoll) {
		p.flags = IORING_SETUP_SQPOLL;
		p.sq_thread_idle = SQPOLL_IDLE_MS;
	}
	g->fd = (int)syscall(SYS_io_uring_setup, depth, &p);
	if (g->fd < 0)
		return -errno;
	if (!(p.features & IORING_FEAT_SINGLE_MMAP))
		return -EOPNOTSUPP;
	r = ring_map(g, &p);
	return r;
}

static void ring_close(struct ring *g)
{
	if (g->sqes)
		munmap(g->sqes, g->sqes_len);
	if (g->rings)
		munmap(g->rings, g->rings_len);
	if (g->fd >= 0)
		close(g->fd);
}

static bool uses_ring(const struct async *a)
{
	return method_info(a->lane->entry->method)->engine == ENGINE_URING;
}

static int complete(struct async *a, uint64_t token, ssize_t n, uint64_t now)
{
	struct slot *s = &a->slots[token];
	int r = lane_check(a->lane, n, s->request.offset);

	truth_add(&a->lane->truth, s->request.size, now - s->from);
	a->free_slots[a->free_count++] = (unsigned)token;
	a->in_flight--;
	return r;
}

static int reap_aio(struct async *a, bool wait)
{
	struct io_event events[64];
	struct timespec none = {0, 0};
	long n = syscall(SYS_io_getevents, a->aio, wait ? 1 : 0, 64, events, wait ? NULL : &none);
	uint64_t now = clock_monotonic();
	int r = 0;

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (long i = 0; i < n; i++) {
		int failed = complete(a, events[i].data, (ssize_t)events[i].res, now);

		r = r ? r : failed;
	}
	return r;
}

static int reap_ring(struct async *a, bool wait)
{
	struct ring *g = &a->ring;
	unsigned head = *g->cq_head, tail = __atomic_load_n(g->cq_tail, __ATOMIC_ACQUIRE);
	uint64_t now;
	int r = 0;

	if (head == tail && wait) {
		if (syscall(SYS_io_uring_enter, g->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0 && errno != EINTR)
			return -errno;
		tail = __atomic_load_n(g->cq_tail, __ATOMIC_ACQUIRE);
	}
	now = clock_monotonic();
	for (; head != tail; head++) {
		const struct io_uring_cqe *c = &g->cqes[head & *g->cq_mask];
		int failed = complete(a, c->user_data, c->res, now);

		r = r ? r : failed;
	}
	__atomic_store_n(g->cq_head, head, __ATOMIC_RELEASE);
	return r;
}

static int reap(struct async *a, bool wait)
{
	return uses_ring(a) ? reap_ring(a, wait) : reap_aio(a, wait);
}

static int submit(struct async *a, off_t offset)
{
	unsigned token = a->free_slots[--a->free_count];
	struct slot *s = &a->slots[token];
	ssize_t n;

	s->request.offset = offset;
	s->from = clock_monotonic();
	n = a->lane->entry->issue(&s->request);
	if (n < 0) {
		lane_check(a->lane, n, offset);
		return (int)n;
	}
	a->in_flight++;
	return 0;
}

// A request that is due waits for nothing but a free slot; while it is not due, what completes is taken in.
static int wait_turn(struct async *a, uint64_t due)
{
	int r = 0;

	while (!r && a->free_count == 0)
		r = reap(a, true);
	while (!r && a->in_flight && clock_monotonic() < due)
		r = reap(a, false);
	if (!r)
		pace_until(due);
	return r;
}

static int drive(struct async *a)
{
	uint64_t due;
	off_t offset;
	int r = 0, failed;

	for (uint64_t i = 0; !r && lane_next(a->lane, i, &offset, &due); i++) {
		r = wait_turn(a, due);
		if (!r)
			r = submit(a, offset);
	}
	while (a->in_flight) {
		failed = reap(a, true);
		if (failed && !a->lane->result)
			return failed;
		r = r ? r : failed;
	}
	return r;
}

static int async_open(struct async *a)
{
	const struct entry *n = a->lane->entry;
	int r;

	a->ring.fd = -1;
	a->slots = calloc(n->depth, sizeof(*a->slots));
	a->free_slots = calloc(n->depth, sizeof(*a->free_slots));
	a->buffer = lane_buffer(a->lane, n->depth);
	if (!a->slots || !a->free_slots || !a->buffer)
		return -ENOMEM;
	if (uses_ring(a))
		r = ring_open(&a->ring, n->depth, method_info(n->method)->issuer == ISSUER_SQPOLL);
	else
		r = syscall(SYS_io_setup, n->depth, &a->aio) ? -errno : 0;
	if (r)
		return r;
	for (unsigned i = 0; i < n->depth; i++) {
		struct request *q = &a->slots[i].request;

		lane_prepare(a->lane, q, a->buffer + i * n->size);
		q->aio = a->aio;
		q->ring = &a->ring;
		q->token = i;
		a->free_slots[a->free_count++] = i;
	}
	return 0;
}

int async_run(struct lane *l)
{
	struct async a = {.lane = l};
	int r = async_open(&a);

	if (!r)
		r = drive(&a);
	if (r && !l->result)
		l->result = error_set(&l->error, r, "%s: %s: %s", l->entry->function, method_info(l->entry->method)->name,
			strerror(-r));
	ring_close(&a.ring);
	if (a.aio)
		syscall(SYS_io_destroy, a.aio);
	free(a.buffer);
	free(a.free_slots);
	free(a.slots);
	return l->result;
}
