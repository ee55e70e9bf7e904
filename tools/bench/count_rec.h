/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
#ifndef BENCH_COUNT_REC_H
#define BENCH_COUNT_REC_H

struct count_key {
	unsigned int tgid;
	unsigned int disk_major, disk_minor; /* of the whole disk */
	unsigned int op;		     /* enum req_op of the kernel */
	unsigned int empty;		     /* no data: a flush when it is a write */
};

struct count_value {
	unsigned long long ops, bytes;
};

_Static_assert(sizeof(struct count_key) == 20, "layout");

#endif
