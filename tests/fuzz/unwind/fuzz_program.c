// SPDX-License-Identifier: Apache-2.0
// Call frame instructions of anybody's making, as those of a CIE and then as those of a function: rows come in order and within
// the function. The input: code factor, data factor, encoding, length of the CIE's part, instructions.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "unwind/cfa_program.h"

#define START 0x1000u
#define END   0x3000u

struct seen {
	uint64_t last;
	unsigned rows;
};

static bool take_row(void *context, uint64_t pc, const struct cfa_state *state)
{
	struct seen *seen = context;
	struct unwind_rule rule;
	bool known = cfa_state_rule(state, &rule);

	// the first is where the function starts, and nothing is said twice but where a program breaks off
	if (pc < START || pc >= END || pc < seen->last || known == (rule.cfa == UNWIND_CFA_NONE))
		abort();
	seen->last = pc;
	return seen->rows++ < 100000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct budget budget = budget_of(5000000000);
	struct cfa_state initial = { .defined = false };
	struct seen seen = { 0 };
	struct cfa_sink sink = { &seen, take_row };
	struct cfa_code code;
	size_t cie;

	if (len < 4)
		return 0;
	cie = data[3] < len - 4 ? data[3] : len - 4;
	code = (struct cfa_code){ data + 4, data + 4 + cie, data[0], (int8_t)data[1], data[2], data, 0x2000 };
	if (cfa_program_run(&code, 0, 1, NULL, NULL, &budget, &initial) == -EFBIG)
		abort();
	code.from = code.end;
	code.end = data + len;
	if (cfa_program_run(&code, START, END, &initial, &sink, &budget, NULL) == -EFBIG || !seen.rows)
		abort();
	return 0;
}
