// SPDX-License-Identifier: Apache-2.0
#include "unwind/expression.h"

#include <dwarf.h>
#include <string.h>

#include "elf/dw_cursor.h"
#include "unwind/registers.h"

#define STACK_MAX 8
#define BYTES_MAX 64 // real ones have 3 to 12; this bounds what a row costs

struct stack {
	struct expression item[STACK_MAX];
	unsigned n;
	bool bad;
};

static void push(struct stack *s, struct expression x)
{
	if (s->n == STACK_MAX)
		s->bad = true;
	else
		s->item[s->n++] = x;
}

static struct expression pop(struct stack *s)
{
	if (!s->n) {
		s->bad = true;
		return (struct expression){ 0 };
	}
	return s->item[--s->n];
}

static void push_constant(struct stack *s, int64_t v)
{
	push(s, (struct expression){ .base = EXPRESSION_CONSTANT, .offset = v });
}

static void push_register(struct stack *s, uint64_t reg, int64_t offset)
{
	struct expression x = { .offset = offset };

	if (reg == REG_RSP)
		x.base = EXPRESSION_RSP;
	else if (reg == REG_RBP)
		x.base = EXPRESSION_RBP;
	else
		s->bad = true;
	push(s, x);
}

static void add(struct stack *s, struct expression x, int64_t v)
{
	int64_t *to = x.deref ? &x.add : &x.offset;

	if (__builtin_add_overflow(*to, v, to))
		s->bad = true;
	push(s, x);
}

static void plus(struct stack *s)
{
	struct expression b = pop(s), a = pop(s);

	if (b.base == EXPRESSION_CONSTANT && !b.deref)
		add(s, a, b.offset);
	else if (a.base == EXPRESSION_CONSTANT && !a.deref)
		add(s, b, a.offset);
	else
		s->bad = true;
}

static void minus(struct stack *s)
{
	struct expression b = pop(s), a = pop(s);

	if (b.base != EXPRESSION_CONSTANT || b.deref || b.offset == INT64_MIN)
		s->bad = true;
	else
		add(s, a, -b.offset);
}

static void deref(struct stack *s)
{
	struct expression x = pop(s);

	if (x.deref || x.base == EXPRESSION_CONSTANT)
		s->bad = true;
	x.deref = true;
	push(s, x);
}

static void step(struct stack *s, struct dw_cursor *c)
{
	uint8_t op = dw_byte(c);

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		push_constant(s, op - DW_OP_lit0);
	else if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		push_register(s, (uint64_t)op - DW_OP_breg0, dw_sleb(c));
	else
		switch (op) {
		case DW_OP_const1u:
			push_constant(s, (int64_t)dw_take(c, 1));
			break;
		case DW_OP_const1s:
			push_constant(s, (int8_t)dw_take(c, 1));
			break;
		case DW_OP_const2u:
			push_constant(s, (int64_t)dw_take(c, 2));
			break;
		case DW_OP_const2s:
			push_constant(s, (int16_t)dw_take(c, 2));
			break;
		case DW_OP_const4u:
			push_constant(s, (int64_t)dw_take(c, 4));
			break;
		case DW_OP_const4s:
			push_constant(s, (int32_t)dw_take(c, 4));
			break;
		case DW_OP_const8u:
		case DW_OP_const8s:
			push_constant(s, (int64_t)dw_take(c, 8));
			break;
		case DW_OP_constu:
			push_constant(s, (int64_t)dw_uleb(c));
			break;
		case DW_OP_consts:
			push_constant(s, dw_sleb(c));
			break;
		case DW_OP_bregx: {
			uint64_t reg = dw_uleb(c);

			push_register(s, reg, dw_sleb(c));
			break;
		}
		case DW_OP_plus_uconst: {
			uint64_t v = dw_uleb(c);

			if (v > INT64_MAX)
				s->bad = true;
			add(s, pop(s), (int64_t)v);
			break;
		}
		case DW_OP_plus:
			plus(s);
			break;
		case DW_OP_minus:
			minus(s);
			break;
		case DW_OP_deref:
			deref(s);
			break;
		case DW_OP_nop:
			break;
		default:
			s->bad = true;
		}
}

// The linker's: breg7(rsp)+8, breg16(rip)+0, lit15, and, litN, ge, lit3, shl, plus.
static bool read_plt(const uint8_t *bytes, size_t len, struct expression *ret)
{
	static const uint8_t head[] = { DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and };
	static const uint8_t tail[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };
	size_t n = sizeof(head);

	if (len != n + 1 + sizeof(tail) || memcmp(bytes, head, n) || memcmp(bytes + n + 1, tail, sizeof(tail)) ||
	    bytes[n] < DW_OP_lit0 || bytes[n] > DW_OP_lit15)
		return false;
	*ret = (struct expression){ .base = EXPRESSION_PLT, .offset = bytes[n] - DW_OP_lit0 };
	return true;
}

bool expression_read(const uint8_t *bytes, size_t len, bool with_cfa, struct expression *ret)
{
	struct dw_cursor c = dw_cursor_at(bytes, bytes + len);
	struct stack s = { .n = 0 };

	if (len > BYTES_MAX)
		return false;
	if (!with_cfa && read_plt(bytes, len, ret))
		return true;
	if (with_cfa)
		push(&s, (struct expression){ .base = EXPRESSION_CFA });
	while (dw_left(&c) && !s.bad)
		step(&s, &c);
	if (s.bad || c.bad || !s.n)
		return false;
	*ret = s.item[s.n - 1];
	return true;
}
