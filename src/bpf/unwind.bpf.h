/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The walk over a user stack by rules (unwind_rec.h), a frame at a time; frame pointers where code has no table. Pure:
 * whoever includes it defines before
 *   u32 *unwind_words(u32 place)			the arena that holds the place, NULL when it is gone
 *   const struct unwind_rule *unwind_rule_at(u32 id)	NULL beyond UNWIND_RULES
 *   long unwind_read(void *out, u32 size, u64 address)	user memory; 0 when all was read
 * and barrier_var, so that tests run the same code in user space. Every index is masked into its arena: whatever tables
 * and stacks hold, nothing outside is touched. */
#ifndef BLKPROF_BPF_UNWIND_H
#define BLKPROF_BPF_UNWIND_H

#include "bpf/unwind_rec.h"

#define UNWIND_WORD_MASK (UNWIND_ARENA_WORDS - 1)
#define UNWIND_PAIR_MASK (UNWIND_ARENA_WORDS - 2) /* of a 64-bit word */
#define UNWIND_ADDRESS_BITS 47
/* In struct ucontext of x86-64: where rbp, rsp and rip are. */
#define UNWIND_UC_RBP 120
#define UNWIND_UC_RSP 160
#define UNWIND_UC_RIP 168

struct unwind_walk {
	u64 ip, sp, bp;
	u32 list, n_list; /* the process's mappings */
	u32 base;	  /* what a search found; read again from memory, it is one number to the verifier, not one for each way */
	u8 exact;	  /* ip is an address that was executed, not one that is returned to */
	u8 bp_lost;
	u8 broken; /* enum unwind_break */
	u8 pending;
	struct unwind_mapping map; /* that the last address was found in */
};

enum unwind_next {
	UNWIND_ON,
	UNWIND_STOP,
};

static __always_inline int unwind_stop(struct unwind_walk *w, enum unwind_break why)
{
	w->broken = why;
	return UNWIND_STOP;
}

/* All ones when the condition holds that makes `difference` not negative; a branch on each step of a search would double
 * the paths that the verifier follows. */
static __always_inline u64 not_negative(u64 difference)
{
	barrier_var(difference);
	return (difference >> 63) - 1;
}

/* The last of n sorted mappings that starts at or below pc, into w->map. */
static __always_inline bool unwind_find_mapping(struct unwind_walk *w, u64 pc)
{
	u64 n = w->n_list, list = w->list, base = 0, start, half, at, *out = (u64 *)&w->map;
	u32 i, *words;

	if (pc - w->map.start < (u64)w->map.pages << 12)
		return true;
	words = unwind_words(w->list);
	if (!words || !n)
		return false;
	for (i = 0; i < 12 && n > 1; i++) {
		half = n >> 1;
		at = list + (base + half) * (sizeof(struct unwind_mapping) / 4);
		start = *(u64 *)&words[at & UNWIND_PAIR_MASK];
		base += half & not_negative(pc - start);
		n -= half;
	}
	w->base = base;
	at = list + *(volatile u32 *)&w->base * (sizeof(struct unwind_mapping) / 4);
	for (i = 0; i < 3; i++) {
		out[i] = *(u64 *)&words[at & UNWIND_PAIR_MASK];
		at += 2;
	}
	if (pc - w->map.start < (u64)w->map.pages << 12)
		return true;
	w->map.pages = 0;
	return false;
}

/* The rule at pc in the mapping's table; NULL when the table does not reach there or is gone. */
static __always_inline const struct unwind_rule *unwind_find_rule(struct unwind_walk *w, u64 pc)
{
	u64 relative = ((u64)w->map.first << 12) + (pc - w->map.start), page = relative >> UNWIND_PAGE_BITS;
	u64 key = (relative << 16 & 0xffff0000) | 0xffff, n, half, rows, at, base = 0;
	u32 i, *words;

	if (page >= w->map.n_index)
		return 0;
	words = unwind_words(w->map.index);
	if (!words)
		return 0;
	at = w->map.index + page * 2;
	rows = words[at & UNWIND_WORD_MASK];
	n = words[(at + 1) & UNWIND_WORD_MASK];
	words = unwind_words(rows);
	if (!words || !n)
		return 0;
	for (i = 0; i < 17 && n > 1; i++) {
		half = n >> 1;
		at = (rows + base + half) & UNWIND_WORD_MASK;
		base += half & not_negative(key - words[at]);
		n -= half;
	}
	w->base = base;
	at = (rows + *(volatile u32 *)&w->base) & UNWIND_WORD_MASK;
	return unwind_rule_at(words[at] & 0xffff);
}

/* On to the caller, whose address is `ip` and whose stack begins at `sp`. */
static __always_inline int unwind_to(struct unwind_walk *w, u64 ip, u64 sp)
{
	if (!ip) /* what starts a thread leaves none */
		return unwind_stop(w, UNWIND_WHOLE);
	if (ip >> UNWIND_ADDRESS_BITS)
		return unwind_stop(w, UNWIND_BAD_RETURN);
	w->ip = ip;
	w->sp = sp;
	w->exact = 0;
	return UNWIND_ON;
}

/* By frame pointer; `why` is what is wrong where that does not lead on. */
static __always_inline int unwind_by_pointer(struct unwind_walk *w, enum unwind_break why)
{
	u64 pair[2], bp = w->bp;

	if (w->bp_lost)
		return unwind_stop(w, why);
	if (!bp) /* as the outermost frame has it; of a leaf and in unknown code it says nothing */
		return unwind_stop(w, why == UNWIND_NO_MAPPING || w->exact ? why : UNWIND_WHOLE);
	if (bp < w->sp || (bp & 7) || unwind_read(pair, sizeof(pair), bp))
		return unwind_stop(w, why);
	if (pair[1] >> UNWIND_ADDRESS_BITS || (pair[0] && pair[0] <= bp))
		return unwind_stop(w, why);
	w->bp = pair[0];
	return unwind_to(w, pair[1], bp + 16);
}

/* A leaf that makes a system call and has no frame, as Go's: its return address is on top of the stack if a direct call
 * to right before the leaf's address stands in front of it. */
static __always_inline bool unwind_bare_leaf(struct unwind_walk *w)
{
	u8 code[5] = {};
	u16 syscall = 0;
	s32 offset;
	u64 ip;

	if (unwind_read(&syscall, sizeof(syscall), w->ip - 2) || syscall != 0x050f || unwind_read(&ip, sizeof(ip), w->sp) ||
	    unwind_read(code, sizeof(code), ip - 5) || code[0] != 0xe8)
		return false;
	offset = (s32)((u32)code[1] | (u32)code[2] << 8 | (u32)code[3] << 16 | (u32)code[4] << 24);
	if (w->ip - (ip + (s64)offset) > 256)
		return false;
	return unwind_to(w, ip, w->sp + 8) == UNWIND_ON;
}

static __always_inline int unwind_signal(struct unwind_walk *w, s32 offset)
{
	u64 at = w->sp + (s64)offset, bp, pair[2];

	if (unwind_read(&bp, sizeof(bp), at + UNWIND_UC_RBP) || unwind_read(pair, sizeof(pair), at + UNWIND_UC_RSP))
		return unwind_stop(w, UNWIND_UNREADABLE);
	w->bp = bp;
	w->bp_lost = 0;
	if (unwind_to(w, pair[1], pair[0]))
		return UNWIND_STOP;
	w->exact = 1;
	return UNWIND_ON;
}

static __always_inline int unwind_by_rule(struct unwind_walk *w, const struct unwind_rule *rule)
{
	u64 cfa, bp = w->bp, pair[2];
	u8 kind = rule->cfa, rbp = rule->rbp;

	switch (kind) {
	case UNWIND_CFA_NONE:
		return unwind_by_pointer(w, UNWIND_NO_RULE);
	case UNWIND_CFA_END:
		return unwind_stop(w, UNWIND_WHOLE);
	case UNWIND_CFA_SIGNAL:
		return unwind_signal(w, rule->cfa_offset);
	case UNWIND_CFA_PLT:
		cfa = w->sp + 8 + ((s32)(w->ip & 15) >= rule->cfa_offset ? 8 : 0);
		break;
	default:
		cfa = w->sp;
		if (kind == UNWIND_CFA_RBP || kind == UNWIND_CFA_DEREF_RBP) {
			if (w->bp_lost)
				return unwind_stop(w, UNWIND_LOST_REGISTER);
			cfa = bp;
		}
		cfa += (s64)rule->cfa_offset;
		if (kind == UNWIND_CFA_DEREF_RSP || kind == UNWIND_CFA_DEREF_RBP) {
			if (unwind_read(&cfa, sizeof(cfa), cfa))
				return unwind_stop(w, UNWIND_UNREADABLE);
			cfa += (s64)rule->cfa_add;
		}
	}
	if (cfa <= w->sp || (cfa & 7))
		return unwind_stop(w, UNWIND_NOT_GROWING);
	if (rbp == UNWIND_RBP_CFA && rule->rbp_offset == -16) { /* most often: one read for both */
		if (unwind_read(pair, sizeof(pair), cfa - 16))
			return unwind_stop(w, UNWIND_UNREADABLE);
		w->bp = pair[0];
		w->bp_lost = 0;
		return unwind_to(w, pair[1], cfa);
	}
	/* No more than that: what lies below may never have been touched. */
	if (unwind_read(&pair[1], sizeof(pair[1]), cfa - 8))
		return unwind_stop(w, UNWIND_UNREADABLE);
	if (rbp == UNWIND_RBP_UNKNOWN || (rbp == UNWIND_RBP_FRAME && w->bp_lost)) {
		w->bp_lost = 1;
	} else if (rbp != UNWIND_RBP_SAME) {
		w->bp_lost = 0;
		if (unwind_read(&w->bp, sizeof(w->bp), (rbp == UNWIND_RBP_FRAME ? bp : cfa) + (s64)rule->rbp_offset))
			return unwind_stop(w, UNWIND_UNREADABLE);
	}
	return unwind_to(w, pair[1], cfa);
}

/* From the frame that w->ip is in to its caller. */
static __always_inline int unwind_frame(struct unwind_walk *w)
{
	u64 pc = w->ip - !w->exact;
	const struct unwind_rule *rule;

	if (!unwind_find_mapping(w, pc))
		return unwind_by_pointer(w, UNWIND_NO_MAPPING);
	if (!w->map.index) {
		if (w->map.n_index == UNWIND_PENDING) {
			w->pending = 1;
			return UNWIND_STOP;
		}
		if (w->exact && unwind_bare_leaf(w))
			return UNWIND_ON;
		return unwind_by_pointer(w, UNWIND_BREAK_NO_TABLE);
	}
	rule = unwind_find_rule(w, pc);
	if (!rule)
		return unwind_by_pointer(w, UNWIND_NO_RULE);
	return unwind_by_rule(w, rule);
}

#endif
