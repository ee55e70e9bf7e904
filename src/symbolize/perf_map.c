// SPDX-License-Identifier: Apache-2.0
#include "symbolize/perf_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "symbolize/symbolize.h"

struct entry {
	uint64_t start, limit;
	uint32_t name; // offset in the names; later lines have larger ones
	uint32_t pad;
};

// A range whose newest entry is known.
struct segment {
	uint64_t start, limit;
	uint32_t entry, pad;
};

struct perf_map {
	size_t memory_max;
	struct entry *entries;
	uint32_t n, cap;
	char *names;
	uint32_t names_len, names_cap;
	struct segment *segments; // by address, without overlap
	uint32_t n_segments;
	bool sorted; // segments are of all entries
	uint64_t malformed, refused;
};

struct perf_map *perf_map_new(size_t memory)
{
	struct perf_map *m = calloc(1, sizeof(*m));

	if (m)
		m->memory_max = memory < UINT32_MAX ? memory : UINT32_MAX;
	return m;
}

void perf_map_free(struct perf_map *m)
{
	if (!m)
		return;
	free(m->entries);
	free(m->names);
	free(m->segments);
	free(m);
}

size_t perf_map_memory(const struct perf_map *m)
{
	return sizeof(*m) + m->cap * sizeof(*m->entries) + m->names_cap + m->n_segments * sizeof(*m->segments);
}

uint64_t perf_map_count(const struct perf_map *m)
{
	return m->n;
}

uint64_t perf_map_malformed(const struct perf_map *m)
{
	return m->malformed;
}

uint64_t perf_map_refused(const struct perf_map *m)
{
	return m->refused;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// A hexadecimal number and the blank behind it. Where it ends, or NULL.
static const char *number(const char *at, const char *end, uint64_t *ret)
{
	const char *first;
	uint64_t value = 0;

	if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	for (first = at; at < end && digit(*at) >= 0; at++) {
		if (value >> 60)
			return NULL;
		value = value << 4 | (uint64_t)digit(*at);
	}
	if (at == first || at == end || *at != ' ')
		return NULL;
	*ret = value;
	return at + 1;
}

// What three arrays may grow to together: segments are at most two for an entry.
static bool has_room(const struct perf_map *m, uint32_t entries, uint32_t names)
{
	return (size_t)entries * (sizeof(struct entry) + 2 * sizeof(struct segment)) + names <= m->memory_max;
}

static bool reserve(struct perf_map *m, size_t name_len)
{
	uint32_t cap = m->cap ? m->cap + m->cap / 2 : 64, names_cap = m->names_cap;

	while (m->names_len + name_len + 1 > names_cap)
		names_cap = names_cap ? names_cap + names_cap / 2 : 4096;
	if (m->n < m->cap)
		cap = m->cap;
	if (!has_room(m, cap, names_cap))
		return false;
	if (names_cap != m->names_cap) {
		char *names = realloc(m->names, names_cap);

		if (!names)
			return false;
		m->names = names;
		m->names_cap = names_cap;
	}
	if (cap != m->cap) {
		struct entry *entries = realloc(m->entries, cap * sizeof(*entries));

		if (!entries)
			return false;
		m->entries = entries;
		m->cap = cap;
	}
	return true;
}

static void add_line(struct perf_map *m, const char *line, const char *end)
{
	uint64_t start = 0, size = 0, limit;
	char name[PERF_MAP_NAME_MAX];
	const char *at = number(line, end, &start);
	size_t len;

	if (at)
		at = number(at, end, &size);
	if (!at || at == end || !size || __builtin_add_overflow(start, size, &limit)) {
		m->malformed += line != end;
		return;
	}
	len = text_sanitize(name, sizeof(name), at, (size_t)(end - at));
	if (!len || !reserve(m, len)) {
		m->malformed += !len;
		m->refused += len != 0;
		return;
	}
	m->entries[m->n++] = (struct entry){ .start = start, .limit = limit, .name = m->names_len };
	memcpy(m->names + m->names_len, name, len + 1);
	m->names_len += (uint32_t)len + 1;
	m->sorted = false;
}

size_t perf_map_add(struct perf_map *m, const char *text, size_t len)
{
	const char *at = text, *newline;

	while (len && (newline = memchr(at, '\n', len - (size_t)(at - text)))) {
		add_line(m, at, newline);
		at = newline + 1;
		if ((size_t)(at - text) == len)
			break;
	}
	return (size_t)(at - text);
}

static int compare(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

// The entries that hold the place where a sweep over addresses is, newest first: a heap of their indices.
struct heap {
	const struct entry *entries;
	uint32_t *at;
	uint32_t n;
};

static bool newer(const struct heap *h, uint32_t a, uint32_t b)
{
	return h->entries[h->at[a]].name > h->entries[h->at[b]].name;
}

static void swap(struct heap *h, uint32_t a, uint32_t b)
{
	uint32_t t = h->at[a];

	h->at[a] = h->at[b];
	h->at[b] = t;
}

static void push(struct heap *h, uint32_t entry)
{
	uint32_t i = h->n++;

	h->at[i] = entry;
	for (; i && newer(h, i, (i - 1) / 2); i = (i - 1) / 2)
		swap(h, i, (i - 1) / 2);
}

static void pop(struct heap *h)
{
	uint32_t i = 0, child;

	h->at[0] = h->at[--h->n];
	for (; (child = 2 * i + 1) < h->n; i = child) {
		if (child + 1 < h->n && newer(h, child + 1, child))
			child++;
		if (!newer(h, child, i))
			return;
		swap(h, child, i);
	}
}

static void emit(struct perf_map *m, uint64_t start, uint64_t limit, uint32_t entry)
{
	struct segment *last = m->n_segments ? &m->segments[m->n_segments - 1] : NULL;

	if (start >= limit)
		return;
	if (last && last->entry == entry && last->limit == start)
		last->limit = limit;
	else
		m->segments[m->n_segments++] = (struct segment){ .start = start, .limit = limit, .entry = entry };
}

// Up to `until` the newest of those that are open; each segment ends where one of them ends.
static uint64_t emit_open(struct perf_map *m, struct heap *h, uint64_t from, uint64_t until)
{
	while (h->n) {
		const struct entry *top = &m->entries[h->at[0]];

		if (top->limit > until)
			break;
		if (top->limit > from) {
			emit(m, from, top->limit, h->at[0]);
			from = top->limit;
		}
		pop(h);
	}
	if (h->n)
		emit(m, from, until, h->at[0]);
	return until;
}

static bool sort(struct perf_map *m)
{
	struct heap h = { .entries = m->entries };
	uint64_t from = 0;

	free(m->segments);
	m->n_segments = 0;
	m->segments = malloc(((size_t)m->n * 2 + 1) * sizeof(*m->segments));
	h.at = malloc(((size_t)m->n + 1) * sizeof(*h.at));
	if (!m->segments || !h.at) {
		free(h.at);
		free(m->segments);
		m->segments = NULL;
		return false;
	}
	if (m->n)
		qsort(m->entries, m->n, sizeof(*m->entries), compare);
	for (uint32_t i = 0; i < m->n; i++) {
		from = emit_open(m, &h, from, m->entries[i].start);
		push(&h, i);
	}
	emit_open(m, &h, from, UINT64_MAX);
	free(h.at);
	m->sorted = true;
	return true;
}

bool perf_map_find(struct perf_map *m, uint64_t address, struct perf_symbol *ret)
{
	uint32_t low = 0, high;

	if (!m->sorted && !sort(m))
		return false;
	for (high = m->n_segments; low < high;) {
		uint32_t middle = low + (high - low) / 2;

		if (m->segments[middle].limit <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == m->n_segments || m->segments[low].start > address)
		return false;
	ret->start = m->entries[m->segments[low].entry].start;
	ret->size = m->entries[m->segments[low].entry].limit - ret->start;
	ret->name = m->names + m->entries[m->segments[low].entry].name;
	return true;
}

static bool starts(const char **name, const char *with)
{
	size_t len = strlen(with);

	if (strncmp(*name, with, len))
		return false;
	*name += len;
	return true;
}

static bool is_javascript(const char **name)
{
	static const char *const kinds[] = { "LazyCompile:", "Function:", "JS:", "Script:", "Eval:" };

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (starts(name, kinds[i]))
			return true;
	return false;
}

bool perf_map_display(const char *name, char *out, size_t cap)
{
	const char *path, *python = name;
	bool more = false;

	if (is_javascript(&name)) {
		name += strspn(name, "*~^+");
		snprintf(out, cap, "%s%s", *name == ' ' || !*name ? "(anonymous)" : "", name);
	} else if (starts(&python, "py::") && (path = strchr(python, ':')) && path != python) {
		snprintf(out, cap, "%.*s %s", (int)(path - python), python, path + 1);
	} else {
		more = sym_java_name(name, out, cap);
	}
	// What was cut may have been cut inside a character.
	if (cap && !text_is_utf8(out, strlen(out))) {
		char copy[PERF_MAP_NAME_MAX];

		snprintf(copy, sizeof(copy), "%s", out);
		text_sanitize(out, cap, copy, strlen(copy));
	}
	return more;
}
