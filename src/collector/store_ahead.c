// SPDX-License-Identifier: Apache-2.0
#include "collector/store_ahead.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_internal.h"

// Of all profiles of one batch while they are read.
#define BATCH_MEMORY ((size_t)256 << 20)
#define REUSE 16
// What profiles may become when decompressed: one, and all of a batch.
#define PROFILE_INFLATED_MAX (8ull << 20)
#define BATCH_INFLATED_MAX (64ull << 20)

static int check_head(const struct batch *b, struct error *e)
{
	size_t len = b->node ? strlen(b->node) : 0;

	if (!len || len > BATCH_NODE_MAX)
		return error_set(e, -EBADMSG, "its node's name is empty or too long");
	if (!b->sequence || b->sequence > INT64_MAX - 1)
		return error_set(e, -EBADMSG, "its sequence number is out of range");
	if (b->start > INT64_MAX || b->end > INT64_MAX || b->end < b->start)
		return error_set(e, -EBADMSG, "its window ends before it starts");
	if (b->kind == BATCH_WINDOW && (b->end == b->start || b->end - b->start > WINDOW_MAX_NS))
		return error_set(e, -EBADMSG, "its window is empty or longer than a day");
	if (b->n_profiles > BATCH_PROFILES_MAX || b->n_labels > BATCH_LABELS_MAX)
		return error_set(e, -EBADMSG, "it has too many profiles or labels");
	if (b->kind == BATCH_GAP && (!b->gap_first || b->gap_first > b->sequence || b->gap_bytes > INT64_MAX))
		return error_set(e, -EBADMSG, "the batches that its gap names are out of range");
	return 0;
}

static int room(struct parsed_batch *p, unsigned n)
{
	struct parsed *more;

	if (n <= p->cap)
		return 0;
	more = realloc(p->parsed, n * sizeof(*more));
	if (!more)
		return -ENOMEM;
	for (unsigned i = 0; i < p->cap; i++)
		parsed_moved(&more[i]);
	memset(more + p->cap, 0, (n - p->cap) * sizeof(*more));
	p->parsed = more;
	p->cap = n;
	return 0;
}

// The memory of a batch as most are is kept for the next one.
static void forget(struct parsed_batch *p)
{
	for (unsigned i = 0; i < p->n; i++)
		if (i < REUSE)
			parsed_reuse(&p->parsed[i]);
		else
			parsed_free(&p->parsed[i]);
	p->n = 0;
}

static int parse(struct ahead *a, struct parsed_batch *to, const struct batch *b)
{
	size_t memory = BATCH_MEMORY;
	uint64_t left = BATCH_INFLATED_MAX;
	int err = check_head(b, &to->why);

	if (!err && room(to, b->n_profiles))
		err = error_set(&to->why, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < b->n_profiles && !err; i++) {
		struct parsed *p = &to->parsed[to->n++];

		err = parsed_read(p, a->secret, b->profiles[i].data, b->profiles[i].size,
				  left < PROFILE_INFLATED_MAX ? left : PROFILE_INFLATED_MAX, memory, &to->why);
		if (err)
			return error_prefix(&to->why, err, "profile of service %.60s", b->profiles[i].service);
		left -= p->inflated;
		memory -= p->memory < memory - 1 ? p->memory : memory - 1;
	}
	return err;
}

void ahead_init(struct ahead *a, const struct hash_secret *secret)
{
	memset(a, 0, sizeof(*a));
	a->secret = secret;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
}

void ahead_free(struct ahead *a)
{
	if (!a->secret)
		return;
	for (unsigned i = 0; i < AHEAD; i++) {
		for (unsigned k = 0; k < a->slot[i].cap; k++)
			parsed_free(&a->slot[i].parsed[k]);
		free(a->slot[i].parsed);
	}
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->changed);
}

static void *run(void *ahead)
{
	struct ahead *a = ahead;

	pthread_mutex_lock(&a->lock);
	while (!a->stop && a->claimed < a->n) {
		struct parsed_batch *p = &a->slot[a->claimed % AHEAD];
		unsigned i = a->claimed;

		if (a->claimed - a->released >= AHEAD) {
			pthread_cond_wait(&a->changed, &a->lock);
			continue;
		}
		a->claimed++;
		pthread_mutex_unlock(&a->lock);
		p->err = parse(a, p, a->batches[i]);
		pthread_mutex_lock(&a->lock);
		p->ready = true;
		pthread_cond_broadcast(&a->changed);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

void ahead_start(struct ahead *a, const struct batch *const *batches, unsigned n)
{
	a->batches = batches;
	a->n = n;
	a->claimed = a->released = 0;
	a->stop = false;
	a->workers = 0;
	while (a->workers < AHEAD_WORKERS && a->workers + 1 < n && !pthread_create(&a->worker[a->workers], NULL, run, a))
		a->workers++;
}

struct parsed_batch *ahead_next(struct ahead *a, unsigned i)
{
	struct parsed_batch *p = &a->slot[i % AHEAD];
	bool mine;

	pthread_mutex_lock(&a->lock);
	mine = a->claimed == i;
	if (mine)
		a->claimed++;
	while (!mine && !p->ready)
		pthread_cond_wait(&a->changed, &a->lock);
	pthread_mutex_unlock(&a->lock);
	if (mine)
		p->err = parse(a, p, a->batches[i]);
	return p;
}

void ahead_release(struct ahead *a, unsigned i)
{
	forget(&a->slot[i % AHEAD]);
	pthread_mutex_lock(&a->lock);
	a->slot[i % AHEAD].ready = false;
	a->released++;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

void ahead_stop(struct ahead *a)
{
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	while (a->workers)
		pthread_join(a->worker[--a->workers], NULL);
	for (unsigned i = 0; i < AHEAD; i++) {
		forget(&a->slot[i]);
		a->slot[i].ready = false;
	}
}
