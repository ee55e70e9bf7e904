// SPDX-License-Identifier: Apache-2.0
// Named functions that make one request each: what a profile must show as the cause of the I/O. Each is a real frame
// that makes the system call itself, so that the caller of libc's wrapper is the function and nothing between.
#ifndef LOAD_FUNCTIONS_H
#define LOAD_FUNCTIONS_H

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "method.h"

struct ring {
	int fd;
	unsigned entries;
	bool sqpoll;
	struct io_uring_sqe *sqes;
	unsigned *sq_tail, *sq_mask, *sq_flags, *sq_array;
	unsigned *cq_head, *cq_tail, *cq_mask;
	struct io_uring_cqe *cqes;
	void *rings;
	size_t rings_len, sqes_len;
};

struct request {
	enum method method;
	int fd;
	bool device; // the target is a block device
	void *buffer;
	size_t size;
	off_t offset;
	char *map; // METHOD_MMAP: the whole target
	aio_context_t aio;
	struct iocb iocb;
	struct ring *ring;
	uint64_t token;	  // comes back with an asynchronous completion
	uint64_t retries; // RWF_NOWAIT calls that had to be made again
};

// Bytes of a synchronous request, 0 for an asynchronous one that was submitted, or a negative errno.
typedef ssize_t (*issue_fn)(struct request *r);

#define LOAD_FUNCTIONS(X) \
	X(read_index) X(read_segment) X(read_header) X(read_block) \
	X(write_wal) X(write_page) X(write_checkpoint) \
	X(scan_table) X(scan_index) X(map_read) X(map_scan) \
	X(fsync_log) X(fdatasync_log) X(trim_space) X(zero_range) \
	X(load_journal) X(load_data) X(load_readahead) \
	X(load_stack0) X(load_stack1) X(load_stack2) X(load_stack3) X(load_stack4) \
	X(load_flusher) X(load_commit) X(load_scan) X(load_lookup) X(load_swap) X(load_fsync)

#define X(name) ssize_t name(struct request *r);
LOAD_FUNCTIONS(X)
#undef X

issue_fn function_find(const char *name); // NULL when there is none
const char *function_name(unsigned index); // NULL behind the last

#endif
