// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config_internal.h"
#include "common/text.h"

// "10 MiB" as well as "10MiB": the text without the spaces between number and unit; too long a one stays wrong.
static const char *close_up(const char *text, char *out, size_t cap)
{
	size_t digits = strspn(text, "0123456789."), spaces = strspn(text + digits, " ");

	if (!text[digits + spaces])
		return text;
	return (size_t)snprintf(out, cap, "%.*s%s", (int)digits, text, text + digits + spaces) < cap ? out : text;
}

int config_size(const char *text, uint64_t *ret)
{
	char copy[40];

	return text_size(close_up(text, copy, sizeof(copy)), "size", ret, NULL);
}

int config_time(const char *text, uint64_t *ret_ns)
{
	char copy[40];

	return text_duration(close_up(text, copy, sizeof(copy)), "time", ret_ns, NULL);
}

static bool parse_bool(const char *text, uint64_t *ret)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = { { "yes", true }, { "true", true }, { "no", false }, { "false", false } };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strcmp(text, words[i].word))
			continue;
		*ret = words[i].value;
		return true;
	}
	return false;
}

// A number as the file would say it.
static void show(char *out, size_t cap, enum config_type type, double value)
{
	switch (type) {
	case CONFIG_SIZE:
		text_bytes(out, cap, value);
		break;
	case CONFIG_TIME:
		if (value >= 60e9)
			snprintf(out, cap, "%.15gm", value / 60e9);
		else
			snprintf(out, cap, value >= 1e9 ? "%.15gs" : "%.15gms", value >= 1e9 ? value / 1e9 : value / 1e6);
		break;
	default:
		snprintf(out, cap, "%.0f", value);
	}
}

static int check_range(const struct config_key *k, const struct config_entry *entry, struct error *e)
{
	char low[40], high[40];
	double n = (double)entry->number;

	if ((!k->min && !k->max) || (n >= k->min && n <= k->max))
		return 0;
	show(low, sizeof(low), k->type, k->min);
	show(high, sizeof(high), k->type, k->max);
	return error_set(e, -EINVAL, "%s = %.60s is out of range; it may be %s to %s", k->key, entry->value, low, high);
}

// A comment behind a value is part of it: names may hold '#'. Where only a number can stand, it is worth a hint.
static const char *hint(const char *value)
{
	return strpbrk(value, "#;") ? " (a comment must be on a line of its own)" : "";
}

static int check_number(const struct config_key *k, struct config_entry *entry, struct error *e)
{
	const char *value = entry->value;

	switch (k->type) {
	case CONFIG_BOOL:
		if (!parse_bool(value, &entry->number))
			return error_set(e, -EINVAL, "%s = '%.60s' is neither yes nor no%s", k->key, value, hint(value));
		return 0;
	case CONFIG_U32:
		if (text_number(value, 0, UINT32_MAX, k->key, &entry->number, NULL))
			return error_set(e, -EINVAL, "%s = '%.60s' is not a whole number up to 4294967295%s", k->key, value,
					 hint(value));
		break;
	case CONFIG_SIZE:
		if (config_size(value, &entry->number))
			return error_set(e, -EINVAL, "%s = '%.60s' is not a size; give a number with K, M, G, KiB, MiB or GiB%s",
					 k->key, value, hint(value));
		break;
	default:
		if (config_time(value, &entry->number))
			return error_set(e, -EINVAL, "%s = '%.60s' is not a time; give a number with ms, s, m, h or d%s", k->key,
					 value, hint(value));
		break;
	}
	return check_range(k, entry, e);
}

int config_check_value(const struct config_key *k, struct config_entry *entry, struct error *e)
{
	// Text may be empty: "listen =" is none.
	if (k->type == CONFIG_TEXT)
		return 0;
	if (!*entry->value)
		return error_set(e, -EINVAL, "%s has no value; give one, or leave the line out", entry->name);
	return k->type == CONFIG_LIST || k->type == CONFIG_PAIRS ? 0 : check_number(k, entry, e);
}

static void commit_one(const struct config_key *k, const struct config_entry *entry, void *to)
{
	uint32_t u32 = (uint32_t)entry->number;
	bool yes = entry->number;

	switch (k->type) {
	case CONFIG_TEXT:
		memcpy(to, &entry->value, sizeof(entry->value));
		break;
	case CONFIG_BOOL:
		memcpy(to, &yes, sizeof(yes));
		break;
	case CONFIG_U32:
		memcpy(to, &u32, sizeof(u32));
		break;
	default:
		memcpy(to, &entry->number, sizeof(entry->number));
	}
}

static void *new_array(struct config *c, size_t n, size_t size)
{
	void *array = calloc(n, size);

	if (array)
		c->arrays[c->n_arrays++] = array;
	return array;
}

struct collected {
	struct config_list list;
	struct config_pairs pairs;
};

static unsigned count(const struct config *c, unsigned key)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->n_entries; i++)
		n += c->entries[i].key == key;
	return n;
}

static int collect(struct config *c, unsigned key, enum config_type type, struct collected *ret)
{
	unsigned n = count(c, key), at = 0;
	const char **first, **second = NULL;
	unsigned *lines = NULL;

	if (!n)
		return 0;
	first = new_array(c, n, sizeof(*first));
	if (type == CONFIG_PAIRS)
		second = new_array(c, n, sizeof(*second));
	else
		lines = new_array(c, n, sizeof(*lines));
	if (!first || !(second || lines))
		return -ENOMEM;
	for (unsigned i = 0; i < c->n_entries; i++) {
		const struct config_entry *entry = &c->entries[i];

		if (entry->key != key)
			continue;
		first[at] = type == CONFIG_PAIRS ? entry->name : entry->value;
		if (second)
			second[at] = entry->value;
		else
			lines[at] = entry->line;
		at++;
	}
	if (type == CONFIG_PAIRS)
		ret->pairs = (struct config_pairs){ .n = n, .name = first, .value = second };
	else
		ret->list = (struct config_list){ .n = n, .item = first, .line = lines };
	return 0;
}

int config_commit(struct config *c, const struct config_key *keys, unsigned n_keys, void *into)
{
	struct collected *all = calloc(n_keys ? n_keys : 1, sizeof(*all));
	int err = 0;

	c->arrays = calloc(2 * (size_t)n_keys + 1, sizeof(*c->arrays));
	if (!all || !c->arrays)
		err = -ENOMEM;
	for (unsigned k = 0; k < n_keys && !err; k++)
		if (keys[k].type == CONFIG_LIST || keys[k].type == CONFIG_PAIRS)
			err = collect(c, k, keys[k].type, &all[k]);
	for (unsigned k = 0; k < n_keys && !err; k++) {
		void *to = (char *)into + keys[k].offset;

		if (all[k].list.n)
			memcpy(to, &all[k].list, sizeof(all[k].list));
		if (all[k].pairs.n)
			memcpy(to, &all[k].pairs, sizeof(all[k].pairs));
	}
	for (unsigned i = 0; i < c->n_entries && !err; i++) {
		const struct config_key *k = &keys[c->entries[i].key];

		if (k->type != CONFIG_LIST && k->type != CONFIG_PAIRS)
			commit_one(k, &c->entries[i], (char *)into + k->offset);
	}
	free(all);
	return err;
}
