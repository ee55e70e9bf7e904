// SPDX-License-Identifier: Apache-2.0
#include "symbolize/names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "common/text.h"
#include "symbolize/symbolize.h"

#define NAMES_MAX   200000
#define DISPLAY_MAX 1024
#define SYSTEM_MAX  4096
#define OVERHEAD    32 // of malloc and of uthash's buckets, for each element

struct name_entry {
	struct sym_name name;
	UT_hash_handle hh;
	char text[]; // key, display name, system name
};

struct start_entry {
	uint64_t start;
	const struct sym_name *name;
	UT_hash_handle hh;
};

static void free_entries(struct name_entry **table)
{
	struct name_entry *e, *next;

	HASH_ITER(hh, *table, e, next)
	{
		HASH_DEL(*table, e);
		free(e);
	}
}

void names_free(struct names *n)
{
	struct start_entry *e, *next;

	HASH_ITER(hh, n->starts, e, next)
	{
		HASH_DEL(n->starts, e);
		free(e);
	}
	free_entries(&n->symbols);
	free_entries(&n->texts);
	memset(n, 0, sizeof(*n));
}

static const struct sym_name *add(struct names *n, struct name_entry **table, const char *key, const char *display,
				  const char *system)
{
	size_t key_len = strlen(key), display_len = strlen(display) + 1, system_len = system ? strlen(system) + 1 : 0;
	size_t size = sizeof(struct name_entry) + key_len + display_len + system_len;
	struct name_entry *e;

	if (n->count >= NAMES_MAX)
		return NULL;
	e = calloc(1, size);
	if (!e)
		return NULL;
	memcpy(e->text, key, key_len);
	e->name.display = memcpy(e->text + key_len, display, display_len);
	if (system)
		e->name.system = memcpy(e->text + key_len + display_len, system, system_len);
	HASH_ADD_KEYPTR(hh, *table, e->text, key_len, e);
	if (!e->hh.tbl) {
		free(e);
		return NULL;
	}
	n->count++;
	n->memory += size + OVERHEAD;
	return &e->name;
}

const struct sym_name *names_symbol(struct names *n, const char *raw, const char *suffix)
{
	char key[SYSTEM_MAX], display[DISPLAY_MAX], system[SYSTEM_MAX];
	struct name_entry *e;
	size_t len, cut = strlen(suffix);

	text_sanitize(key, sizeof(key) - cut, raw, strlen(raw));
	strcat(key, suffix);
	HASH_FIND_STR(n->symbols, key, e);
	if (e)
		return &e->name;
	sym_display_name(raw, display, sizeof(display) - cut);
	len = strlen(display);
	memcpy(display + len, suffix, cut + 1);
	text_sanitize(system, sizeof(system), key, strlen(key));
	return add(n, &n->symbols, key, display, strcmp(display, system) ? system : NULL);
}

const struct sym_name *names_find_text(const struct names *n, const char *text)
{
	char clean[SYSTEM_MAX];
	struct name_entry *e;

	text_sanitize(clean, sizeof(clean), text, strlen(text));
	HASH_FIND_STR(n->texts, clean, e);
	return e ? &e->name : NULL;
}

const struct sym_name *names_text(struct names *n, const char *text)
{
	const struct sym_name *known = names_find_text(n, text);
	char clean[SYSTEM_MAX];

	if (known)
		return known;
	text_sanitize(clean, sizeof(clean), text, strlen(text));
	return add(n, &n->texts, clean, clean, NULL);
}

const struct sym_name *names_start(const struct names *n, uint64_t start)
{
	struct start_entry *e;

	HASH_FIND(hh, n->starts, &start, sizeof(start), e);
	return e ? e->name : NULL;
}

void names_set_start(struct names *n, uint64_t start, const struct sym_name *name)
{
	struct start_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return;
	e->start = start;
	e->name = name;
	HASH_ADD(hh, n->starts, start, sizeof(start), e);
	if (!e->hh.tbl) {
		free(e);
		return;
	}
	n->memory += sizeof(*e) + OVERHEAD;
}
