/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* How a frame's caller is found: the rules that the agent compiles from .eh_frame and the kernel side applies. */
#ifndef BLKPROF_BPF_UNWIND_REC_H
#define BLKPROF_BPF_UNWIND_REC_H

#include "bpf/record_rec.h"

/* Where the canonical frame address (the value of rsp before the call) is. */
enum unwind_cfa {
	UNWIND_CFA_NONE = 0,  /* no rule covers this address, or one that is not supported: the walk breaks here */
	UNWIND_CFA_END = 1,   /* the outermost frame: its return address is undefined */
	UNWIND_CFA_RSP = 2,   /* rsp + cfa_offset */
	UNWIND_CFA_RBP = 3,   /* rbp + cfa_offset */
	UNWIND_CFA_PLT = 4,   /* rsp + 8 + ((rip & 15) >= cfa_offset ? 8 : 0): the lazy PLT's expression */
	UNWIND_CFA_DEREF_RSP = 5, /* *(rsp + cfa_offset) + cfa_add */
	UNWIND_CFA_DEREF_RBP = 6, /* *(rbp + cfa_offset) + cfa_add: functions that align their stack */
	UNWIND_CFA_SIGNAL = 7,	  /* a signal frame: rip, rsp, rbp from the ucontext at rsp + cfa_offset */
};

enum unwind_rbp {
	UNWIND_RBP_SAME = 0,
	UNWIND_RBP_CFA = 1,	/* *(cfa + rbp_offset) */
	UNWIND_RBP_FRAME = 2,	/* *(rbp + rbp_offset): an expression over rbp */
	UNWIND_RBP_UNKNOWN = 3, /* lost from here on */
};

/* The return address is always at cfa - 8 on x86-64. */
struct unwind_rule {
	s32 cfa_offset;
	s16 rbp_offset;
	s16 cfa_add;
	u8 cfa; /* enum unwind_cfa */
	u8 rbp; /* enum unwind_rbp */
	u8 pad[2];
};

/* Everything that grows lies in arenas, maps of one value each that user space fills while they are mapped: the rows of
 * tables, their page indexes, and the mappings of processes. A place in them is arena << UNWIND_ARENA_BITS | word. What a
 * program may find is only taken away after nothing points to it any more and a grace period has passed. */
#define UNWIND_ARENA_BITS 18
#define UNWIND_ARENA_WORDS (1u << UNWIND_ARENA_BITS) /* 1 MiB */
#define UNWIND_ARENAS 64
#define UNWIND_RULES 32768
#define UNWIND_PROCS 8192
#define UNWIND_MAPPINGS 4096 /* of one process */
#define UNWIND_PAGE_BITS 16  /* of code that one entry of a page index covers */

struct unwind_arena {
	u32 words[UNWIND_ARENA_WORDS];
};

/* The mappings of a process, by its thread group's id. The kernel side puts an empty one where it has asked for them. */
struct unwind_proc {
	u32 place; /* of struct unwind_mapping[count], sorted by start; wholly in one arena, at an even word */
	u32 count; /* 0 = asked for */
	u64 mm; /* the address space that they are of: written by the kernel side when it first uses them */
	u32 stale; /* the kernel side met code outside of them, and has asked for others */
	u32 pad;
};

/* Executable memory. A row of a table is pc << 16 | rule, pc the low bits of an address relative to the table's base; the
 * first row of a page has pc 0. A page index entry is two words: place of the page's rows, and how many. */
struct unwind_mapping {
	u64 start;
	u32 pages;   /* of 4 KiB */
	u32 first;   /* start relative to the table's base, in 4 KiB */
	u32 index;   /* place of the page index; 0 = no table */
	u32 n_index; /* entries; without a table: enum unwind_mapping_kind */
};

enum unwind_mapping_kind {
	UNWIND_NO_TABLE = 0, /* a file without CFI, or whose table was given up: frame pointers */
	UNWIND_PENDING = 1,  /* its table is being compiled */
	UNWIND_GENERATED = 2, /* JIT code: frame pointers */
};

/* Why a stack is not whole. Append-only. */
enum unwind_break {
	UNWIND_WHOLE = 0, /* it is: the outermost frame was met */
	UNWIND_NO_MAPPING = 1,	  /* an address outside the known executable mappings, and no frame pointer leads on */
	UNWIND_BREAK_NO_TABLE = 2, /* code without a table, and no frame pointer leads on */
	UNWIND_NO_RULE = 3,	   /* no rule at an address, or one that is not supported, and no frame pointer leads on */
	UNWIND_UNREADABLE = 4,	   /* a part of the stack that could not be read */
	UNWIND_BAD_RETURN = 5,	   /* a return address that is no address */
	UNWIND_NOT_GROWING = 6,	   /* a frame that does not lie above the one that it called */
	UNWIND_LOST_REGISTER = 7,  /* a rule over rbp, whose value is lost */
	UNWIND_BREAKS = 8,
};

_Static_assert(sizeof(struct unwind_rule) == 12, "layout");
_Static_assert(sizeof(struct unwind_proc) == 24, "layout");
_Static_assert(sizeof(struct unwind_mapping) == 24, "layout");

#endif
