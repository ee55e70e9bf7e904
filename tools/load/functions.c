// SPDX-License-Identifier: Apache-2.0
#include "functions.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define INLINE static inline __attribute__((always_inline))

INLINE ssize_t result(ssize_t n)
{
	return n < 0 ? -errno : n;
}

INLINE ssize_t raw_call(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	ssize_t n;

	__asm__ volatile("syscall" : "=a"(n) : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return n;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
#else
#error "no inline system call for this processor"
#endif
}

INLINE ssize_t issue_nowait(struct request *r)
{
	struct iovec v = {r->buffer, r->size};
	ssize_t n = preadv2(r->fd, &v, 1, r->offset, RWF_NOWAIT);

	if (n < 0 && errno == EAGAIN) {
		r->retries++;
		n = preadv2(r->fd, &v, 1, r->offset, 0);
	}
	return result(n);
}

INLINE ssize_t issue_aio(struct request *r)
{
	struct iocb *list[1] = {&r->iocb};

	memset(&r->iocb, 0, sizeof(r->iocb));
	r->iocb.aio_data = r->token;
	r->iocb.aio_lio_opcode = r->method == METHOD_AIO_READ ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
	r->iocb.aio_fildes = (uint32_t)r->fd;
	r->iocb.aio_buf = (uintptr_t)r->buffer;
	r->iocb.aio_nbytes = r->size;
	r->iocb.aio_offset = r->offset;
	return syscall(SYS_io_submit, r->aio, 1, list) == 1 ? 0 : -errno;
}

INLINE bool uring_reads(enum method m)
{
	return m == METHOD_URING_READ || m == METHOD_URING_ASYNC_READ || m == METHOD_URING_SQPOLL_READ;
}

INLINE bool uring_forced(enum method m)
{
	return m == METHOD_URING_ASYNC_READ || m == METHOD_URING_ASYNC_WRITE;
}

INLINE void uring_fill(struct request *r)
{
	struct ring *ring = r->ring;
	unsigned tail = *ring->sq_tail, slot = tail & *ring->sq_mask;
	struct io_uring_sqe *sqe = &ring->sqes[slot];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = uring_reads(r->method) ? IORING_OP_READ : IORING_OP_WRITE;
	sqe->flags = uring_forced(r->method) ? IOSQE_ASYNC : 0;
	sqe->fd = r->fd;
	sqe->off = (uint64_t)r->offset;
	sqe->addr = (uintptr_t)r->buffer;
	sqe->len = (uint32_t)r->size;
	sqe->user_data = r->token;
	ring->sq_array[slot] = slot;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
}

INLINE ssize_t issue_uring(struct request *r)
{
	struct ring *ring = r->ring;
	unsigned flags = 0;

	uring_fill(r);
	if (ring->sqpoll) {
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!(__atomic_load_n(ring->sq_flags, __ATOMIC_RELAXED) & IORING_SQ_NEED_WAKEUP))
			return 0;
		flags = IORING_ENTER_SQ_WAKEUP;
	}
	return syscall(SYS_io_uring_enter, ring->fd, 1, 0, flags, NULL, 0) < 0 ? -errno : 0;
}

INLINE ssize_t issue_synced(struct request *r)
{
	ssize_t n = pwrite(r->fd, r->buffer, r->size, r->offset);

	if (n < 0)
		return -errno;
	if (r->method == METHOD_WRITE_FSYNC ? fsync(r->fd) : fdatasync(r->fd))
		return -errno;
	return n;
}

INLINE ssize_t issue_space(struct request *r)
{
	uint64_t range[2] = {(uint64_t)r->offset, r->size};
	int mode = r->method == METHOD_DISCARD ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE, n;

	if (r->method == METHOD_ZEROOUT)
		n = ioctl(r->fd, BLKZEROOUT, range);
	else if (r->method == METHOD_DISCARD && r->device)
		n = ioctl(r->fd, BLKDISCARD, range);
	else
		n = fallocate(r->fd, mode | FALLOC_FL_KEEP_SIZE, r->offset, (off_t)r->size);
	return n ? -errno : (ssize_t)r->size;
}

INLINE ssize_t issue_map(struct request *r)
{
	for (size_t i = 0; i < r->size; i += 4096)
		(void)*(volatile char *)(r->map + r->offset + i);
	return (ssize_t)r->size;
}

INLINE ssize_t issue(struct request *r)
{
	switch (r->method) {
	case METHOD_PREAD:
	case METHOD_PREAD_THREADED:
	case METHOD_READ:
		return result(pread(r->fd, r->buffer, r->size, r->offset));
	case METHOD_PWRITE:
	case METHOD_PWRITE_THREADED:
		return result(pwrite(r->fd, r->buffer, r->size, r->offset));
	case METHOD_PREAD_INLINE:
		return raw_call(SYS_pread64, r->fd, (long)r->buffer, (long)r->size, r->offset);
	case METHOD_PWRITE_INLINE:
		return raw_call(SYS_pwrite64, r->fd, (long)r->buffer, (long)r->size, r->offset);
	case METHOD_PREADV2_NOWAIT:
		return issue_nowait(r);
	case METHOD_AIO_READ:
	case METHOD_AIO_WRITE:
		return issue_aio(r);
	case METHOD_MMAP:
		return issue_map(r);
	case METHOD_WRITE_FSYNC:
	case METHOD_WRITE_FDATASYNC:
		return issue_synced(r);
	case METHOD_DISCARD:
	case METHOD_ZEROOUT:
	case METHOD_ZERO_RANGE:
		return issue_space(r);
	default:
		return issue_uring(r);
	}
}

// Each must stay a function of its own although all have the same body.
#ifdef __clang__
#define NAMED __attribute__((noinline))
#else
#define NAMED __attribute__((noinline, noclone, no_icf))
#endif

#define X(name) \
	NAMED ssize_t name(struct request *r) \
	{ \
		ssize_t n = issue(r); \
		__asm__ volatile("" : "+r"(n) : : "memory"); \
		return n; \
	}
LOAD_FUNCTIONS(X)
#undef X

static const struct {
	const char *name;
	issue_fn call;
} functions[] = {
#define X(name) {#name, name},
	LOAD_FUNCTIONS(X)
#undef X
};

issue_fn function_find(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strcmp(functions[i].name, name) == 0)
			return functions[i].call;
	}
	return NULL;
}

const char *function_name(unsigned index)
{
	return index < sizeof(functions) / sizeof(functions[0]) ? functions[index].name : NULL;
}
