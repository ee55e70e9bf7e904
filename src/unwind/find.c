// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "unwind/unwind.h"

const struct unwind_rule *unwind_find(const struct unwind_table *t, uint64_t address)
{
	static const struct unwind_rule none;
	unsigned low = 0, high = t->n_rows;
	uint64_t pc = address - t->base;

	if (address < t->base)
		return &none;
	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (t->rows[middle].pc <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &t->rules[t->rows[low - 1].rule] : &none;
}

void unwind_table_free(struct unwind_table *t)
{
	if (!t)
		return;
	free(t->rows);
	free(t->rules);
	free(t);
}
