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

_Static_assert(sizeof(struct unwind_rule) == 12, "layout");

#endif
