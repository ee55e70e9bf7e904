// SPDX-License-Identifier: Apache-2.0
// Each call frame instruction, and each shape of a rule.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cfi_image.h"

#define ADVANCE(n) (DW_CFA_advance_loc | (n))

static void follows_pushes_and_pops(void **state)
{
	assert_program(BYTES(ADVANCE(1), DW_CFA_def_cfa_offset, 16, DW_CFA_offset | RBP, 2, ADVANCE(3),
			     DW_CFA_def_cfa_register, RBP, ADVANCE(0x20), DW_CFA_def_cfa, RSP, 8, DW_CFA_restore | RBP),
		       "0 rsp+8; 1 rsp+16 rbp=*(cfa-16); 4 rbp+16 rbp=*(cfa-16); 24 rsp+8; 100 none");
}

static void advances_in_every_form(void **state)
{
	assert_program(BYTES(ADVANCE(0), ADVANCE(2), DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc1, 0x10,
			     DW_CFA_def_cfa_offset, 24, DW_CFA_advance_loc2, 0x20, 0, DW_CFA_def_cfa_offset, 32,
			     DW_CFA_advance_loc4, 0x30, 0, 0, 0, DW_CFA_def_cfa_offset, 40),
		       "0 rsp+8; 2 rsp+16; 12 rsp+24; 32 rsp+32; 62 rsp+40; 100 none");
	assert_program(BYTES(DW_CFA_set_loc, (TEXT + 0x40) & 0xff, (TEXT + 0x40) >> 8 & 0xff, (TEXT + 0x40) >> 16, 0, 0, 0, 0, 0,
			     DW_CFA_def_cfa_offset, 16),
		       "0 rsp+8; 40 rsp+16; 100 none");
}

static void stops_at_the_end_of_its_function(void **state)
{
	assert_program(BYTES(DW_CFA_advance_loc2, 0xff, 0, DW_CFA_def_cfa_offset, 16, ADVANCE(1), DW_CFA_def_cfa_offset, 24),
		       "0 rsp+8; ff rsp+16; 100 none");
	assert_program(BYTES(DW_CFA_advance_loc4, 0xff, 0xff, 0xff, 0xff, DW_CFA_def_cfa_offset, 16), "0 rsp+8; 100 none");
	assert_program(BYTES(DW_CFA_MIPS_advance_loc8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "");
}

static void remembers(void **state)
{
	assert_program(BYTES(ADVANCE(1), DW_CFA_def_cfa_offset, 16, DW_CFA_offset | RBP, 2, DW_CFA_remember_state, ADVANCE(1),
			     DW_CFA_def_cfa_offset, 32, DW_CFA_remember_state, ADVANCE(1), DW_CFA_def_cfa, RSP, 8,
			     DW_CFA_restore | RBP, ADVANCE(1), DW_CFA_restore_state, ADVANCE(1), DW_CFA_restore_state),
		       "0 rsp+8; 1 rsp+16 rbp=*(cfa-16); 2 rsp+32 rbp=*(cfa-16); 3 rsp+8; 4 rsp+32 rbp=*(cfa-16); "
		       "5 rsp+16 rbp=*(cfa-16); 100 none");
}

static void knows_the_less_usual_instructions(void **state)
{
	assert_program(BYTES(DW_CFA_offset_extended, RBP, 2), "0 rsp+8 rbp=*(cfa-16); 100 none");
	assert_program(BYTES(DW_CFA_offset_extended_sf, RBP, 0x7e), "0 rsp+8 rbp=*(cfa+16); 100 none");
	assert_program(BYTES(DW_CFA_GNU_negative_offset_extended, RBP, 2), "0 rsp+8 rbp=*(cfa+16); 100 none");
	assert_program(BYTES(DW_CFA_offset | RBP, 2, ADVANCE(1), DW_CFA_restore_extended, RBP),
		       "0 rsp+8 rbp=*(cfa-16); 1 rsp+8; 100 none");
	assert_program(BYTES(DW_CFA_offset | RBP, 2, ADVANCE(1), DW_CFA_same_value, RBP),
		       "0 rsp+8 rbp=*(cfa-16); 1 rsp+8; 100 none");
	assert_program(BYTES(DW_CFA_def_cfa_sf, RBP, 0x7e), "0 rbp+16; 100 none");
	assert_program(BYTES(DW_CFA_def_cfa_offset_sf, 0x7d), "0 rsp+24; 100 none");
	assert_program(BYTES(DW_CFA_GNU_args_size, 0x80, 1, DW_CFA_nop, DW_CFA_def_cfa_offset, 16), "0 rsp+16; 100 none");
	assert_program(BYTES(DW_CFA_offset | RBX, 3, DW_CFA_undefined, RAX, DW_CFA_register, RBX, RAX), "0 rsp+8; 100 none");
}

static void says_when_rbp_is_lost(void **state)
{
	assert_program(BYTES(DW_CFA_undefined, RBP), "0 rsp+8 rbp=?; 100 none");
	assert_program(BYTES(DW_CFA_register, RBP, RAX), "0 rsp+8 rbp=?; 100 none");
	assert_program(BYTES(DW_CFA_val_offset, RBP, 2), "0 rsp+8 rbp=?; 100 none");
	assert_program(BYTES(DW_CFA_val_offset_sf, RBP, 2), "0 rsp+8 rbp=?; 100 none");
	assert_program(BYTES(DW_CFA_val_expression, RBP, 2, DW_OP_breg7, 8), "0 rsp+8 rbp=?; 100 none");
	assert_program(BYTES(DW_CFA_expression, RBP, 2, DW_OP_breg3, 8), "0 rsp+8 rbp=?; 100 none");
	assert_program(BYTES(DW_CFA_expression, RBP, 3, DW_OP_breg6, 8, DW_OP_deref), "0 rsp+8 rbp=?; 100 none");
	// 4096 * -8 is the last that fits
	assert_program(BYTES(DW_CFA_offset | RBP, 0x80, 0x20, ADVANCE(1), DW_CFA_offset | RBP, 0x81, 0x20),
		       "0 rsp+8 rbp=*(cfa-32768); 1 rsp+8 rbp=?; 100 none");
}

static void knows_expressions_of_rbp(void **state)
{
	assert_program(BYTES(DW_CFA_expression, RBP, 2, DW_OP_breg6, 0), "0 rsp+8 rbp=*(rbp+0); 100 none");
	assert_program(BYTES(DW_CFA_expression, RBP, 2, DW_OP_lit8, DW_OP_minus), "0 rsp+8 rbp=*(cfa-8); 100 none");
	assert_program(BYTES(DW_CFA_def_cfa_offset, 64, DW_CFA_expression, RBP, 2, DW_OP_breg7, 48),
		       "0 rsp+64 rbp=*(cfa-16); 100 none");
}

// GCC's and clang's way of functions that align their stack, and what perlasm writes.
static void knows_expressions_of_the_cfa(void **state)
{
	assert_program(BYTES(DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref), "0 *(rbp-8)+0; 100 none");
	assert_program(BYTES(DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 40, DW_OP_deref, DW_OP_plus_uconst, 8),
		       "0 *(rsp+40)+8; 100 none");
	assert_program(BYTES(DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 40, DW_OP_deref, DW_OP_const1s, 0xf8, DW_OP_plus),
		       "0 *(rsp+40)-8; 100 none");
	assert_program(BYTES(DW_CFA_def_cfa_expression, 2, DW_OP_breg7, 24), "0 rsp+24; 100 none");
	assert_program(BYTES(DW_CFA_def_cfa_expression, 5, DW_OP_const2u, 0, 1, DW_OP_bregx, RBP), "");
	assert_program(BYTES(DW_CFA_def_cfa_expression, 7, DW_OP_const2u, 0, 1, DW_OP_bregx, RBP, 0, DW_OP_plus),
		       "0 rbp+256; 100 none");
	// back to a register and an offset
	assert_program(BYTES(DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref, ADVANCE(4), DW_CFA_def_cfa, RSP, 8),
		       "0 *(rbp-8)+0; 4 rsp+8; 100 none");
}

#define PLT(n)                                                                                                         \
	DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit0 + (n),       \
		DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus

static void knows_the_plt(void **state)
{
	assert_program(BYTES(DW_CFA_def_cfa_offset, 16, ADVANCE(6), DW_CFA_def_cfa_offset, 24, ADVANCE(10), PLT(11)),
		       "0 rsp+16; 6 rsp+24; 10 plt 11; 100 none");
	assert_program(BYTES(PLT(10)), "0 plt 10; 100 none");
	assert_program(BYTES(PLT(17)), "");
}

#define UCONTEXT(reg, offset) DW_CFA_expression, reg, 3, DW_OP_breg7, ((offset) & 0x7f) | 0x80, (offset) >> 7

static void knows_signal_frames(void **state)
{
	assert_program(BYTES(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0xa0, 1, DW_OP_deref, UCONTEXT(RBP, 120),
			     UCONTEXT(RIP, 168)),
		       "0 signal+0; 100 none");
	// a restorer that has the signal's number pushed
	assert_program(BYTES(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0xa8, 1, DW_OP_deref, UCONTEXT(RBP, 128),
			     UCONTEXT(RIP, 176)),
		       "0 signal+8; 100 none");
	// registers elsewhere than the kernel leaves them
	assert_program(BYTES(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0xa0, 1, DW_OP_deref, UCONTEXT(RBP, 128),
			     UCONTEXT(RIP, 168)),
		       "");
}

static void knows_the_outermost_frame(void **state)
{
	assert_program(BYTES(DW_CFA_undefined, RIP), "0 end; 100 none");
	assert_program(BYTES(ADVANCE(0x20), DW_CFA_undefined, RIP, ADVANCE(0x10), DW_CFA_restore_extended, RIP),
		       "0 rsp+8; 20 end; 30 rsp+8; 100 none");
}

static void gives_up_where_it_cannot_follow(void **state)
{
	assert_program(BYTES(ADVANCE(4), DW_CFA_def_cfa_register, R10, ADVANCE(4), DW_CFA_def_cfa, RBP, 16),
		       "0 rsp+8; 4 none; 8 rbp+16; 100 none");
	assert_program(BYTES(ADVANCE(4), DW_CFA_register, RIP, RAX), "0 rsp+8; 4 none");
	assert_program(BYTES(ADVANCE(4), DW_CFA_offset_extended, RIP, 2), "0 rsp+8; 4 none");
	assert_program(BYTES(DW_CFA_same_value, RIP), "");
	assert_program(BYTES(DW_CFA_def_cfa_expression, 0), "");
	assert_program(BYTES(DW_CFA_def_cfa_expression, 1, DW_OP_plus), "");
	assert_program(BYTES(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 8, DW_OP_deref, DW_OP_deref), "");
	assert_program(BYTES(DW_CFA_def_cfa_expression, 9, DW_OP_lit0, DW_OP_lit0, DW_OP_lit0, DW_OP_lit0, DW_OP_lit0,
			     DW_OP_lit0, DW_OP_lit0, DW_OP_lit0, DW_OP_lit0),
		       "");
	assert_program(BYTES(DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 0, DW_OP_plus_uconst, 0xff, 0xff, 0x80), "");
	assert_program(BYTES(DW_CFA_def_cfa_offset, 0x80, 0x80, 0x80, 0x80, 0x10), "");
}

// From a broken instruction on nothing is known; what was before it holds.
static void stops_at_broken_instructions(void **state)
{
	assert_program(BYTES(ADVANCE(4), DW_CFA_def_cfa_offset, 16, ADVANCE(4), 0x3f, ADVANCE(4), DW_CFA_def_cfa_offset, 8),
		       "0 rsp+8; 4 rsp+16; 8 none");
	assert_program(BYTES(ADVANCE(4), DW_CFA_restore_state), "0 rsp+8; 4 none");
	assert_program(BYTES(ADVANCE(4), DW_CFA_def_cfa_offset, 0xff, 0xff), "0 rsp+8; 4 none");
	assert_program(BYTES(ADVANCE(4), DW_CFA_def_cfa_expression, 9, DW_OP_breg7), "0 rsp+8; 4 none");
	assert_program(BYTES(ADVANCE(4), DW_CFA_advance_loc4, 1, 2), "0 rsp+8; 4 none");
	assert_program(BYTES(ADVANCE(4), DW_CFA_set_loc, 0, 0, 0, 0, 0, 0, 0, 0), "0 rsp+8; 4 none");
	assert_program(BYTES(ADVANCE(4), DW_CFA_def_cfa_offset, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
		       "0 rsp+8; 4 none");
}

static void bounds_what_it_remembers(void **state)
{
	uint8_t code[40] = { 0 };

	memset(code, DW_CFA_remember_state, 32);
	assert_program(code, 34, "0 rsp+8; 100 none");
	memset(code, DW_CFA_remember_state, 33);
	assert_program(code, 34, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_pushes_and_pops),
		cmocka_unit_test(advances_in_every_form),
		cmocka_unit_test(stops_at_the_end_of_its_function),
		cmocka_unit_test(remembers),
		cmocka_unit_test(knows_the_less_usual_instructions),
		cmocka_unit_test(says_when_rbp_is_lost),
		cmocka_unit_test(knows_expressions_of_rbp),
		cmocka_unit_test(knows_expressions_of_the_cfa),
		cmocka_unit_test(knows_the_plt),
		cmocka_unit_test(knows_signal_frames),
		cmocka_unit_test(knows_the_outermost_frame),
		cmocka_unit_test(gives_up_where_it_cannot_follow),
		cmocka_unit_test(stops_at_broken_instructions),
		cmocka_unit_test(bounds_what_it_remembers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
