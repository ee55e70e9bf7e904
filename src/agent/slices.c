// SPDX-License-Identifier: Apache-2.0
#include "agent/slices.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/recorder_internal.h"

struct slice {
	uint64_t start; // number of the first of those that were added up
	struct window *window;
};

struct slices {
	struct slice *list;
	unsigned n, cap;
	uint64_t next;
};

struct slices *slices_new(void)
{
	return calloc(1, sizeof(struct slices));
}

void slices_clear(struct slices *s)
{
	for (unsigned i = 0; i < s->n; i++)
		window_free(s->list[i].window);
	s->n = 0;
}

void slices_free(struct slices *s)
{
	if (!s)
		return;
	slices_clear(s);
	free(s->list);
	free(s);
}

uint64_t slices_next(const struct slices *s)
{
	return s->next;
}

size_t slices_rows(const struct slices *s)
{
	size_t rows = 0;

	for (unsigned i = 0; i < s->n; i++)
		rows += rows_count(s->list[i].window->rows);
	return rows;
}

static bool begins(uint64_t slice, const uint64_t *starts, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (starts[i] == slice)
			return true;
	return false;
}

static uint64_t first_of(const struct slices *s, const uint64_t *starts, unsigned n)
{
	uint64_t first = s->next;

	for (unsigned i = 0; i < n; i++)
		first = starts[i] < first ? starts[i] : first;
	return first;
}

// Readers begin where slices do, so one that begins before `first` ends there too.
static void drop_before(struct slices *s, uint64_t first)
{
	unsigned gone = 0;

	while (gone < s->n && s->list[gone].start < first)
		window_free(s->list[gone++].window);
	s->n -= gone;
	memmove(s->list, s->list + gone, s->n * sizeof(*s->list));
}

static int join(struct slices *s, const uint64_t *starts, unsigned n)
{
	unsigned kept = 0;
	int err = 0;

	for (unsigned i = 0; i < s->n; i++) {
		if (!kept || begins(s->list[i].start, starts, n)) {
			s->list[kept++] = s->list[i];
			continue;
		}
		if (!err)
			err = window_merge(s->list[kept - 1].window, s->list[i].window);
		window_free(s->list[i].window);
	}
	s->n = kept;
	return err;
}

int slices_trim(struct slices *s, const uint64_t *starts, unsigned n)
{
	int err;

	drop_before(s, first_of(s, starts, n));
	err = join(s, starts, n);
	if (err)
		slices_clear(s);
	return err;
}

int slices_add(struct slices *s, struct window *w, const uint64_t *starts, unsigned n)
{
	if (s->n == s->cap) {
		unsigned cap = s->cap ? 2 * s->cap : 8;
		struct slice *list = reallocarray(s->list, cap, sizeof(*list));

		if (!list) {
			window_free(w);
			slices_clear(s);
			s->next++;
			return -ENOMEM;
		}
		s->list = list;
		s->cap = cap;
	}
	s->list[s->n++] = (struct slice){ .start = s->next++, .window = w };
	return slices_trim(s, starts, n);
}

static int merge_from(struct slices *s, unsigned i, struct window *into)
{
	int err = 0;

	for (; !err && i < s->n; i++)
		err = window_merge(into, s->list[i].window);
	return err;
}

int slices_take(struct slices *s, uint64_t from, const uint64_t *starts, unsigned n, struct window **ret)
{
	bool shared = first_of(s, starts, n) < s->next;
	struct window *w;
	unsigned i = 0;
	int err = 0;

	while (i < s->n && s->list[i].start != from)
		i++;
	if (i == s->n)
		return -ENODATA;
	w = s->list[i].window;
	if (shared)
		err = window_copy(s->list[i].window, &w);
	if (err)
		return err;
	err = merge_from(s, i + 1, w);
	if (err) {
		if (shared)
			window_free(w);
		else
			slices_clear(s);
		return err;
	}
	if (!shared)
		s->list[i].window = NULL;
	err = slices_trim(s, starts, n);
	if (err)
		window_free(w);
	else
		*ret = w;
	return err;
}
