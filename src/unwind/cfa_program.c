// SPDX-License-Identifier: Apache-2.0
#include "unwind/cfa_program.h"

#include <dwarf.h>
#include <errno.h>

#include "elf/dw_cursor.h"
#include "unwind/registers.h"

#define REMEMBERED_MAX 32 // compilers nest one or two

struct run {
	const struct cfa_code *code;
	const struct cfa_state *initial;
	const struct cfa_sink *sink;
	struct dw_cursor c;
	uint64_t pc, end;
	struct cfa_state state;
	struct cfa_state remembered[REMEMBERED_MAX];
	unsigned n_remembered;
	bool stop;
};

static struct cfa_register *register_of(struct run *r, uint64_t reg)
{
	return reg == REG_RBP ? &r->state.rbp : reg == REG_RIP ? &r->state.ra : NULL;
}

static void set(struct run *r, uint64_t reg, struct cfa_register to)
{
	struct cfa_register *x = register_of(r, reg);

	if (x)
		*x = to;
}

static void set_offset(struct run *r, uint64_t reg, int64_t factored)
{
	struct cfa_register to = { .where = CFA_OFFSET };

	if (__builtin_mul_overflow(factored, r->code->data_factor, &to.value))
		r->c.bad = true;
	set(r, reg, to);
}

static void set_expression(struct run *r)
{
	uint64_t reg = dw_uleb(&r->c), len = dw_uleb(&r->c);
	const uint8_t *bytes = dw_skip(&r->c, len);

	if (bytes)
		set(r, reg, (struct cfa_register){ .where = CFA_EXPRESSION, .bytes = bytes, .len = (size_t)len });
}

static void restore(struct run *r, uint64_t reg)
{
	struct cfa_register *x = register_of(r, reg);

	if (x && r->initial)
		*x = reg == REG_RBP ? r->initial->rbp : r->initial->ra;
}

static void define(struct run *r, uint64_t reg, int64_t offset)
{
	r->state.reg = reg;
	r->state.offset = offset;
	r->state.bytes = NULL;
	r->state.defined = true;
}

static int64_t factored(struct run *r)
{
	int64_t v = 0;

	if (__builtin_mul_overflow(dw_sleb(&r->c), r->code->data_factor, &v))
		r->c.bad = true;
	return v;
}

static int64_t unsigned_offset(struct run *r)
{
	uint64_t v = dw_uleb(&r->c);

	if (v > INT64_MAX)
		r->c.bad = true;
	return (int64_t)v;
}

static void emit(struct run *r)
{
	if (r->sink && !r->sink->row(r->sink->context, r->pc, &r->state))
		r->stop = true;
}

static void go_to(struct run *r, uint64_t to)
{
	if (r->c.bad || to == r->pc)
		return;
	if (to < r->pc) { // the rows are in order of address
		r->c.bad = true;
		return;
	}
	emit(r);
	if (to >= r->end)
		r->stop = true;
	else
		r->pc = to;
}

static void advance(struct run *r, uint64_t delta)
{
	uint64_t to;

	if (__builtin_mul_overflow(delta, r->code->code_factor, &to) || __builtin_add_overflow(r->pc, to, &to))
		r->c.bad = true;
	else
		go_to(r, to);
}

static void set_location(struct run *r)
{
	uint64_t here = r->code->section_address + (uint64_t)(r->c.at - r->code->section);

	go_to(r, dw_pointer(&r->c, r->code->encoding, here, true));
}

static void remember(struct run *r)
{
	if (r->n_remembered == REMEMBERED_MAX)
		r->c.bad = true;
	else
		r->remembered[r->n_remembered++] = r->state;
}

static void recall(struct run *r)
{
	if (!r->n_remembered)
		r->c.bad = true;
	else
		r->state = r->remembered[--r->n_remembered];
}

static void set_cfa_expression(struct run *r)
{
	uint64_t len = dw_uleb(&r->c);
	const uint8_t *bytes = dw_skip(&r->c, len);

	if (!bytes)
		return;
	r->state.bytes = bytes;
	r->state.len = (size_t)len;
	r->state.defined = true;
}

static bool extended_register(struct run *r, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_offset_extended:
		reg = dw_uleb(&r->c);
		set_offset(r, reg, unsigned_offset(r));
		return true;
	case DW_CFA_offset_extended_sf:
		reg = dw_uleb(&r->c);
		set_offset(r, reg, dw_sleb(&r->c));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		reg = dw_uleb(&r->c);
		set_offset(r, reg, -unsigned_offset(r));
		return true;
	case DW_CFA_restore_extended:
		restore(r, dw_uleb(&r->c));
		return true;
	case DW_CFA_undefined:
		set(r, dw_uleb(&r->c), (struct cfa_register){ .where = CFA_UNDEFINED });
		return true;
	case DW_CFA_same_value:
		set(r, dw_uleb(&r->c), (struct cfa_register){ .where = CFA_UNSET });
		return true;
	case DW_CFA_register:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		reg = dw_uleb(&r->c);
		dw_uleb(&r->c);
		set(r, reg, (struct cfa_register){ .where = CFA_OTHER });
		return true;
	case DW_CFA_expression:
		set_expression(r);
		return true;
	case DW_CFA_val_expression:
		reg = dw_uleb(&r->c);
		dw_skip(&r->c, dw_uleb(&r->c));
		set(r, reg, (struct cfa_register){ .where = CFA_OTHER });
		return true;
	default:
		return false;
	}
}

static bool frame_address(struct run *r, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = dw_uleb(&r->c);
		define(r, reg, unsigned_offset(r));
		return true;
	case DW_CFA_def_cfa_sf:
		reg = dw_uleb(&r->c);
		define(r, reg, factored(r));
		return true;
	case DW_CFA_def_cfa_register:
		define(r, dw_uleb(&r->c), r->state.offset);
		return true;
	case DW_CFA_def_cfa_offset:
		r->state.offset = unsigned_offset(r);
		return true;
	case DW_CFA_def_cfa_offset_sf:
		r->state.offset = factored(r);
		return true;
	case DW_CFA_def_cfa_expression:
		set_cfa_expression(r);
		return true;
	default:
		return false;
	}
}

static void extended(struct run *r, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
		break;
	case DW_CFA_set_loc:
		set_location(r);
		break;
	case DW_CFA_advance_loc1:
		advance(r, dw_take(&r->c, 1));
		break;
	case DW_CFA_advance_loc2:
		advance(r, dw_take(&r->c, 2));
		break;
	case DW_CFA_advance_loc4:
		advance(r, dw_take(&r->c, 4));
		break;
	case DW_CFA_MIPS_advance_loc8:
		advance(r, dw_take(&r->c, 8));
		break;
	case DW_CFA_remember_state:
		remember(r);
		break;
	case DW_CFA_restore_state:
		recall(r);
		break;
	case DW_CFA_GNU_args_size:
		dw_uleb(&r->c);
		break;
	default:
		if (!frame_address(r, op) && !extended_register(r, op))
			r->c.bad = true;
	}
}

static void step(struct run *r)
{
	uint8_t op = dw_byte(&r->c), low = op & 0x3f;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		advance(r, low);
		break;
	case DW_CFA_offset:
		set_offset(r, low, unsigned_offset(r));
		break;
	case DW_CFA_restore:
		restore(r, low);
		break;
	default:
		extended(r, op);
	}
}

static void begin(struct run *r, const struct cfa_code *code, uint64_t start, uint64_t end, const struct cfa_state *initial,
		  const struct cfa_sink *sink)
{
	r->code = code;
	r->initial = initial;
	r->sink = sink;
	r->c = dw_cursor_at(code->from, code->end);
	r->pc = start;
	r->end = end;
	r->state = initial ? *initial : (struct cfa_state){ .defined = false };
	r->n_remembered = 0;
	r->stop = false;
}

int cfa_program_run(const struct cfa_code *code, uint64_t start, uint64_t end, const struct cfa_state *initial,
		    const struct cfa_sink *sink, struct budget *budget, struct cfa_state *ret_last)
{
	struct run r; // `remembered` is most of it and filled only as far as it is used

	begin(&r, code, start, end, initial, sink);
	while (dw_left(&r.c) && !r.stop) {
		const uint8_t *before = r.c.at;

		step(&r);
		if (!budget_spend(budget, (uint32_t)(r.c.at - before) + 1))
			return -EFBIG;
	}
	if (r.c.bad) {
		r.state = (struct cfa_state){ .defined = false };
		emit(&r);
		return -EBADMSG;
	}
	if (!r.stop)
		emit(&r);
	if (ret_last)
		*ret_last = r.state;
	return 0;
}
