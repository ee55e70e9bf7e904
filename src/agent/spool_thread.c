// SPDX-License-Identifier: Apache-2.0
// The thread that waits for the disk, so that nobody else has to.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/spool_internal.h"

#define BLOCK 4096
#define RETRY_MS 500 // after the disk refused
#define ROOM_TRIES 8 // batches that are dropped for room at once: where that does not help, the others stay

static uint64_t on_disk(uint64_t size)
{
	return (SPOOL_HEADER + size + BLOCK - 1) / BLOCK * BLOCK;
}

static struct entry *first_waiting(struct spool *s)
{
	struct entry *entry;

	if (!s->n_pending)
		return NULL;
	DL_FOREACH(s->list, entry)
		if (entry->state == ENTRY_WAITING)
			return entry;
	return NULL;
}

static void set_disk(struct spool *s, struct entry *entry, uint64_t disk)
{
	s->stats.files += (uint64_t)((disk > 0) - (entry->disk > 0));
	s->stats.bytes += disk - entry->disk;
	entry->disk = disk;
}

// ---- removing

static void remove_files(struct spool *s)
{
	struct removal *all = s->removals, *next;

	s->removals = NULL;
	pthread_mutex_unlock(&s->lock);
	for (; all; all = next) {
		next = all->next;
		unlinkat(s->folder, all->name, 0);
		free(all);
	}
	pthread_mutex_lock(&s->lock);
}

// ---- writing

static int encode_gap(const struct entry *entry, struct buf *ret)
{
	struct batch b = {
		.kind = BATCH_GAP, .node = entry->node, .sequence = entry->key.sequence, .start = entry->start, .end = entry->end,
		.gap_first = entry->gap_first, .gap_bytes = entry->gap_bytes,
	};

	memcpy(b.instance, entry->key.instance, sizeof(b.instance));
	return batch_encode(&b, ret);
}

static void describe(const struct entry *entry, struct spool_file *f)
{
	memset(f, 0, sizeof(*f));
	memcpy(f->instance, entry->key.instance, sizeof(f->instance));
	f->sequence = entry->key.sequence;
	f->start = entry->start;
	f->end = entry->end;
	f->gap_first = entry->gap_first;
	f->gap_bytes = entry->gap_bytes;
	f->kind = entry->kind;
	f->size = entry->size;
	snprintf(f->node, sizeof(f->node), "%s", entry->node);
}

// Without the lock: an entry that is being written is nobody else's.
static int write_entry(struct spool *s, struct entry *entry, struct buf *gap)
{
	char name[SPOOL_NAME_MAX];
	struct spool_file f;
	int err = 0;

	if (entry->kind == BATCH_GAP) {
		err = encode_gap(entry, gap);
		entry->size = gap->len;
	}
	if (err)
		return err;
	describe(entry, &f);
	spool_name_format(name, entry->order, entry->key.instance, entry->key.sequence);
	return spool_file_write(s->folder, name, &f, entry->kind == BATCH_GAP ? gap->data : entry->data);
}

static void written(struct spool *s, struct entry *entry)
{
	s->n_pending--;
	s->stats.waiting--;
	s->stats.waiting_bytes -= entry->data ? entry->size : 0;
	s->stats.durable++;
	s->stats.unsent++;
	free(entry->data);
	entry->data = NULL;
	entry->state = ENTRY_DURABLE;
	entry->emptied = false;
	set_disk(s, entry, on_disk(entry->size));
	spool_signal(s);
}

// Without its bytes the file still tells the next start that there was a batch, should this one end before the gap is written.
static bool empty_file(struct spool *s, const char *name)
{
	int fd = openat(s->folder, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	bool done = fd >= 0 && !ftruncate(fd, 0);

	if (fd >= 0)
		close(fd);
	return done || unlinkat(s->folder, name, 0);
}

// Room on a disk that is full: the oldest goes at once, its gap is written into the room that it leaves.
static bool make_room(struct spool *s)
{
	struct entry *victim = spool_victim(s, ENTRY_DURABLE);
	char name[SPOOL_NAME_MAX];

	if (!victim || s->made_room == ROOM_TRIES)
		return false;
	s->made_room++;
	spool_name_format(name, victim->order, victim->key.instance, victim->key.sequence);
	victim->emptied = empty_file(s, name);
	spool_drop(s, victim, DROP_FULL);
	set_disk(s, victim, 0);
	return true;
}

// One batch or gap. False when the disk refused it and it has to wait.
static bool write_one(struct spool *s, struct entry *entry)
{
	struct buf gap = { 0 };
	int err;

	entry->state = ENTRY_WRITING;
	if (!entry->order)
		entry->order = ++s->order;
	pthread_mutex_unlock(&s->lock);
	err = write_entry(s, entry, &gap);
	buf_free(&gap);
	pthread_mutex_lock(&s->lock);
	s->stats.write_error = err;
	if (!err) {
		s->made_room = 0;
		written(s, entry);
		return true;
	}
	s->stats.write_errors++;
	entry->state = ENTRY_WAITING;
	if (err == -EINVAL && entry->kind == BATCH_GAP) { // a start that nothing is known of: no record can be made
		spool_remove(s, entry);
		return true;
	}
	return (err == -ENOSPC || err == -EDQUOT) && make_room(s);
}

// False when what waits has to wait longer.
static bool write_next(struct spool *s, struct entry *entry)
{
	uint64_t need = on_disk(entry->size);
	struct entry *victim;

	if (entry->kind != BATCH_GAP && s->stats.bytes + need > s->max_size) {
		victim = need > s->max_size ? entry : spool_victim(s, ENTRY_DURABLE);
		if (victim) {
			spool_drop(s, victim, DROP_FULL);
			return true;
		}
	}
	return write_one(s, entry);
}

// ---- the loop

static void wait_for_work(struct spool *s, unsigned ms)
{
	struct timespec until;

	if (!ms) {
		pthread_cond_wait(&s->work, &s->lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_cond_timedwait(&s->work, &s->lock, &until);
}

// After a failure nothing is written for a while, whatever arrives; files are still removed.
static void work(struct spool *s)
{
	unsigned retry_ms = 0;

	while (!s->stop || s->removals) {
		struct entry *entry = retry_ms ? NULL : first_waiting(s);

		if (s->removals) {
			remove_files(s);
		} else if (entry) {
			retry_ms = write_next(s, entry) ? 0 : RETRY_MS;
			pthread_cond_broadcast(&s->idle);
		} else {
			wait_for_work(s, retry_ms);
			retry_ms = s->made_room = 0;
		}
	}
}

// To a bound that was lowered since the last start.
static void shrink(struct spool *s)
{
	struct entry *entry;

	while (s->stats.bytes > s->max_size && !s->stop) {
		entry = spool_victim(s, ENTRY_DURABLE);
		if (!entry)
			return;
		spool_drop(s, entry, DROP_FULL);
		if (!write_one(s, entry))
			return;
	}
}

void *spool_thread(void *spool)
{
	struct spool *s = spool;

	spool_scan(s);
	pthread_mutex_lock(&s->lock);
	shrink(s);
	pthread_cond_broadcast(&s->idle);
	work(s);
	s->ended = true;
	pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}
