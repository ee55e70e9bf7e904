// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/spool_internal.h"

const char *spool_intern(struct spool *s, const char *node)
{
	struct node_name *n;

	HASH_FIND_STR(s->nodes, node, n);
	if (n)
		return n->name;
	n = calloc(1, sizeof(*n));
	if (!n)
		return s->node;
	memcpy(n->name, node, strnlen(node, BATCH_NODE_MAX));
	HASH_ADD_STR(s->nodes, name, n);
	if (n->hh.tbl)
		return n->name;
	free(n);
	return s->node;
}

struct entry *spool_find(struct spool *s, const uint8_t instance[16], uint64_t sequence)
{
	struct spool_key key = { .sequence = sequence };
	struct entry *entry;

	memcpy(key.instance, instance, sizeof(key.instance));
	HASH_FIND(hh, s->by_key, &key, sizeof(key), entry);
	return entry;
}

// What an entry adds to the numbers of the spool.
static void account(struct spool *s, const struct entry *entry, int sign)
{
	uint64_t one = (uint64_t)sign;

	s->n_entries += (unsigned)sign;
	if (entry->kind == BATCH_GAP)
		s->n_gaps += (unsigned)sign;
	if (entry->disk) {
		s->stats.files += one;
		s->stats.bytes += one * entry->disk;
	}
	if (entry->state != ENTRY_DURABLE) {
		s->n_pending += (unsigned)sign;
		s->stats.waiting += one;
		s->stats.waiting_bytes += entry->data ? one * entry->size : 0;
	} else if (!entry->sent) {
		s->stats.unsent += one;
	}
}

int spool_insert(struct spool *s, struct entry *entry)
{
	if (spool_find(s, entry->key.instance, entry->key.sequence))
		return -EEXIST;
	HASH_ADD(hh, s->by_key, key, sizeof(entry->key), entry);
	if (!entry->hh.tbl)
		return -ENOMEM;
	DL_APPEND(s->list, entry);
	account(s, entry, 1);
	return 0;
}

static void queue_removal(struct spool *s, const struct entry *entry)
{
	struct removal *r = malloc(sizeof(*r));

	// Without memory the file stays and is sent again by the next start: a duplicate, which the collector drops.
	if (!r)
		return;
	spool_name_format(r->name, entry->order, entry->key.instance, entry->key.sequence);
	r->next = s->removals;
	s->removals = r;
	pthread_cond_signal(&s->work);
}

void spool_remove(struct spool *s, struct entry *entry)
{
	account(s, entry, -1);
	if (entry->disk || entry->emptied)
		queue_removal(s, entry);
	HASH_DEL(s->by_key, entry);
	DL_DELETE(s->list, entry);
	free(entry->data);
	free(entry);
}

static uint64_t min_time(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static void join_gap(struct spool *s, struct entry *entry)
{
	struct entry *before = entry->gap_first > 1 ? spool_find(s, entry->key.instance, entry->gap_first - 1) : NULL;

	// A gap that is being written stays by itself.
	if (!before || before->kind != BATCH_GAP || before->state == ENTRY_WRITING)
		return;
	entry->gap_first = before->gap_first;
	entry->gap_bytes += before->gap_bytes;
	entry->start = min_time(entry->start, before->start);
	if (before->end > entry->end)
		entry->end = before->end;
	spool_remove(s, before);
}

void spool_drop(struct spool *s, struct entry *entry, enum drop_cause cause)
{
	uint64_t bytes = entry->data ? entry->size : entry->disk;

	account(s, entry, -1);
	if (entry->kind != BATCH_GAP) {
		entry->gap_first = entry->key.sequence;
		entry->gap_bytes = bytes;
		s->stats.dropped_full += cause == DROP_FULL;
		s->stats.dropped_waiting += cause == DROP_WAITING;
	}
	s->stats.dropped_damaged += cause == DROP_DAMAGED;
	free(entry->data);
	entry->data = NULL;
	entry->size = 0;
	entry->kind = BATCH_GAP;
	entry->state = ENTRY_WAITING;
	entry->stale += entry->sent && entry->stale < UINT8_MAX;
	entry->sent = false;
	account(s, entry, 1);
	join_gap(s, entry);
	pthread_cond_signal(&s->work);
	spool_signal(s);
}

struct entry *spool_victim(struct spool *s, enum entry_state state)
{
	struct entry *entry, *sent = NULL;

	DL_FOREACH(s->list, entry) {
		if (entry->state != state || entry->kind == BATCH_GAP)
			continue;
		if (!entry->sent)
			return entry;
		if (!sent)
			sent = entry;
	}
	return sent;
}

// Gaps that do not join (of many starts, between what was acknowledged) are bounded too.
static void enforce_gaps(struct spool *s)
{
	struct entry *entry, *next;

	DL_FOREACH_SAFE(s->list, entry, next) {
		if (s->n_gaps <= SPOOL_GAPS_MAX)
			return;
		if (entry->kind == BATCH_GAP && entry->state != ENTRY_WRITING)
			spool_remove(s, entry);
	}
}

void spool_enforce_count(struct spool *s)
{
	while (s->n_entries - s->n_gaps > SPOOL_ENTRIES_MAX) {
		struct entry *victim = spool_victim(s, ENTRY_DURABLE);

		if (!victim)
			break;
		spool_drop(s, victim, DROP_FULL);
	}
	if (s->n_gaps > SPOOL_GAPS_MAX)
		enforce_gaps(s);
}

void spool_signal(struct spool *s)
{
	uint64_t n;

	if (s->stats.unsent)
		eventfd_write(s->event, 1);
	else
		eventfd_read(s->event, &n);
}
