// SPDX-License-Identifier: Apache-2.0
#include "agent/unwind_tables.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define PAGE_ROWS (1u << UNWIND_PAGE_BITS)
#define PIECE_WORDS 16384 // rows are taken in pieces of so many or a page's

struct piece {
	uint32_t place, words;
};

struct entry {
	struct unwind_loaded loaded; // first: what callers hold
	struct piece *pieces;
	unsigned n_pieces;
	uint16_t *ids;
	unsigned n_ids;
	UT_hash_handle hh;
	char identity[];
};

struct unwind_tables {
	struct unwind_store *store;
	struct unwind_ids *ids;
	struct entry *entries;
};

struct unwind_tables *unwind_tables_new(struct unwind_store *store, struct unwind_ids *ids)
{
	struct unwind_tables *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->store = store;
	t->ids = ids;
	return t;
}

static void entry_free(struct unwind_tables *t, struct entry *e)
{
	for (unsigned i = 0; i < e->n_pieces; i++)
		unwind_store_give(t->store, e->pieces[i].place, e->pieces[i].words);
	for (unsigned i = 0; i < e->n_ids; i++)
		unwind_ids_give(t->ids, e->ids[i]);
	free(e->pieces);
	free(e->ids);
	free(e);
}

void unwind_tables_free(struct unwind_tables *t)
{
	struct entry *e, *next;

	if (!t)
		return;
	HASH_ITER(hh, t->entries, e, next) {
		HASH_DEL(t->entries, e);
		entry_free(t, e);
	}
	free(t);
}

struct unwind_loaded *unwind_tables_find(const struct unwind_tables *t, const char *identity)
{
	struct entry *e;

	HASH_FIND_STR(t->entries, identity, e);
	return e ? &e->loaded : NULL;
}

static int take_piece(struct unwind_tables *t, struct entry *e, uint32_t words, uint32_t *ret_place)
{
	struct piece *pieces = reallocarray(e->pieces, e->n_pieces + 1, sizeof(*pieces));
	int err;

	if (!pieces)
		return -ENOMEM;
	e->pieces = pieces;
	err = unwind_store_take(t->store, words, ret_place);
	if (!err)
		e->pieces[e->n_pieces++] = (struct piece){ *ret_place, words };
	return err;
}

static int take_ids(struct unwind_tables *t, struct entry *e, const struct unwind_table *table)
{
	e->ids = calloc(table->n_rules ? table->n_rules : 1, sizeof(*e->ids));
	if (!e->ids)
		return -ENOMEM;
	for (; e->n_ids < table->n_rules; e->n_ids++)
		e->ids[e->n_ids] = unwind_ids_take(t->ids, &table->rules[e->n_ids]);
	return 0;
}

// Rows of a page: those of the table that begin in it, and what holds at its start when none begins there.
struct page {
	unsigned first, n; // of the table's rows
	bool carried;
};

static struct page page_at(const struct unwind_table *table, unsigned page, unsigned first)
{
	struct page p = { .first = first };

	while (first + p.n < table->n_rows && table->rows[first + p.n].pc >> UNWIND_PAGE_BITS == page)
		p.n++;
	p.carried = !p.n || (table->rows[first].pc & (PAGE_ROWS - 1));
	return p;
}

static void write_page(const struct entry *e, const struct unwind_table *table, const struct page *p, uint32_t *out)
{
	const struct unwind_row *rows = table->rows;
	unsigned rule = p->first ? rows[p->first - 1].rule : table->n_rules;

	if (p->carried)
		*out++ = rule < table->n_rules ? e->ids[rule] : 0;
	for (unsigned i = p->first; i < p->first + p->n; i++)
		*out++ = rows[i].pc << 16 | (rows[i].rule < table->n_rules ? e->ids[rows[i].rule] : 0);
}

// Pages from `page` on whose rows fill one piece.
static int write_piece(struct unwind_tables *t, struct entry *e, const struct unwind_table *table, unsigned *page,
		       unsigned *row)
{
	unsigned end = *page, at = *row;
	uint32_t words = 0, place, *index;
	int err;

	for (; end < e->loaded.n_index && (!words || words < PIECE_WORDS); end++) {
		struct page p = page_at(table, end, at);

		if (words && words + p.n + p.carried > PAGE_ROWS)
			break;
		words += p.n + p.carried;
		at += p.n;
	}
	err = take_piece(t, e, words, &place);
	if (err)
		return err;
	index = unwind_store_at(t->store, e->loaded.index);
	for (; *page < end; ++*page) {
		struct page p = page_at(table, *page, *row);

		write_page(e, table, &p, unwind_store_at(t->store, place));
		index[2 * *page] = place;
		index[2 * *page + 1] = p.n + p.carried;
		place += p.n + p.carried;
		*row += p.n;
	}
	return 0;
}

static int write_table(struct unwind_tables *t, struct entry *e, const struct unwind_table *table)
{
	unsigned page = 0, row = 0;
	uint32_t n_index;
	int err;

	if (!table->n_rows)
		return 0;
	n_index = (table->rows[table->n_rows - 1].pc >> UNWIND_PAGE_BITS) + 1;
	err = take_ids(t, e, table);
	if (!err)
		err = take_piece(t, e, 2 * n_index, &e->loaded.index);
	if (err)
		return err;
	e->loaded.n_index = n_index;
	while (page < n_index && !err)
		err = write_piece(t, e, table, &page, &row);
	return err;
}

int unwind_tables_add(struct unwind_tables *t, const char *identity, const struct unwind_table *table,
		      struct unwind_loaded **ret)
{
	size_t len = strlen(identity);
	struct entry *e = calloc(1, sizeof(*e) + len + 1);
	int err = 0;

	if (!e)
		return -ENOMEM;
	memcpy(e->identity, identity, len);
	if (table) {
		e->loaded.base = table->base;
		err = write_table(t, e, table);
	}
	if (!err) {
		HASH_ADD_STR(t->entries, identity, e);
		err = e->hh.tbl ? 0 : -ENOMEM;
	}
	if (err) {
		entry_free(t, e);
		return err;
	}
	*ret = &e->loaded;
	return 0;
}

void unwind_tables_drop(struct unwind_tables *t, struct unwind_loaded *l)
{
	struct entry *e = (struct entry *)l;

	HASH_DEL(t->entries, e);
	entry_free(t, e);
}

struct unwind_loaded *unwind_tables_oldest(const struct unwind_tables *t, uint64_t before_ns, bool with_table)
{
	struct unwind_loaded *oldest = NULL;

	for (struct entry *e = t->entries; e; e = e->hh.next)
		if ((e->loaded.index || !with_table) && e->loaded.used_ns < before_ns &&
		    (!oldest || e->loaded.used_ns < oldest->used_ns))
			oldest = &e->loaded;
	return oldest;
}

const char *unwind_tables_identity(const struct unwind_loaded *l)
{
	return ((const struct entry *)l)->identity;
}

void unwind_tables_each(struct unwind_tables *t, void (*fn)(struct unwind_loaded *l, void *context), void *context)
{
	struct entry *e, *next;

	HASH_ITER(hh, t->entries, e, next)
		fn(&e->loaded, context);
}

unsigned unwind_tables_count(const struct unwind_tables *t)
{
	return HASH_COUNT(t->entries);
}
