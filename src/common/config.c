// SPDX-License-Identifier: Apache-2.0
// Lines, sections and keys. The whole file is checked before the caller's struct is touched.
#include "common/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/config_internal.h"
#include "common/file.h"
#include "common/suggest.h"
#include "common/text.h"

struct parser {
	const char *file;
	const struct config_key *keys;
	unsigned n_keys;
	struct config *c;
	const char *section; // of the current line; NULL before the first
	unsigned line;
};

__attribute__((format(printf, 3, 4))) static int complain(const struct parser *p, struct error *e, const char *format, ...)
{
	char what[400];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return error_set(e, -EINVAL, "%.100s:%u: %s", p->file, p->line, what);
}

// ---- names, and what was meant by unknown ones

static bool is_name(const char *text)
{
	size_t len = strlen(text);

	return len && len <= CONFIG_NAME_MAX &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == len;
}

static const char *section_at(const void *context, unsigned i)
{
	const struct parser *p = context;

	return i < p->n_keys ? p->keys[i].section : NULL;
}

static const char *key_at(const void *context, unsigned i)
{
	const struct parser *p = context;

	for (unsigned k = 0; k < p->n_keys; k++)
		if (!strcmp(p->keys[k].section, p->section) && i-- == 0)
			return p->keys[k].key;
	return NULL;
}

static void list_sections(const struct parser *p, char *out, size_t cap)
{
	size_t n = 0;

	*out = 0;
	for (unsigned k = 0; k < p->n_keys && n < cap; k++) {
		bool seen = false;

		for (unsigned i = 0; i < k; i++)
			seen |= !strcmp(p->keys[i].section, p->keys[k].section);
		if (!seen)
			n += (size_t)snprintf(out + n, cap - n, "%s[%s]", n ? ", " : "", p->keys[k].section);
	}
}

static int unknown_section(const struct parser *p, const char *name, struct error *e)
{
	const char *near = suggest_word(name, section_at, p);
	char known[200];

	if (near)
		return complain(p, e, "unknown section [%.63s]; did you mean [%s]?", name, near);
	list_sections(p, known, sizeof(known));
	return complain(p, e, "unknown section [%.63s]; there are %s", name, known);
}

static int unknown_key(const struct parser *p, const char *name, struct error *e)
{
	const char *near = suggest_word(name, key_at, p);

	for (unsigned k = 0; k < p->n_keys; k++)
		if (!strcmp(p->keys[k].key, name))
			return complain(p, e, "unknown key '%.63s' in [%s]; it belongs in [%s]", name, p->section, p->keys[k].section);
	if (near)
		return complain(p, e, "unknown key '%.63s' in [%s]; did you mean '%s'?", name, p->section, near);
	return complain(p, e, "unknown key '%.63s' in [%s]; the documented example file lists the keys there are", name, p->section);
}

// ---- lines

static char *strip(char *text)
{
	size_t len = strlen(text);

	while (len && strchr(" \t\r", text[len - 1]))
		len--;
	text[len] = 0;
	return text + strspn(text, " \t");
}

static int parse_section(struct parser *p, char *text, struct error *e)
{
	size_t len = strlen(text);
	char *name;

	if (text[len - 1] != ']')
		return complain(p, e, "'%.60s' is no section; write [name] and nothing else on the line", text);
	text[len - 1] = 0;
	name = strip(text + 1);
	if (!is_name(name))
		return complain(p, e, "'%.60s' is no section's name; letters, digits, '_', '.' and '-' may stand in one", name);
	for (unsigned k = 0; k < p->n_keys; k++) {
		if (strcmp(p->keys[k].section, name))
			continue;
		p->section = p->keys[k].section;
		return 0;
	}
	return unknown_section(p, name, e);
}

// Index of the key in the current section, or of its "*"; -1 when there is neither.
static int find_key(const struct parser *p, const char *name)
{
	int any = -1;

	for (unsigned k = 0; k < p->n_keys; k++) {
		if (strcmp(p->keys[k].section, p->section))
			continue;
		if (!strcmp(p->keys[k].key, "*"))
			any = (int)k;
		else if (!strcmp(p->keys[k].key, name))
			return (int)k;
	}
	return any;
}

static const struct config_entry *earlier(const struct parser *p, unsigned key, const char *name)
{
	for (unsigned i = 0; i < p->c->n_entries; i++)
		if (p->c->entries[i].key == key && !strcmp(p->c->entries[i].name, name))
			return &p->c->entries[i];
	return NULL;
}

static struct config_entry *add_entry(struct config *c)
{
	if (c->n_entries == c->cap_entries) {
		unsigned cap = c->cap_entries ? 2 * c->cap_entries : 32;
		struct config_entry *grown = reallocarray(c->entries, cap, sizeof(*grown));

		if (!grown)
			return NULL;
		c->entries = grown;
		c->cap_entries = cap;
	}
	return &c->entries[c->n_entries++];
}

static int parse_value(struct parser *p, const char *name, const char *value, struct error *e)
{
	int k = find_key(p, name);
	struct config_entry entry = { .key = (unsigned)k, .line = p->line, .name = name, .value = value }, *to;
	const struct config_entry *first;
	struct error what;

	if (k < 0)
		return unknown_key(p, name, e);
	first = p->keys[k].type == CONFIG_LIST ? NULL : earlier(p, (unsigned)k, name);
	if (first)
		return complain(p, e, "'%.63s' was given before, in line %u; keep one of them", name, first->line);
	if (config_check_value(&p->keys[k], &entry, &what))
		return complain(p, e, "%s", what.text);
	if (p->c->n_entries == CONFIG_VALUES_MAX)
		return complain(p, e, "more than %d values; use a smaller file", CONFIG_VALUES_MAX);
	to = add_entry(p->c);
	if (!to)
		return error_set(e, -ENOMEM, "no memory for %.100s; free some and try again", p->file);
	*to = entry;
	return 0;
}

static int parse_line(struct parser *p, char *text, struct error *e)
{
	char *equals, *name;

	text = strip(text);
	if (!*text || *text == '#' || *text == ';')
		return 0;
	if (*text == '[')
		return parse_section(p, text, e);
	equals = strchr(text, '=');
	if (!equals)
		return complain(p, e, "'%.60s' is neither [section] nor key = value", text);
	*equals = 0;
	name = strip(text);
	if (!is_name(name))
		return complain(p, e, "'%.60s' is no key; letters, digits, '_', '.' and '-' may stand in one", name);
	if (!p->section)
		return complain(p, e, "'%.63s' stands before the first [section]", name);
	return parse_value(p, name, strip(equals + 1), e);
}

// What no line of text holds: NUL, control characters, bytes that are no UTF-8.
static int check_bytes(const struct parser *p, const char *line, size_t len, struct error *e)
{
	if (len > CONFIG_LINE_MAX)
		return complain(p, e, "the line is longer than %d bytes", CONFIG_LINE_MAX);
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)line[i] < 0x20 && line[i] != '\t' && !(line[i] == '\r' && i + 1 == len)) || line[i] == 0x7f)
			return complain(p, e, "a control character (byte 0x%02x) in column %zu; is this a text file?", (unsigned char)line[i],
					i + 1);
	if (!text_is_utf8(line, len))
		return complain(p, e, "the line is not valid UTF-8; save the file as UTF-8");
	return 0;
}

static int parse_text(struct parser *p, char *text, size_t size, struct error *e)
{
	char *end = text + size;
	int err = 0;

	if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) // byte order mark of some editors
		text += 3;
	while (text < end && !err) {
		char *newline = memchr(text, '\n', (size_t)(end - text)), *stop = newline ? newline : end;

		p->line++;
		err = check_bytes(p, text, (size_t)(stop - text), e);
		*stop = 0;
		if (!err)
			err = parse_line(p, text, e);
		text = stop + 1;
	}
	return err;
}

int config_parse(const char *name, const char *text, size_t size, const struct config_key *keys, unsigned n_keys, void *into,
		 struct config **ret, struct error *e)
{
	struct parser p = { .file = name, .keys = keys, .n_keys = n_keys };
	int err;

	if (size > CONFIG_BYTES_MAX)
		return error_set(e, -EINVAL, "%.100s: larger than 1 MiB; is this the right file?", name);
	p.c = calloc(1, sizeof(*p.c));
	if (p.c)
		p.c->text = malloc(size + 1);
	if (!p.c || !p.c->text) {
		config_free(p.c);
		return error_set(e, -ENOMEM, "no memory for %.100s; free some and try again", name);
	}
	if (size)
		memcpy(p.c->text, text, size);
	p.c->text[size] = 0;
	err = parse_text(&p, p.c->text, size, e);
	if (!err && config_commit(p.c, keys, n_keys, into))
		err = error_set(e, -ENOMEM, "no memory for %.100s; free some and try again", name);
	if (err) {
		config_free(p.c);
		return err;
	}
	*ret = p.c;
	return 0;
}

int config_read(const char *path, const struct config_key *keys, unsigned n_keys, void *into, struct config **ret, struct error *e)
{
	struct buf b = { 0 };
	int err = file_read(path, CONFIG_BYTES_MAX, &b);

	if (err == -EFBIG)
		err = error_set(e, -EINVAL, "%.100s: larger than 1 MiB; is this the right file?", path);
	else if (err == -ENOENT)
		error_set(e, err, "cannot read %.200s: it does not exist; give the path of the configuration file", path);
	else if (err)
		error_set(e, err, "cannot read %.200s: %s", path, strerror(-err));
	else
		err = config_parse(path, (const char *)b.data, b.len, keys, n_keys, into, ret, e);
	buf_free(&b);
	return err;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < c->n_arrays; i++)
		free(c->arrays[i]);
	free(c->arrays);
	free(c->entries);
	free(c->text);
	free(c);
}
