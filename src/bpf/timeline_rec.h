/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Records of the timeline, in the same ring as those of record_rec.h, whose numbers they continue. Append-only. */
#ifndef BLKPROF_BPF_TIMELINE_REC_H
#define BLKPROF_BPF_TIMELINE_REC_H

#include "bpf/record_rec.h"

/* Set before loading. */
struct timeline_config {
	u32 stacks; /* where threads sleep */
};

enum timeline_record {
	TIMELINE_SWITCH = 32, /* struct switch_rec */
	TIMELINE_WAKING = 33, /* struct waking_rec */
	TIMELINE_NEW = 34,    /* struct thread_rec: a new thread can run for the first time; other = who made it */
	TIMELINE_RENAME = 35, /* struct thread_rec: it is called comm from now on */
	TIMELINE_EXEC = 36,   /* struct thread_rec: it runs another program; other = its thread id until now */
	TIMELINE_SUBMIT = 37, /* struct submit_rec */
	TIMELINE_END = 38,    /* struct end_rec */
	TIMELINE_RECORDS = 39,
};

enum switch_flag {
	SWITCH_PREEMPTED = 1, /* prev could have gone on */
	SWITCH_IO_WAIT = 2,   /* prev waits for I/O (task->in_iowait) */
	SWITCH_PREV = 4,      /* prev is wanted */
	SWITCH_NEXT = 8,      /* next is wanted */
	SWITCH_SYSCALL = 16,  /* syscall is known */
	SWITCH_KTHREAD = 32,  /* prev is a thread of the kernel; told of those that sleep */
};

struct switch_rec {
	u32 type;
	u32 cpu;
	u64 time; /* ns, CLOCK_MONOTONIC */
	u32 prev_tid, prev_tgid, next_tid, next_tgid;
	u32 prev_state; /* as the kernel has it */
	u32 flags;	/* enum switch_flag */
	s32 syscall;	/* that prev sleeps in */
	u32 pad;
	u64 stack; /* hash of prev's stack record, 0 = none */
	char next_comm[RECORD_COMM];
};

enum waking_flag {
	WAKING_OFF_QUEUE = 1, /* it was off its run queue: it does sleep, whether its switch was seen yet or not */
};

struct waking_rec {
	u32 type;
	u32 cpu; /* of the waker */
	u64 time;
	u32 tid, tgid;
	u32 waker_tid, waker_tgid; /* 0 = an interrupt of an idle CPU */
	u32 flags;		   /* enum waking_flag */
	u32 pad;
	char waker_comm[RECORD_COMM];
};

struct thread_rec {
	u32 type;
	u32 cpu;
	u64 time;
	u32 tid, tgid;
	u32 other;
	u32 pad;
	char comm[RECORD_COMM];
};

struct submit_rec {
	u32 type;
	u32 cpu;
	u64 time;
	u64 address; /* of the bio: with the time it names the I/O */
	u64 sector;
	u64 stack;
	u32 tid, tgid;
	u32 size;
	u32 slot;
	u8 op;
	u8 kind;
	u8 pad[6];
	char comm[RECORD_COMM];
};

struct end_rec {
	u32 type;
	u32 cpu;
	u64 time; /* 0 = nobody knows (END_UNSEEN) */
	u64 address;
	u64 submit;
	u64 issue;  /* when the driver got it, 0 = not seen */
	u32 reason; /* enum bio_end */
	u32 pad;
};

/* Why a record of the timeline is missing; counters per CPU. */
enum timeline_loss {
	TIMELINE_LOST_SWITCH = 0, /* no room in the ring for a switch, a waking, ... */
	TIMELINE_LOST_WAKING = 1,
	TIMELINE_LOST_THREAD = 2,
	TIMELINE_LOST_SUBMIT = 3,
	TIMELINE_LOST_END = 4,
	TIMELINE_LOSSES = 5,
	TIMELINE_LOSSES_ROOM = 8,
};

struct timeline_cpu {
	u64 lost[TIMELINE_LOSSES_ROOM];
	u64 issuing; /* stored and loaded again it is a number to the verifier */
};

_Static_assert(sizeof(struct switch_rec) == 72, "layout");
_Static_assert(sizeof(struct waking_rec) == 56, "layout");
_Static_assert(sizeof(struct thread_rec) == 48, "layout");
_Static_assert(sizeof(struct submit_rec) == 80, "layout");
_Static_assert(sizeof(struct end_rec) == 48, "layout");

#endif
