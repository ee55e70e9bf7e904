// SPDX-License-Identifier: Apache-2.0
// Runs call frame instructions: what the rules for the CFA, rbp and the return address are at each address of a function.
#ifndef BLKPROF_UNWIND_CFA_PROGRAM_H
#define BLKPROF_UNWIND_CFA_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rec.h"
#include "unwind/budget.h"

enum cfa_where {
	CFA_UNSET, // as the caller had it
	CFA_UNDEFINED,
	CFA_OFFSET,	// saved at CFA + value
	CFA_EXPRESSION, // saved at what the bytes compute
	CFA_OTHER,	// in another register, or computed: not followed
};

struct cfa_register {
	enum cfa_where where;
	int64_t value;
	const uint8_t *bytes; // in the section
	size_t len;
};

struct cfa_state {
	uint64_t reg; // the CFA is reg + offset, unless bytes are set
	int64_t offset;
	const uint8_t *bytes;
	size_t len;
	bool defined;
	struct cfa_register rbp, ra;
};

struct cfa_code {
	const uint8_t *from, *end; // instructions
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t encoding;	     // of DW_CFA_set_loc's operand
	const uint8_t *section;	     // whose first byte is at section_address
	uint64_t section_address;
};

struct cfa_sink {
	void *context;
	// The state from `pc` on, up to the next call's pc. False ends the run.
	bool (*row)(void *context, uint64_t pc, const struct cfa_state *state);
};

// Runs code from `start` up to `end`. `state` is what its CIE's instructions left (also the target of DW_CFA_restore),
// or zeroes to run these themselves, with no sink. *ret_last is the final state.
// -EBADMSG: a broken instruction; from its address on the state was delivered as undefined. -EFBIG: the budget is spent.
int cfa_program_run(const struct cfa_code *code, uint64_t start, uint64_t end, const struct cfa_state *initial,
		    const struct cfa_sink *sink, struct budget *budget, struct cfa_state *ret_last);

// The rule of a state. False when the walk cannot follow it; the rule is then UNWIND_CFA_NONE.
bool cfa_state_rule(const struct cfa_state *state, struct unwind_rule *ret);

#endif
