/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What the kernel side and user space share: types only, fixed widths, explicit padding, numbers append-only. */
#ifndef BLKPROF_BPF_RECORD_REC_H
#define BLKPROF_BPF_RECORD_REC_H

#ifndef __bpf__
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
#endif

/* What a bio does; the index of the exact counters. */
enum op_class {
	OP_READ = 0,
	OP_WRITE = 1,
	OP_FLUSH = 2,	     /* a bio that is only a flush; data with PREFLUSH or FUA is a write */
	OP_DISCARD = 3,	     /* discard and secure erase: a size, no data moved */
	OP_WRITE_ZEROES = 4, /* the same */
	OP_OTHER = 5,	     /* zone management, vendor operations */
	OP_CLASSES = 6,
};

/* Why something is missing from a profile. Per CPU counters in the kernel; user space adds its own behind LOSS_KERNEL. */
enum loss_cause {
	LOSS_RING_FULL = 0,	     /* sample records that found no room in the ring */
	LOSS_STACK_RING_FULL = 1,    /* stacks that found no room (their samples say [stack lost]) */
	LOSS_INSERT_FAILED = 2,	     /* the map of bios in flight refused an entry */
	LOSS_STALE_REUSED = 3,	     /* an entry was still there when its address was submitted again */
	LOSS_MISMATCH = 4,	     /* a completion whose bio is not the one of the entry at its address */
	LOSS_STACK_TRUNCATED = 5,    /* deeper than the limit */
	LOSS_STACK_UNREADABLE = 6,   /* user stack that could not be walked at all */
	LOSS_READ_ERROR = 7,	     /* a kernel structure that could not be read */
	LOSS_REQUEST_TOO_LONG = 8,   /* a request of more bios than the walk's limit */
	LOSS_SLOTS_FULL = 9,	     /* more devices than slots: counted under one name */
	LOSS_KERNEL = 10,
	LOSS_EVICTED = 10,	     /* entries that the LRU map dropped */
	LOSS_NEVER_COMPLETED = 11,   /* entries older than an hour, or of a device that went away */
	LOSS_RECURSION = 12,	     /* program runs that the kernel skipped (recursion_misses) */
	LOSS_STACK_MISSING = 13,     /* samples whose stack record was lost */
	LOSS_PROC_EVENTS = 14,	     /* process events lost in the perf rings */
	LOSS_PROC_EVICTED = 15,	     /* processes dropped for the memory budget */
	LOSS_FILES_MISSING = 16,     /* mapped files that could not be opened for their symbols */
	LOSS_CAUSES = 17,
};

#endif
