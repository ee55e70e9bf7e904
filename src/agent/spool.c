// SPDX-License-Identifier: Apache-2.0
#include "agent/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/spool_internal.h"
#include "common/thread.h"

#define MAX_SIZE (1ull << 30)
#define MAX_WAITING (16ull << 20)
#define READ_FAILURES 3 // before a file that exists is taken for lost
#define GRACE_MS 200	// for the thread to end once it has nothing to write

// ---- opening

static int open_folder(struct spool *s, const char *path, struct error *e)
{
	if (!path || !*path)
		return error_set(e, -EINVAL, "the spool has no directory; set directory in [spool]");
	if (mkdir(path, 0700) && errno != EEXIST)
		return error_set(e, -errno, "cannot make the spool %.200s: %s; make its parent folder or set another directory in [spool]",
				 path, strerror(errno));
	s->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->folder < 0)
		return error_set(e, -errno, "cannot open the spool %.200s: %s; set another directory in [spool]", path, strerror(errno));
	s->lock_file = openat(s->folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->lock_file < 0)
		return error_set(e, -errno, "cannot write to the spool %.200s: %s; set another directory in [spool]", path,
				 strerror(errno));
	if (flock(s->lock_file, LOCK_EX | LOCK_NB))
		return error_set(e, errno == EWOULDBLOCK ? -EBUSY : -errno,
				 "the spool %.200s is in use by another process; stop it or set another directory in [spool]", path);
	return 0;
}

static int start(struct spool *s)
{
	pthread_condattr_t attr;
	int err;

	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->work, &attr);
	pthread_cond_init(&s->idle, &attr);
	pthread_condattr_destroy(&attr);
	err = thread_start(&s->thread, spool_thread, s);
	s->started = !err;
	return err;
}

static void spool_free(struct spool *s)
{
	struct node_name *n, *next_node;
	struct entry *entry, *next;
	struct removal *r;

	DL_FOREACH_SAFE(s->list, entry, next) {
		HASH_DEL(s->by_key, entry);
		DL_DELETE(s->list, entry);
		free(entry->data);
		free(entry);
	}
	HASH_ITER(hh, s->nodes, n, next_node) {
		HASH_DEL(s->nodes, n);
		free(n);
	}
	while ((r = s->removals)) {
		s->removals = r->next;
		free(r);
	}
	if (s->event >= 0)
		close(s->event);
	if (s->lock_file >= 0)
		close(s->lock_file);
	if (s->folder >= 0)
		close(s->folder);
	free(s);
}

int spool_open(const struct spool_options *o, struct spool **ret, struct error *e)
{
	struct spool *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return error_set(e, -ENOMEM, "no memory for the spool; free some and try again");
	if (!o->node || !batch_node_valid(o->node)) {
		free(s);
		return error_set(e, -EINVAL, "the node's name may have letters, digits, '.', '-' and '_', and %d of them", BATCH_NODE_MAX);
	}
	s->folder = s->lock_file = -1;
	s->max_size = o->max_size ? o->max_size : MAX_SIZE;
	s->max_waiting = o->max_waiting ? o->max_waiting : MAX_WAITING;
	s->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	err = s->event < 0 ? error_set(e, -errno, "cannot make an event: %s", strerror(errno)) : open_folder(s, o->directory, e);
	if (!err && getrandom(s->instance, sizeof(s->instance), 0) != sizeof(s->instance))
		err = error_set(e, -EIO, "the kernel gave no random number");
	if (!err) {
		s->node = spool_intern(s, o->node);
		err = s->node ? start(s) : -ENOMEM;
		if (err)
			error_set(e, err, "cannot start the spool's thread: %s", strerror(-err));
	}
	if (err) {
		spool_free(s);
		return err;
	}
	*ret = s;
	return 0;
}

static void add_ms(struct timespec *t, unsigned ms)
{
	t->tv_sec += ms / 1000;
	t->tv_nsec += ms % 1000 * 1000000;
	if (t->tv_nsec < 1000000000)
		return;
	t->tv_sec++;
	t->tv_nsec -= 1000000000;
}

int spool_flush(struct spool *s, unsigned timeout_ms)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	add_ms(&until, timeout_ms);
	pthread_mutex_lock(&s->lock);
	while ((!s->scanned || s->n_pending) && !err)
		err = pthread_cond_timedwait(&s->idle, &s->lock, &until);
	pthread_mutex_unlock(&s->lock);
	return err ? -ETIMEDOUT : 0;
}

void spool_close(struct spool *s, unsigned timeout_ms)
{
	struct timespec until;

	if (!s)
		return;
	spool_flush(s, timeout_ms);
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_broadcast(&s->work);
	pthread_mutex_unlock(&s->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	add_ms(&until, GRACE_MS);
	if (pthread_timedjoin_np(s->thread, NULL, &until)) {
		pthread_detach(s->thread);
		return;
	}
	spool_free(s);
}

// ---- adding

// The oldest that waits goes; the new one when all that waits is being written.
static void bound_waiting(struct spool *s, struct entry *newest)
{
	while (s->stats.waiting_bytes > s->max_waiting) {
		struct entry *victim = spool_victim(s, ENTRY_WAITING);

		spool_drop(s, victim ? victim : newest, DROP_WAITING);
		if (!victim || victim == newest)
			return;
	}
}

static int encode(struct spool *s, const struct batch *b, struct entry *entry)
{
	struct batch full = *b;
	struct buf out = { 0 };
	int err;

	full.node = s->node;
	full.sequence = s->sequence + 1;
	memcpy(full.instance, s->instance, sizeof(full.instance));
	err = batch_encode(&full, &out);
	if (err) {
		buf_free(&out);
		return err;
	}
	memcpy(entry->key.instance, s->instance, sizeof(entry->key.instance));
	entry->key.sequence = full.sequence;
	entry->node = s->node;
	entry->kind = (uint8_t)b->kind;
	entry->start = b->start;
	entry->end = b->end;
	entry->data = out.data;
	entry->size = out.len;
	return 0;
}

int spool_add(struct spool *s, const struct batch *b)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	int err;

	if (!entry)
		return -ENOMEM;
	pthread_mutex_lock(&s->lock);
	err = encode(s, b, entry);
	if (!err)
		err = spool_insert(s, entry);
	if (!err) {
		s->sequence++;
		s->stats.added++;
		bound_waiting(s, entry);
		spool_enforce_count(s);
		pthread_cond_signal(&s->work);
	}
	pthread_mutex_unlock(&s->lock);
	if (err) {
		free(entry->data);
		free(entry);
	}
	return err;
}

// ---- sending

static struct entry *first_unsent(struct spool *s)
{
	struct entry *entry;

	if (!s->stats.unsent)
		return NULL;
	DL_FOREACH(s->list, entry)
		if (entry->state == ENTRY_DURABLE && !entry->sent)
			return entry;
	return NULL;
}

static void mark_sent(struct spool *s, struct entry *entry, bool sent)
{
	if (entry->state == ENTRY_DURABLE)
		s->stats.unsent += (uint64_t)(entry->sent - sent);
	entry->sent = sent;
}

// A file that could not be read: damaged, or (three times) unreadable. It may be another's by now.
static void unreadable(struct spool *s, const struct spool_key *key, uint64_t order, int err)
{
	struct entry *entry = spool_find(s, key->instance, key->sequence);

	if (entry && entry->stale) // dropped while it was read: it was not sent
		entry->stale--;
	if (!entry || entry->state != ENTRY_DURABLE || entry->order != order)
		return;
	if (err != -EBADMSG && err != -ENOENT && ++entry->read_failures < READ_FAILURES)
		return;
	mark_sent(s, entry, false);
	spool_drop(s, entry, DROP_DAMAGED);
}

int spool_next(struct spool *s, struct spool_item *ret)
{
	char name[SPOOL_NAME_MAX];
	struct spool_key key;
	struct spool_item item = { 0 };
	struct entry *entry;
	uint64_t order;
	int err;

	pthread_mutex_lock(&s->lock);
	while ((entry = first_unsent(s))) {
		mark_sent(s, entry, true);
		key = entry->key;
		order = entry->order;
		spool_name_format(name, order, key.instance, key.sequence);
		pthread_mutex_unlock(&s->lock);
		err = spool_file_read(s->folder, name, key.instance, key.sequence, &item.data, &item.size);
		pthread_mutex_lock(&s->lock);
		if (!err)
			break;
		unreadable(s, &key, order, err);
	}
	spool_signal(s);
	pthread_mutex_unlock(&s->lock);
	if (!entry)
		return -EAGAIN;
	memcpy(item.instance, key.instance, sizeof(item.instance));
	item.sequence = key.sequence;
	*ret = item;
	return 0;
}

void spool_item_free(struct spool_item *item)
{
	free(item->data);
	memset(item, 0, sizeof(*item));
}

void spool_rewind(struct spool *s)
{
	struct entry *entry;

	pthread_mutex_lock(&s->lock);
	DL_FOREACH(s->list, entry) {
		mark_sent(s, entry, false);
		entry->stale = 0;
	}
	spool_signal(s);
	pthread_mutex_unlock(&s->lock);
}

void spool_acknowledge(struct spool *s, const uint8_t instance[16], uint64_t sequence)
{
	struct entry *entry;

	pthread_mutex_lock(&s->lock);
	entry = spool_find(s, instance, sequence);
	// One that became a gap since it was sent is not what was acknowledged.
	if (entry && entry->stale) {
		entry->stale--;
	} else if (entry && entry->state == ENTRY_DURABLE && (entry->sent || entry->kind != BATCH_GAP)) {
		s->stats.acknowledged++;
		spool_remove(s, entry);
		spool_signal(s);
	}
	pthread_mutex_unlock(&s->lock);
}

int spool_fd(const struct spool *s)
{
	return s->event;
}

void spool_stats(struct spool *s, struct spool_stats *ret)
{
	struct entry *entry;

	pthread_mutex_lock(&s->lock);
	*ret = s->stats;
	ret->oldest = 0;
	DL_FOREACH(s->list, entry)
		if (entry->start && (!ret->oldest || entry->start < ret->oldest))
			ret->oldest = entry->start;
	pthread_mutex_unlock(&s->lock);
}

const uint8_t *spool_instance(const struct spool *s)
{
	return s->instance;
}
