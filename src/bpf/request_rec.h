/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What the programs that follow requests share with user space: types only, fixed widths, explicit padding, numbers
 * append-only. Every thread of a target process has sums that only grow; what happens on a connection goes into the ring
 * with the sums of its thread at that moment, so that a request is the difference of two of them and nothing is lost with
 * an event that is. */
#ifndef BLKPROF_BPF_REQUEST_REC_H
#define BLKPROF_BPF_REQUEST_REC_H

#ifndef __bpf__
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
#endif

/* What a system call does, by its number: filled in by user space. */
enum req_action {
	ACTION_OTHER = 0,
	ACTION_READ,
	ACTION_PREAD,
	ACTION_READV,
	ACTION_WRITE,
	ACTION_PWRITE,
	ACTION_WRITEV,
	ACTION_RECV,
	ACTION_RECVMSG,
	ACTION_SEND,
	ACTION_SENDMSG,
	ACTION_SENDFILE, /* (out, in, …) */
	ACTION_COPY,	 /* (in, …, out, …) */
	ACTION_FSYNC,
	ACTION_FDATASYNC,
	ACTION_MSYNC,
	ACTION_META,
	ACTION_FUTEX,
	ACTION_POLL,
	ACTION_SLEEP,
	ACTION_CLOSE,
	ACTION_DUP2, /* closes its second argument */
	ACTION_PREADV,
	ACTION_PWRITEV,
};
#define REQ_SYSCALLS 512

/* What a call was, with what it was on. */
enum req_call {
	CALL_READ = 0,
	CALL_PREAD = 1,
	CALL_READV = 2,
	CALL_WRITE = 3,
	CALL_PWRITE = 4,
	CALL_WRITEV = 5,
	CALL_COPY = 6,
	CALL_FSYNC = 7,
	CALL_FDATASYNC = 8,
	CALL_MSYNC = 9,
	CALL_META = 10,
	CALL_SOCKET_READ = 11,
	CALL_SOCKET_WRITE = 12,
	CALL_EVENT = 13,  /* eventfd, pipe */
	CALL_PSEUDO = 14, /* proc, sysfs, terminals */
	CALL_FUTEX = 15,
	CALL_POLL = 16,
	CALL_OTHER = 17,
	CALLS = 18,
	CALL_SLEEP = 18, /* counted as CALL_OTHER */
	CALL_NONE = 31,	 /* in no call */
};
#define CALL_FILE_LAST CALL_META

enum req_wait {
	WAIT_DISK = 0,
	WAIT_LOCK = 1,
	WAIT_NET = 2,
	WAIT_POLL = 3,
	WAIT_PIPE = 4,
	WAIT_SLEEP = 5,
	WAIT_OTHER = 6,
	WAITS = 7,
	WAIT_CPU = 7, /* it could have run */
};

/* Sources that others made: each has one hash map, from a thread's number to its sums. Its form is part of their ABI. */
#define REQ_PLUGIN_ABI 1
#define REQ_PLUGINS 4
#define REQ_PLUGIN_VALUES 4
#define REQ_PLUGIN_THREADS 16384 /* entries of the map */

struct req_plugin_values {
	u64 value[REQ_PLUGIN_VALUES];
};

struct req_call_sums {
	u64 ops, ns, bytes;
};

struct req_sums {
	struct req_call_sums calls[CALLS];
	u64 oncpu, runq;
	u64 blocked[WAITS];
	u64 switches;
	u64 fault_io_ops, fault_io_ns;
	u64 fault_disk_ops, fault_disk_bytes;
	u64 major_faults, minor_faults;
	u64 disk_read_ops, disk_read_bytes;
	u64 disk_write_ops, disk_write_bytes;
	u64 disk_done, disk_ns; /* changed by other CPUs, too */
	u64 disk_max_ns;	/* since the thread's last event */
	u32 disk_max_dev, pad;
	u64 plugin[REQ_PLUGINS][REQ_PLUGIN_VALUES]; /* as of the thread's last event */
};

/* What a process has stood still: of a JVM that tells of it. */
enum req_jvm {
	JVM_NONE = 0,   /* no JVM */
	JVM_SEEN = 1,
	JVM_UNSEEN = 2, /* a JVM, and it cannot be seen */
};
#define REQ_JVMS 1024

/* One word for each kind, which another CPU may read while it is written: twice the nanoseconds so far; while it stands
 * still, twice (those less the time it began) and 1. */
struct req_pauses {
	u64 gc, safepoint;
	u32 depth; /* of collections */
	u32 jvm;   /* enum req_jvm */
};

enum req_event_type {
	REQ_READ = 1,  /* of a connection; result is 0 at its end, -EAGAIN when there is nothing yet */
	REQ_WRITE = 2,
	REQ_CLOSE = 3,
	REQ_EXIT = 4, /* a thread ended */
	REQ_NEXT = 5, /* an answered connection is being read again: its answer is over; the record ends before `sums` */
};

#define REQ_COMM 16
#define REQ_PAYLOAD_MAX 8192 /* what servers let the head of a request be */

/* Followed by payload_size bytes. A REQ_NEXT has neither these nor the sums, and nothing of a JVM. */
struct req_event {
	u16 type, payload_size;
	u32 sequence; /* of the connection's events: a gap is an event that was lost */
	u32 tgid, tid;
	u64 connection; /* inode number of the socket */
	u64 enter, exit; /* of the call; ns, CLOCK_MONOTONIC */
	s64 result;
	u32 fd;
	u32 jvm;	   /* enum req_jvm; these two are its, ns, at exit */
	u64 gc, safepoint;
	char comm[REQ_COMM];
	struct req_sums sums; /* of the thread, at exit */
};

/* A thread of a target. */
struct req_thread {
	struct req_sums sums;
	u32 tgid, tid;
	/* The call that it is in. */
	u64 enter;
	u64 arg0, arg1, arg2;
	u64 inode;
	u8 call, action, pad[6];
	/* Scheduling. */
	u64 in, out;	/* when it last got and lost its CPU; out = 0: it has it */
	u64 ran;	/* the kernel's own sum of its time on CPUs when it last lost one */
	u64 run_delay;	/* the kernel's sum when it was last looked at */
	u64 off;	/* its last time off the CPU, not yet split */
	u8 reason, fault_waited, pad2[6];
	u64 fault;	/* when its current page fault began, or where its waits have been counted up to */
};

enum req_connection_flag {
	REQ_CONN_ANSWERED = 1, /* written to since it was read */
	REQ_CONN_ENDED = 2,    /* and being read again, as was told */
	REQ_CONN_IGNORED = 4,  /* nothing is told of it: HTTP/2, TLS */
};

struct req_connection {
	u64 last; /* ns */
	u32 flags;
	u32 sequence;
	u32 reads; /* since the last answer */
	u32 tgid;  /* who used it last */
};

/* A block I/O of a thread. */
struct req_bio {
	u64 submit;
	u32 tid, device;
	u32 size, write;
};

enum req_loss {
	REQ_LOSS_RING = 0,	  /* events that found no room in the ring */
	REQ_LOSS_THREADS = 1,	  /* looks at a thread that found no room in the table */
	REQ_LOSS_CONNECTIONS = 2, /* events of connections that found no room in the table */
	REQ_LOSS_BIOS = 3,	  /* block I/Os that found no room */
	REQ_LOSS_PAYLOAD = 4,	  /* texts that could not be read from the process */
	REQ_LOSS_SWITCHES = 5,	  /* a thread that got its CPU unseen */
	REQ_LOSS_CHILDREN = 6,	  /* children of targets that found no room in the table */
	REQ_LOSSES = 7,
};

/* A value in `targets`. */
enum req_target_flag {
	REQ_TARGET = 1,
	REQ_TARGET_CHILDREN = 2, /* what it forks is followed from its begin */
	REQ_TARGET_BORN = 4,	 /* it is such a child, which user space has not found yet */
	REQ_TARGET_LEFT = 8,	 /* and which it has not found once */
};

#define REQ_TARGET_BITS 4096

struct req_config {
	u32 flush_seq;
	u8 bio_list_valid;
	u8 hold_cpu;
	u8 faults_seen; /* the tracepoint of page faults is attached */
	u8 rdonly_cast; /* programs may read what is at an address without a helper */
	u32 ring_wakes;
	u32 n_plugins;
	u8 actions[REQ_SYSCALLS];
};

/* Mapped by user space while it runs. */
struct req_state {
	u64 targets[REQ_TARGET_BITS / 64]; /* by the low bits of the process id: most others end here */
	u64 losses[REQ_LOSSES];
	u64 events;
	u64 bios_in_flight;
	u64 jvms; /* entries of the map of pauses */
};

_Static_assert(sizeof(struct req_sums) == 752, "layout");
_Static_assert(sizeof(struct req_event) == 88 + 752, "layout");
_Static_assert(sizeof(struct req_pauses) == 24, "layout");
_Static_assert(sizeof(struct req_thread) == 752 + 112, "layout");
_Static_assert(sizeof(struct req_connection) == 24, "layout");

#endif
