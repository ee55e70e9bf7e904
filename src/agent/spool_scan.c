// SPDX-License-Identifier: Apache-2.0
// What earlier starts left: complete files are batches, damaged ones known losses, temporary ones were never durable.
// Names that are not of the spool are let be.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/spool_internal.h"

#define SCAN_MAX (2 * SPOOL_ENTRIES_MAX)
#define BLOCK 4096

struct found {
	struct entry **entries;
	unsigned n, cap;
};

static int add(struct found *f, struct entry *entry)
{
	if (f->n == f->cap) {
		unsigned cap = f->cap ? 2 * f->cap : 64;
		struct entry **grown = reallocarray(f->entries, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		f->entries = grown;
		f->cap = cap;
	}
	f->entries[f->n++] = entry;
	return 0;
}

static struct entry *examine(struct spool *s, const char *name)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	struct spool_file f;
	int temporary = 0, err;

	if (!entry)
		return NULL;
	if (spool_name_parse(name, &entry->order, entry->key.instance, &entry->key.sequence, &temporary) || temporary) {
		if (temporary)
			unlinkat(s->folder, name, 0);
		free(entry);
		return NULL;
	}
	entry->state = ENTRY_DURABLE;
	entry->disk = BLOCK;
	err = spool_file_peek(s->folder, name, entry->key.instance, entry->key.sequence, &f);
	if (err == -EPROTO) { // of a newer program: it may read it again
		free(entry);
		return NULL;
	}
	entry->damaged = err == -EBADMSG; // else it could not be read now: reading it to send it tries again
	entry->kind = err ? BATCH_WINDOW : (uint8_t)f.kind;
	if (err)
		return entry;
	entry->start = f.start;
	entry->end = f.end;
	entry->gap_first = f.gap_first;
	entry->gap_bytes = f.gap_bytes;
	entry->size = f.size;
	entry->disk = (SPOOL_HEADER + f.size + BLOCK - 1) / BLOCK * BLOCK;
	pthread_mutex_lock(&s->lock);
	entry->node = spool_intern(s, f.node);
	pthread_mutex_unlock(&s->lock);
	return entry;
}

static int by_order(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;

	return x->order < y->order ? -1 : x->order > y->order;
}

// A batch that is there twice (somebody copied files): the older file stays.
static void discard(struct spool *s, struct entry *entry)
{
	char name[SPOOL_NAME_MAX];

	spool_name_format(name, entry->order, entry->key.instance, entry->key.sequence);
	unlinkat(s->folder, name, 0);
	free(entry);
}

// Before what was added meanwhile. A damaged one becomes a gap, with the node of its neighbour of the same start.
static void take_in(struct spool *s, struct found *f)
{
	struct entry *added = s->list, *entry;
	const struct entry *before = NULL;

	s->list = NULL;
	for (unsigned i = 0; i < f->n; i++) {
		entry = f->entries[i];
		if (!entry->node && before && !memcmp(before->key.instance, entry->key.instance, sizeof(entry->key.instance)))
			entry->node = before->node;
		if (!entry->node)
			entry->node = s->node;
		s->order = entry->order > s->order ? entry->order : s->order;
		if (spool_insert(s, entry)) {
			discard(s, entry);
			continue;
		}
		before = entry;
		s->stats.recovered += !entry->damaged;
	}
	DL_FOREACH(s->list, entry)
		if (entry->damaged)
			spool_drop(s, entry, DROP_DAMAGED);
	DL_CONCAT(s->list, added);
	spool_enforce_count(s);
	spool_signal(s);
}

void spool_scan(struct spool *s)
{
	int fd = openat(s->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct found f = { 0 };
	struct entry *entry;
	struct dirent *d;

	if (!folder && fd >= 0)
		close(fd);
	while (folder && f.n < SCAN_MAX && (d = readdir(folder))) {
		entry = examine(s, d->d_name);
		if (entry && add(&f, entry))
			free(entry);
	}
	if (folder)
		closedir(folder);
	if (f.n)
		qsort(f.entries, f.n, sizeof(*f.entries), by_order);
	pthread_mutex_lock(&s->lock);
	take_in(s, &f);
	s->scanned = true;
	pthread_mutex_unlock(&s->lock);
	free(f.entries);
}
