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
typedef int16_t s16;
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
	OP_MASK = 7, /* keeps an index in bounds where the verifier must see it */
};

/* Why something is missing from a profile. Per CPU counters in the kernel; user space adds its own behind LOSS_KERNEL. */
enum loss_cause {
	LOSS_RING_FULL = 0,	     /* sample records that found no room in the ring */
	LOSS_STACK_RING_FULL = 1,    /* stacks that found no room (their samples say [stack lost]) */
	LOSS_INSERT_FAILED = 2,	     /* the map of bios in flight refused an entry */
	LOSS_UNSEEN = 3,	     /* sampled bios that ended without our hooks being run */
	LOSS_MISMATCH = 4,	     /* a completion whose bio is not the one of the entry at its address */
	LOSS_STACK_TRUNCATED = 5,    /* deeper than the limit */
	LOSS_STACK_UNREADABLE = 6,   /* user stack that could not be walked at all */
	LOSS_READ_ERROR = 7,	     /* a kernel structure that could not be read */
	LOSS_REQUEST_TOO_LONG = 8,   /* a request of more bios than the walk's limit */
	LOSS_SLOTS_FULL = 9,	     /* more devices than slots: counted under one name */
	LOSS_MAP_BUSY = 10,	     /* deletes that the map's lock refused twice */
	LOSS_KERNEL = 11,
	LOSS_EVICTED = 11,	     /* entries that the LRU map dropped */
	LOSS_NEVER_COMPLETED = 12,   /* entries older than an hour, or of a device that went away */
	LOSS_RECURSION = 13,	     /* program runs that the kernel skipped (recursion_misses) */
	LOSS_STACK_MISSING = 14,     /* samples whose stack record was lost */
	LOSS_PROC_EVENTS = 15,	     /* process events lost in the perf rings */
	LOSS_PROC_EVICTED = 16,	     /* processes dropped for the memory budget */
	LOSS_FILES_MISSING = 17,     /* mapped files that could not be opened for their symbols */
	LOSS_ROWS_FULL = 18,	     /* bios whose stack was folded away because there are too many different ones */
	/* Stacks that were walked by unwind tables and are not whole, by enum unwind_break; counted on the kernel side. */
	LOSS_BROKEN = 19,
	LOSS_BROKEN_NO_MAPPING = 19,
	LOSS_BROKEN_NO_TABLE = 20,
	LOSS_BROKEN_NO_RULE = 21,
	LOSS_BROKEN_UNREADABLE = 22,
	LOSS_BROKEN_BAD_RETURN = 23,
	LOSS_BROKEN_NOT_GROWING = 24,
	LOSS_BROKEN_LOST_REGISTER = 25,
	LOSS_TABLES_PENDING = 26,    /* stacks walked by frame pointer because their process's tables were not there yet */
	LOSS_PIDS_FOLDED = 27,	     /* samples of ended processes whose process id was folded away */
	LOSS_PERF_MAP_LINES = 28,    /* lines of perf maps: malformed, or without room */
	LOSS_SUBMITTER_UNKNOWN = 29, /* samples of io_uring workers whose request was not seen when it was handed over */
	LOSS_CAUSES = 30,
};

#define RECORD_SLOTS 256	   /* devices with counters of their own; the last one takes what finds no slot */
#define RECORD_FILTER_BITS 14	   /* counters of the filter of bios in flight */
#define RECORD_FRAMES 128	   /* of a user stack and of a kernel stack */
#define RECORD_CALLERS 6	   /* callers recovered from the top of the user stack */
#define RECORD_COMM 16
#define RECORD_RING (8 << 20)	   /* bytes */
#define RECORD_TICK_SHIFT 6	   /* a tick is at most so many doublings of a jiffy */
#define RECORD_CGROUPS 64
#define RECORD_WEIGHT_ONE 256	   /* a weight of 1: weights are 1/p in 24.8 fixed point */

enum exclude_flag {
	EXCLUDE_COMM = 1,
	EXCLUDE_CGROUP = 2,
};

/* Values of filter_comms. */
enum comm_rule {
	COMM_WANTED = 1,
	COMM_EXCLUDED = 2,
};

/* Set before loading. */
struct record_config {
	u32 self;	     /* our own process id: its bios are kept out */
	u32 flush_seq;	     /* mask of RQF_FLUSH_SEQ in rq_flags */
	u32 ops;	     /* mask of 1 << op_class that is wanted; 0 = all */
	s32 cgroup_subsys;   /* index of the v1 controller that names a task's cgroup, -1 = unified */
	u8 bio_list_valid;   /* current->bio_list at block_bio_queue means: below a stacked device */
	u8 kernel_stacks;
	u8 by_pid, by_comm, by_cgroup, by_device; /* filters that are set */
	u8 follow;	     /* by_pid follows forks */
	u8 excludes;	     /* enum exclude_flag: what is kept out whatever the filters say */
	u8 unwind; /* user stacks are walked by tables; 0 = by frame pointer only */
	u8 hold_cpu; /* the kernel has bpf_preempt_disable */
	u8 async_request; /* the argument of io_uring_queue_async_work that is the request, from 1; 0 = workers remain unknown */
	u8 pad2;
	u32 ring_wakes; /* bytes in the ring at which user space is woken */
	u32 max_frames; /* of one stack by frame pointer: kernel.perf_event_max_stack, at most RECORD_FRAMES; a stack of so many was cut */
	u32 n_cgroups;
	struct {
		u64 id;
		s32 subsys; /* -1 = unified */
		u32 exclude; /* kept out; 0 = wanted */
	} cgroups[RECORD_CGROUPS];
};

/* One counter of the filter: entries put into the map of bios in flight and taken out, for addresses with this hash.
 * Equal numbers mean that the map cannot hold the address. Two counters that only grow, so that user space can tell a
 * moment of rest from an insert and a delete that cancel, and give back what the LRU map evicted in silence. */
struct filter_counter {
	u32 in, out;
};

/* Mapped by user space while it runs. */
struct record_state {
	u32 active;
	u32 window; /* number of the window that submissions belong to */
	u64 jiffies; /* left by read_jiffies */
	u32 target;  /* samples per tick and stratum; 0 = every bio */
	u32 tick_shift; /* a tick is 1 << tick_shift jiffies */
	struct filter_counter filter[1 << RECORD_FILTER_BITS];
	u64 slot_cache[RECORD_SLOTS]; /* device number << 32 | slot, by the low bits of the number; 0 = empty */
	u8 slot_flags[RECORD_SLOTS];
};

enum slot_flag {
	SLOT_EXCLUDED = 1, /* the device filter keeps it out */
	SLOT_LOWER = 2,	   /* something is stacked on it */
};

/* Who owns a slot; written once. */
struct slot_info {
	u32 dev;  /* as submitted: the partition where there is one, kernel's numbering */
	u32 disk; /* major << 20 | first minor of the whole disk */
	char name[32];
};

struct op_counter {
	u64 ops, bytes;
};

/* One sampling stratum: bios of one CPU, device and {read, write, other}. See sampler.h. */
struct stratum {
	u64 tick;
	u32 gap;    /* bios until the next sample, from 1 */
	u32 count;  /* bios in this tick */
	u32 taken;  /* samples in this tick */
	u32 weight; /* 1/p, 24.8 fixed point */
	s32 saved;  /* samples not taken in quiet ticks; below 0: taken too many */
	u32 target; /* samples of this tick after which p halves */
};

enum stratum_class {
	STRATUM_READ,
	STRATUM_WRITE,
	STRATUM_OTHER,
	STRATA,
};

/* Per CPU and slot. The bank is the window's lowest bit: user space reads a bank after its window has ended. */
struct slot_counters {
	struct stratum strata[STRATA];
	struct op_counter exact[2][OP_MASK + 1];
};

/* What a completion hook keeps while it runs. */
struct ending {
	u64 pointer; /* stored and loaded again it is a number to the verifier */
	u64 parent;  /* of the chained parts that the walk over a request has met */
	u64 ended;   /* how many of them */
};

enum ending_hook {
	ENDING_BIO,
	ENDING_REQUEST,
	ENDING_HOOKS,
};

/* An interrupt may run a hook once more on its CPU where the kernel does not forbid it: fentry up to 5.11, tracepoints up
 * to 6.0. A process, a softirq and an interrupt need three. */
#define ENDING_LEVELS 4

struct ending_levels {
	u32 level; /* that are in use */
	u32 pad;
	struct ending at[ENDING_LEVELS];
};

/* Per CPU. An interrupt's completion may hit a submission or a completion by the other hook: each has its own scratch. */
struct cpu_state {
	u64 submitted;
	struct ending_levels ending[ENDING_HOOKS];
	u64 own_ops, second_level_ops, filtered_ops;
	u64 samples;
	u64 in, out; /* entries put into and taken out of the map of bios in flight */
	u64 losses[LOSS_KERNEL];
	u64 broken[8]; /* by enum unwind_break */
	u64 tables_pending;
	u64 submitters_tick, submitters_taken; /* stacks of submitters in this tick */
	u64 submitters_unknown;
};

enum task_kind {
	TASK_KTHREAD = 1,
	TASK_IO_WORKER = 2, /* io_uring worker or SQPOLL thread: no user stack of its own */
};

/* A sampled bio between submission and completion. */
struct in_flight {
	u64 submit;	      /* ns, CLOCK_MONOTONIC */
	u64 last;	      /* when its last part so far ended, 0 = none has */
	u64 end_io, private_; /* what identifies the bio at its address */
	u64 stack;	      /* hash of its stack record, 0 = none */
	u64 submitter;	      /* of an io_uring worker: hash of the stack that handed the request to it, 0 = none */
	u64 cgroup;
	u32 tgid, tid;
	u32 size;
	u32 weight;
	u32 window;
	u32 slot;
	u8 op;
	u8 kind;
	u8 punt; /* submitted with REQ_CGROUP_PUNT: will come a second time */
	u8 pad[5];
	char comm[RECORD_COMM];
};

enum record_type {
	RECORD_BIO = 1,	  /* struct bio_rec */
	RECORD_STACK = 2, /* struct stack_rec, cut behind its frames */
	RECORD_CPU = 3,	  /* struct bio_rec: submit = end = time, weight = 1 */
	RECORD_PROCESS = 4, /* struct process_rec: a process whose mappings are wanted now */
};

enum bio_end {
	END_COMPLETED = 0,
	END_AGAIN = 1,	/* BLK_STS_AGAIN: will be submitted again, counts as nothing */
	END_UNSEEN = 2, /* found ended without a completion: at `last`, or nobody knows when that is 0 */
};

enum bio_state {
	BIO_UNKNOWN,
	BIO_ENDED,
	BIO_IN_FLIGHT,
};

struct bio_rec {
	u32 type;
	u32 end_reason;
	u64 end; /* ns */
	struct in_flight bio;
};

struct process_rec {
	u32 type;
	u32 tgid;
	u64 time; /* ns */
};

struct stack_rec {
	u32 type;
	u8 n_callers;
	u8 flags;  /* enum stack_flag */
	u8 broken; /* enum unwind_break */
	u8 pad;
	u16 n_user, n_kernel;
	u32 pad2;
	u64 hash;
	u64 frames[RECORD_CALLERS + 2 * RECORD_FRAMES]; /* callers, user frames leaf first, kernel frames leaf first */
};

enum stack_flag {
	STACK_TRUNCATED_USER = 1,
	STACK_TRUNCATED_KERNEL = 2,
	STACK_UNREADABLE = 4,
	STACK_UNWOUND = 8, /* walked by tables: no caller is missing */
	STACK_PENDING = 16, /* walked by frame pointer because its process's tables were not there yet */
};

_Static_assert(sizeof(struct in_flight) == 104, "layout");
_Static_assert(sizeof(struct bio_rec) == 120, "layout");
_Static_assert(sizeof(struct process_rec) == 16, "layout");
_Static_assert(__builtin_offsetof(struct stack_rec, frames) == 24, "layout");
_Static_assert(sizeof(struct stratum) == 32, "layout");
_Static_assert(sizeof(struct slot_counters) == 352, "layout");

#endif
