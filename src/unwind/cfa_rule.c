// SPDX-License-Identifier: Apache-2.0
// From the state of a call frame program to the rule that the kernel side applies.
#include <string.h>

#include "unwind/cfa_program.h"
#include "unwind/expression.h"
#include "unwind/registers.h"

// Where the kernel leaves registers in the ucontext of a signal frame.
#define UCONTEXT_RBP 120
#define UCONTEXT_RSP 160
#define UCONTEXT_RIP 168

static bool fits32(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX;
}

static bool fits16(int64_t v)
{
	return v >= INT16_MIN && v <= INT16_MAX;
}

static bool cfa_of(const struct cfa_state *s, struct expression *ret)
{
	if (!s->defined)
		return false;
	if (s->bytes)
		return expression_read(s->bytes, s->len, false, ret);
	if (s->reg != REG_RSP && s->reg != REG_RBP)
		return false;
	*ret = (struct expression){ .base = s->reg == REG_RSP ? EXPRESSION_RSP : EXPRESSION_RBP, .offset = s->offset };
	return true;
}

// Where a register was saved, when that is at rsp + *ret.
static bool saved_at_rsp(const struct cfa_register *reg, int64_t *ret)
{
	struct expression x;

	if (reg->where != CFA_EXPRESSION || !expression_read(reg->bytes, reg->len, true, &x) ||
	    x.base != EXPRESSION_RSP || x.deref)
		return false;
	*ret = x.offset;
	return true;
}

// The trampoline that returns from a handler: everything is loaded from the ucontext at rsp.
static bool signal_frame(const struct cfa_state *s, const struct expression *cfa, struct unwind_rule *ret)
{
	int64_t rip, rbp, context;

	if (cfa->base != EXPRESSION_RSP || !cfa->deref || cfa->add || !saved_at_rsp(&s->ra, &rip) ||
	    !saved_at_rsp(&s->rbp, &rbp) || __builtin_sub_overflow(cfa->offset, UCONTEXT_RSP, &context) ||
	    !fits32(context) || rip != context + UCONTEXT_RIP || rbp != context + UCONTEXT_RBP)
		return false;
	*ret = (struct unwind_rule){ .cfa = UNWIND_CFA_SIGNAL, .cfa_offset = (s32)context };
	return true;
}

static bool set_cfa(const struct expression *cfa, struct unwind_rule *rule)
{
	bool rsp = cfa->base == EXPRESSION_RSP;

	if (!fits32(cfa->offset) || !fits16(cfa->add))
		return false;
	if (cfa->base == EXPRESSION_PLT)
		rule->cfa = UNWIND_CFA_PLT;
	else if (rsp || cfa->base == EXPRESSION_RBP)
		rule->cfa = cfa->deref ? (rsp ? UNWIND_CFA_DEREF_RSP : UNWIND_CFA_DEREF_RBP)
				       : (rsp ? UNWIND_CFA_RSP : UNWIND_CFA_RBP);
	else
		return false;
	rule->cfa_offset = (s32)cfa->offset;
	rule->cfa_add = (s16)cfa->add;
	return true;
}

static void set_rbp_at(struct unwind_rule *rule, enum unwind_rbp how, int64_t offset)
{
	if (!fits16(offset))
		return;
	rule->rbp = (u8)how;
	rule->rbp_offset = (s16)offset;
}

static void set_rbp(const struct cfa_state *s, const struct expression *cfa, struct unwind_rule *rule)
{
	struct expression x;
	int64_t offset;

	rule->rbp = UNWIND_RBP_UNKNOWN;
	if (s->rbp.where == CFA_UNSET)
		rule->rbp = UNWIND_RBP_SAME;
	else if (s->rbp.where == CFA_OFFSET)
		set_rbp_at(rule, UNWIND_RBP_CFA, s->rbp.value);
	else if (s->rbp.where == CFA_EXPRESSION && expression_read(s->rbp.bytes, s->rbp.len, true, &x) && !x.deref) {
		if (x.base == EXPRESSION_RBP)
			set_rbp_at(rule, UNWIND_RBP_FRAME, x.offset);
		else if (x.base == EXPRESSION_CFA)
			set_rbp_at(rule, UNWIND_RBP_CFA, x.offset);
		else if (x.base == EXPRESSION_RSP && cfa->base == EXPRESSION_RSP && !cfa->deref &&
			 !__builtin_sub_overflow(x.offset, cfa->offset, &offset))
			set_rbp_at(rule, UNWIND_RBP_CFA, offset);
	}
}

bool cfa_state_rule(const struct cfa_state *state, struct unwind_rule *ret)
{
	struct expression cfa;

	memset(ret, 0, sizeof(*ret));
	if (state->ra.where == CFA_UNDEFINED) {
		ret->cfa = UNWIND_CFA_END;
		return true;
	}
	if (!cfa_of(state, &cfa))
		return false;
	if (signal_frame(state, &cfa, ret))
		return true;
	if (state->ra.where != CFA_OFFSET || state->ra.value != -8 || !set_cfa(&cfa, ret)) {
		memset(ret, 0, sizeof(*ret));
		return false;
	}
	set_rbp(state, &cfa, ret);
	return true;
}
