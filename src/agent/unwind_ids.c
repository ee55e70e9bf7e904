// SPDX-License-Identifier: Apache-2.0
#include "agent/unwind_ids.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct known_rule {
	struct unwind_rule rule;
	unsigned users;
	uint16_t id;
	UT_hash_handle hh;
};

struct unwind_ids {
	struct unwind_rule *rules;
	struct known_rule *by_rule;
	struct known_rule *by_id[UNWIND_RULES];
	unsigned next, unused; // the first id never given; rules without users
};

struct unwind_ids *unwind_ids_new(struct unwind_rule *rules)
{
	struct unwind_ids *ids = calloc(1, sizeof(*ids));

	if (!ids)
		return NULL;
	ids->rules = rules;
	ids->next = 1;
	return ids;
}

void unwind_ids_free(struct unwind_ids *ids)
{
	if (!ids)
		return;
	HASH_CLEAR(hh, ids->by_rule);
	for (unsigned i = 0; i < UNWIND_RULES; i++)
		free(ids->by_id[i]);
	free(ids);
}

static unsigned free_id(const struct unwind_ids *ids)
{
	if (ids->next < UNWIND_RULES)
		return ids->next;
	for (unsigned i = 1; i < UNWIND_RULES; i++)
		if (!ids->by_id[i])
			return i;
	return 0;
}

static struct known_rule *add(struct unwind_ids *ids, const struct unwind_rule *rule)
{
	unsigned id = HASH_COUNT(ids->by_rule) < UNWIND_RULES - 1 ? free_id(ids) : 0;
	struct known_rule *k = id ? calloc(1, sizeof(*k)) : NULL;

	if (!k)
		return NULL;
	k->rule = *rule;
	k->id = (uint16_t)id;
	HASH_ADD(hh, ids->by_rule, rule, sizeof(k->rule), k);
	if (!k->hh.tbl) {
		free(k);
		return NULL;
	}
	ids->by_id[id] = k;
	ids->rules[id] = *rule;
	ids->unused++;
	if (id == ids->next)
		ids->next++;
	return k;
}

uint16_t unwind_ids_take(struct unwind_ids *ids, const struct unwind_rule *rule)
{
	struct unwind_rule key = *rule;
	struct known_rule *k;

	if (key.cfa == UNWIND_CFA_NONE)
		return 0;
	memset(key.pad, 0, sizeof(key.pad));
	HASH_FIND(hh, ids->by_rule, &key, sizeof(key), k);
	if (!k)
		k = add(ids, &key);
	if (!k)
		return 0;
	ids->unused -= !k->users;
	k->users++;
	return k->id;
}

void unwind_ids_give(struct unwind_ids *ids, uint16_t id)
{
	struct known_rule *k = id < UNWIND_RULES ? ids->by_id[id] : NULL;

	if (!k || !k->users)
		return;
	k->users--;
	ids->unused += !k->users;
}

void unwind_ids_reclaim(struct unwind_ids *ids)
{
	for (unsigned i = 1; ids->unused && i < ids->next; i++) {
		struct known_rule *k = ids->by_id[i];

		if (!k || k->users)
			continue;
		HASH_DEL(ids->by_rule, k);
		ids->by_id[i] = NULL;
		ids->unused--;
		free(k);
	}
}

unsigned unwind_ids_count(const struct unwind_ids *ids)
{
	return HASH_COUNT(ids->by_rule);
}
