// SPDX-License-Identifier: Apache-2.0
// What happened, as the timeline takes it in and as a recorded raw stream keeps it. In the stored form numbers of types and
// the order of their fields are append-only; what a reader does not know it skips.
#ifndef BLKPROF_TIMELINE_EVENT_H
#define BLKPROF_TIMELINE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

#define EVENT_COMM 16
#define EVENT_TEXT_MAX 32768
#define EVENT_CPUS 4096
#define EVENT_TID_MAX (1u << 30)

enum event_type {
	EVENT_START = 1,   // the recording begins: time, boottime, realtime, cpu = how many; text = kernel release
	EVENT_STOP = 2,    // it ended: time
	EVENT_THREAD = 3,  // was there at the start: time, cpu, tid, tgid, comm, flags, state, syscall
	EVENT_PROCESS = 4, // tgid; text = its name
	EVENT_DEVICE = 5,  // device; text = its name
	EVENT_STACK = 6,   // stack; text = its frames, outermost first, one a line
	EVENT_SWITCH = 7,  // time, cpu, tid, tgid = who leaves; other_tid, other_tgid, comm = who comes; flags, state, syscall, stack
	EVENT_WAKING = 8,  // time, cpu, tid, tgid; other_tid, other_tgid, comm = by whom; flags
	EVENT_NEW = 9,	   // time, cpu, tid, tgid, comm; other_tid = who made it
	EVENT_RENAME = 10, // time, cpu, tid, tgid, comm
	EVENT_EXEC = 11,   // time, cpu, tid, tgid, comm; other_tid = its thread id until now
	EVENT_SUBMIT = 12, // time, cpu, tid, tgid, comm, id, sector, size, device, op, stack
	EVENT_END = 13,	   // time, cpu, id, submit, issue, flags
	EVENT_LOST = 14,   // time, op = enum lost, id = how many
	EVENT_REQUEST = 15, // time = its end, submit = its start, tid, tgid, state = status; text = "METHOD PATH"
	EVENT_TYPES = 16,
};

enum event_flag {
	EVENT_PREEMPTED = 1,	// SWITCH: who leaves could have gone on
	EVENT_IO_WAIT = 2,	// SWITCH, THREAD: waits for I/O
	EVENT_LEAVES = 4,	// SWITCH: who leaves is wanted
	EVENT_COMES = 8,	// SWITCH: who comes is wanted
	EVENT_SYSCALL = 16,	// SWITCH, THREAD: syscall is known
	EVENT_OFF_QUEUE = 32,	// WAKING: it sleeps, whether its switch was seen yet or not
	EVENT_RUNNING = 64,	// THREAD: on a CPU
	EVENT_AGAIN = 128,	// END: was refused for now and is submitted again
	EVENT_UNSEEN = 256,	// END: its end was not seen; time is when that was found out
	EVENT_KERNEL = 512,	// SWITCH, THREAD: who leaves is a thread of the kernel
};

// What was lost.
enum lost {
	LOST_SWITCH,
	LOST_WAKING,
	LOST_THREAD,
	LOST_SUBMIT,
	LOST_END,
	LOST_STACK,
	LOST_REQUEST,
	LOST_KINDS,
};

struct event {
	uint64_t time; // ns, CLOCK_MONOTONIC
	uint64_t id;   // SUBMIT, END: with submit it names the I/O
	uint64_t sector, submit, issue;
	uint64_t stack; // number of an EVENT_STACK, 0 = none
	uint64_t boottime, realtime; // START: those clocks at `time`
	uint32_t tid, tgid, other_tid, other_tgid;
	uint32_t flags; // enum event_flag
	uint32_t state; // SWITCH, THREAD: as the kernel has it
	uint32_t syscall;
	uint32_t size;
	uint32_t device; // major << 20 | minor
	uint32_t cpu;
	uint8_t type; // enum event_type
	uint8_t op;
	char comm[EVENT_COMM];
	const char *text; // of the types that have one: text_len bytes, then a NUL; not owned
	uint32_t text_len;
};

const char *lost_name(unsigned lost); // "switches"

// The stored form: event_file_begin, then each event.
void event_file_begin(struct buf *to);
void event_encode(struct buf *to, const struct event *e);
// Whether a file begins as one of ours does; *ret_used = the length of that. -EINVAL with what is wrong.
int event_file_check(const uint8_t *data, size_t len, size_t *ret_used, struct error *e);
#define EVENT_FILE_HEADER 16
#define EVENT_BYTES_MAX (EVENT_TEXT_MAX + 512)
// The first event in data, its text NUL-terminated in `text` (EVENT_TEXT_MAX + 1 bytes). Returns the bytes used, 0 when it is
// cut off behind `len`, -EINVAL with what is wrong with it. ret->type is 0 for a type that this version does not know.
long event_decode(const uint8_t *data, size_t len, struct event *ret, char *text, struct error *e);

#endif
