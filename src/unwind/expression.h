// SPDX-License-Identifier: Apache-2.0
// DWARF expressions of call frame information, as far as they are one of the shapes that compilers, linkers and hand-written
// assembly really use: register plus constant, with at most one load, plus constant; and the stub of a lazy PLT.
#ifndef BLKPROF_UNWIND_EXPRESSION_H
#define BLKPROF_UNWIND_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum expression_base {
	EXPRESSION_CONSTANT,
	EXPRESSION_RSP,
	EXPRESSION_RBP,
	EXPRESSION_CFA,
	EXPRESSION_PLT, // rsp + 8 + ((rip & 15) >= offset ? 8 : 0)
};

// base + offset, or *(base + offset) + add
struct expression {
	enum expression_base base;
	bool deref;
	int64_t offset, add;
};

// False when it has another shape. with_cfa: the CFA lies on the stack at first (rules of registers).
bool expression_read(const uint8_t *bytes, size_t len, bool with_cfa, struct expression *ret);

#endif
