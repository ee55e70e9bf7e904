// SPDX-License-Identifier: Apache-2.0
#include "method.h"

#include <errno.h>
#include <string.h>

#define DIRECT .direct = true, .one_bio = true, .moves_data = true
#define READS .op = "read"
#define WRITES .op = "write", .writes = true

static const struct method_info methods[METHODS] = {
	[METHOD_PREAD] = {"pread", READS, DIRECT},
	[METHOD_PWRITE] = {"pwrite", WRITES, DIRECT},
	[METHOD_PREAD_INLINE] = {"pread-inline", READS, DIRECT},
	[METHOD_PWRITE_INLINE] = {"pwrite-inline", WRITES, DIRECT},
	[METHOD_PREAD_THREADED] = {"pread-threaded", READS, DIRECT},
	[METHOD_PWRITE_THREADED] = {"pwrite-threaded", WRITES, DIRECT},
	[METHOD_PREADV2_NOWAIT] = {"preadv2-nowait", READS, DIRECT},
	[METHOD_AIO_READ] = {"aio-read", ENGINE_AIO, READS, DIRECT},
	[METHOD_AIO_WRITE] = {"aio-write", ENGINE_AIO, WRITES, DIRECT},
	[METHOD_URING_READ] = {"uring-read", ENGINE_URING, READS, DIRECT},
	[METHOD_URING_WRITE] = {"uring-write", ENGINE_URING, WRITES, DIRECT},
	[METHOD_URING_ASYNC_READ] = {"uring-async-read", ENGINE_URING, ISSUER_WORKER, READS, DIRECT},
	[METHOD_URING_ASYNC_WRITE] = {"uring-async-write", ENGINE_URING, ISSUER_WORKER, WRITES, DIRECT},
	[METHOD_URING_SQPOLL_READ] = {"uring-sqpoll-read", ENGINE_URING, ISSUER_SQPOLL, READS, DIRECT},
	[METHOD_URING_SQPOLL_WRITE] = {"uring-sqpoll-write", ENGINE_URING, ISSUER_SQPOLL, WRITES, DIRECT},
	[METHOD_READ] = {"read", READS, .cached = true, .one_bio = true, .moves_data = true},
	[METHOD_MMAP] = {"mmap", READS, .cached = true, .one_bio = true, .moves_data = true},
	[METHOD_WRITE_FSYNC] = {"write-fsync", WRITES, .moves_data = true, .flushes = true},
	[METHOD_WRITE_FDATASYNC] = {"write-fdatasync", WRITES, .one_bio = true, .moves_data = true, .flushes = true},
	[METHOD_DISCARD] = {"discard", .op = "discard", .writes = true, .one_bio = true},
	[METHOD_ZEROOUT] = {"zeroout", .op = "write_zeroes", .writes = true, .one_bio = true},
	[METHOD_ZERO_RANGE] = {"zero-range", .op = "write_zeroes", .writes = true, .one_bio = true},
};

const struct method_info *method_info(enum method m)
{
	return &methods[m];
}

int method_parse(const char *name, enum method *ret)
{
	for (int m = 0; m < METHODS; m++) {
		if (strcmp(methods[m].name, name) == 0) {
			*ret = (enum method)m;
			return 0;
		}
	}
	return -EINVAL;
}

const char *issuer_name(enum issuer i)
{
	static const char *const names[] = {"function", "worker", "sqpoll"};

	return names[i];
}
