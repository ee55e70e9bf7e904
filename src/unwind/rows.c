// SPDX-License-Identifier: Apache-2.0
#include "unwind/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#define RULES_MAX   UINT16_MAX // indices 0 to RULES_MAX - 1
#define FREE	    UINT16_MAX
#define INDEX_FIRST 1024

static const struct unwind_rule none;

static int no_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "no memory for an unwind table");
}

static size_t slot_of(const struct rows *r, const struct unwind_rule *rule)
{
	size_t at = hash_bytes(rule, sizeof(*rule), 0) & (r->index_size - 1);

	while (r->index[at] != FREE && memcmp(&r->table->rules[r->index[at]], rule, sizeof(*rule)))
		at = (at + 1) & (r->index_size - 1);
	return at;
}

static int grow_index(struct rows *r, size_t size, struct error *e)
{
	uint16_t *grown = malloc(size * sizeof(*grown));

	if (!grown)
		return no_memory(e);
	memset(grown, 0xff, size * sizeof(*grown));
	free(r->index);
	r->index = grown;
	r->index_size = size;
	for (unsigned i = 0; i < r->table->n_rules; i++)
		grown[slot_of(r, &r->table->rules[i])] = (uint16_t)i;
	return 0;
}

static int add_rule(struct rows *r, const struct unwind_rule *rule, uint16_t *ret, struct error *e)
{
	struct unwind_table *t = r->table;
	struct unwind_rule *grown;
	size_t slot = slot_of(r, rule);
	int err;

	if (r->index[slot] != FREE) {
		*ret = r->index[slot];
		return 0;
	}
	if (t->n_rules == RULES_MAX) {
		t->n_unsupported++;
		*ret = 0;
		return 0;
	}
	if (t->n_rules == r->rules_room) {
		grown = reallocarray(t->rules, r->rules_room * 2 + 64, sizeof(*grown));
		if (!grown)
			return no_memory(e);
		t->rules = grown;
		r->rules_room = r->rules_room * 2 + 64;
	}
	*ret = (uint16_t)t->n_rules;
	t->rules[t->n_rules++] = *rule;
	r->index[slot] = *ret;
	if (t->n_rules * 2 <= r->index_size)
		return 0;
	err = grow_index(r, r->index_size * 2, e);
	return err;
}

int unwind_rows_begin(struct rows *r, uint64_t base, unsigned limit, struct error *e)
{
	uint16_t index;
	int err;

	memset(r, 0, sizeof(*r));
	r->limit = limit;
	r->table = calloc(1, sizeof(*r->table));
	if (!r->table)
		return no_memory(e);
	r->table->base = base;
	err = grow_index(r, INDEX_FIRST, e);
	return err ? err : add_rule(r, &none, &index, e); // rule 0
}

static int push_row(struct rows *r, struct unwind_row row, struct error *e)
{
	struct unwind_table *t = r->table;
	struct unwind_row *grown;

	if (t->n_rows == r->limit)
		return error_set(e, -EFBIG, "the unwind table has more than %u rows", r->limit);
	if (t->n_rows == r->rows_room) {
		size_t room = r->rows_room + r->rows_room / 2 + 256;

		grown = reallocarray(t->rows, room, sizeof(*grown));
		if (!grown)
			return no_memory(e);
		t->rows = grown;
		r->rows_room = room;
	}
	t->rows[t->n_rows++] = row;
	return 0;
}

int unwind_rows_add(struct rows *r, uint32_t pc, const struct unwind_rule *rule, struct error *e)
{
	struct unwind_table *t = r->table;
	struct unwind_row *last = t->n_rows ? &t->rows[t->n_rows - 1] : NULL;
	uint16_t index;
	int err;

	if (last && !memcmp(&t->rules[last->rule], rule, sizeof(*rule)))
		return 0;
	err = add_rule(r, rule, &index, e);
	if (err)
		return err;
	if (last && last->pc == pc) { // replaced before it covered anything
		t->n_rows--;
		last = t->n_rows ? last - 1 : NULL;
	}
	if (last ? last->rule == index : index == 0)
		return 0;
	return push_row(r, (struct unwind_row){ .pc = pc, .rule = index }, e);
}

struct unwind_table *unwind_rows_end(struct rows *r)
{
	struct unwind_table *t = r->table;
	struct unwind_row *rows = reallocarray(t->rows, t->n_rows ? t->n_rows : 1, sizeof(*rows));
	struct unwind_rule *rules = reallocarray(t->rules, t->n_rules, sizeof(*rules));

	if (rows)
		t->rows = rows;
	if (rules)
		t->rules = rules;
	r->table = NULL;
	unwind_rows_free(r);
	return t;
}

void unwind_rows_free(struct rows *r)
{
	unwind_table_free(r->table);
	free(r->index);
	memset(r, 0, sizeof(*r));
}
