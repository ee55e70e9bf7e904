// SPDX-License-Identifier: Apache-2.0
// The ways to cause block I/O, and what is known of each.
#ifndef LOAD_METHOD_H
#define LOAD_METHOD_H

#include <stdbool.h>

enum method {
	METHOD_PREAD, // O_DIRECT through libc
	METHOD_PWRITE,
	METHOD_PREAD_INLINE, // the system call instruction stands in the named function
	METHOD_PWRITE_INLINE,
	METHOD_PREAD_THREADED, // libc's cancellable path: another thread exists
	METHOD_PWRITE_THREADED,
	METHOD_PREADV2_NOWAIT, // RWF_NOWAIT, again without when the kernel says EAGAIN
	METHOD_AIO_READ,
	METHOD_AIO_WRITE,
	METHOD_URING_READ, // issued inside io_uring_enter
	METHOD_URING_WRITE,
	METHOD_URING_ASYNC_READ, // IOSQE_ASYNC: issued by a worker thread
	METHOD_URING_ASYNC_WRITE,
	METHOD_URING_SQPOLL_READ, // issued by the ring's kernel thread
	METHOD_URING_SQPOLL_WRITE,
	METHOD_READ, // buffered, after the file's pages were dropped
	METHOD_MMAP, // a byte of each page, after the file's pages were dropped
	METHOD_WRITE_FSYNC, // buffered
	METHOD_WRITE_FDATASYNC,
	METHOD_DISCARD,	   // BLKDISCARD on a device, FALLOC_FL_PUNCH_HOLE on a file
	METHOD_ZEROOUT,	   // BLKZEROOUT on a device
	METHOD_ZERO_RANGE, // FALLOC_FL_ZERO_RANGE on a file or device
	METHODS
};

enum engine {
	ENGINE_SYNC,
	ENGINE_AIO,
	ENGINE_URING,
};

// Who the kernel sees as the issuer of a request.
enum issuer {
	ISSUER_FUNCTION, // the stack of the named function
	ISSUER_WORKER,	 // an io_uring worker of the process
	ISSUER_SQPOLL,	 // the ring's polling thread of the process
};

struct method_info {
	const char *name;
	enum engine engine;
	enum issuer issuer;
	const char *op;	 // what its data requests are in a profile
	bool writes;	 // the target is opened for writing
	bool direct;	 // O_DIRECT
	bool cached;	 // through the page cache, whose pages are dropped first
	bool one_bio;	 // a call on one extent is one request (cached ones only in random order)
	bool moves_data; // its size counts as bytes
	bool flushes;	 // a flush follows where the device has a cache
};

const struct method_info *method_info(enum method m);
int method_parse(const char *name, enum method *ret); // -EINVAL
const char *issuer_name(enum issuer i);

#endif
