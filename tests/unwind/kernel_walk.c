// SPDX-License-Identifier: Apache-2.0
#include "kernel_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/unwind_tables.h"
#include "bpf/unwind_user.h"

#define MAPS_MAX 64

struct kernel_walk {
	const struct walker *process;
	struct unwind_store *store;
	struct unwind_ids *ids;
	struct unwind_tables *tables;
	struct unwind_rule *rules;
	struct unwind_mapping maps[MAPS_MAX];
	unsigned n;
	uint32_t list; // place of the mappings, 0 = changed
};

static struct kernel_walk *current;

static u32 *words(u32 place)
{
	return unwind_store_at(current->store, place & ~(UNWIND_ARENA_WORDS - 1));
}

static long read_process(void *out, u32 size, u64 address)
{
	return walker_read(current->process, address, out, size) ? 0 : -1;
}

struct kernel_walk *kernel_walk_new(const struct walker *w)
{
	struct kernel_walk *k = calloc(1, sizeof(*k));

	if (!k)
		exit(2);
	k->process = w;
	k->rules = calloc(UNWIND_RULES, sizeof(*k->rules));
	k->store = unwind_store_new(-1, 64 << 20);
	k->ids = unwind_ids_new(k->rules);
	k->tables = unwind_tables_new(k->store, k->ids);
	current = k;
	unwind_user.words = words;
	unwind_user.rules = k->rules;
	unwind_user.read = read_process;
	return k;
}

void kernel_walk_free(struct kernel_walk *k)
{
	unwind_tables_free(k->tables);
	unwind_ids_free(k->ids);
	unwind_store_free(k->store);
	free(k->rules);
	free(k);
}

void kernel_walk_map(struct kernel_walk *k, uint64_t start, uint64_t end, uint64_t address, const struct unwind_table *table)
{
	struct unwind_mapping *m = &k->maps[k->n];
	struct unwind_loaded *loaded;
	char identity[32];

	if (start >> 47) // the vsyscall page, which no list of the agent's has
		return;
	if (k->n == MAPS_MAX)
		exit(2);
	m->start = start;
	m->pages = (u32)((end - start) >> 12);
	if (table) {
		snprintf(identity, sizeof(identity), "%u", k->n);
		if (unwind_tables_add(k->tables, identity, table, &loaded))
			exit(2);
		m->first = (u32)((address - table->base) >> 12);
		m->index = loaded->index;
		m->n_index = loaded->n_index;
	}
	k->n++;
	k->list = 0;
}

void kernel_walk_walk(struct kernel_walk *k, struct registers at, struct walk *ret)
{
	struct unwind_walk w = { .ip = at.rip, .sp = at.rsp, .bp = at.rbp, .n_list = k->n, .exact = 1 };

	if (!k->list) {
		if (unwind_store_take(k->store, k->n * (sizeof(k->maps[0]) / 4), &k->list))
			exit(2);
		memcpy(unwind_store_at(k->store, k->list), k->maps, k->n * sizeof(k->maps[0]));
	}
	w.list = k->list;
	ret->n = 0;
	while (ret->n < WALK_MAX && unwind_frame(&w) == UNWIND_ON)
		ret->address[ret->n++] = w.ip;
	ret->last = w.ip;
	ret->end = w.broken == UNWIND_WHOLE && ret->n < WALK_MAX ? WALK_END : WALK_NO_RULE;
}
