// SPDX-License-Identifier: Apache-2.0
#include "symbolize/kernel.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "symbolize/symbolize.h"

#define SYMBOLS_MAX  2000000
#define NAMES_MAX    (64u << 20)
#define LINE_MAX_LEN 1024
#define READ_SIZE    65536
#define LAST_SIZE    65536 // what the last symbol may cover

struct symbol {
	uint64_t address;
	uint32_t name;	 // in names
	uint32_t module; // in names, 0 = the core kernel
};

struct kernel_symbols {
	struct symbol *symbols;
	size_t count, cap;
	struct buf names; // begins with an empty string
	uint32_t last_module;
	bool hidden; // an address of 0 was seen
};

void kernel_symbols_free(struct kernel_symbols *k)
{
	if (!k)
		return;
	free(k->symbols);
	buf_free(&k->names);
	free(k);
}

static int add_name(struct kernel_symbols *k, const char *name, uint32_t *ret)
{
	size_t len = strlen(name) + 1;

	if (len > NAMES_MAX - k->names.len)
		return -E2BIG;
	*ret = (uint32_t)k->names.len;
	buf_append(&k->names, name, len);
	return k->names.error;
}

// Symbols of a module follow each other: its name is kept once for a run of them.
static int add_module(struct kernel_symbols *k, const char *module, uint32_t *ret)
{
	int err = 0;

	if (!k->last_module || strcmp((char *)k->names.data + k->last_module, module))
		err = add_name(k, module, &k->last_module);
	*ret = k->last_module;
	return err;
}

static int add(struct kernel_symbols *k, uint64_t address, const char *name, const char *module)
{
	struct symbol s = { .address = address };
	int err;

	if (k->count >= SYMBOLS_MAX)
		return -E2BIG;
	if (k->count == k->cap) {
		size_t cap = k->cap ? k->cap * 2 : 4096;
		struct symbol *symbols = realloc(k->symbols, cap * sizeof(*symbols));

		if (!symbols)
			return -ENOMEM;
		k->symbols = symbols;
		k->cap = cap;
	}
	err = add_name(k, name, &s.name);
	if (!err && module)
		err = add_module(k, module, &s.module);
	if (!err)
		k->symbols[k->count++] = s;
	return err;
}

// "ffffffff81000010 T name\t[module]". Lines of another form are passed over.
static int parse_line(struct kernel_symbols *k, char *line)
{
	char *at, *name, *module, *end, display[LINE_MAX_LEN];
	unsigned long long address = strtoull(line, &at, 16);

	if (at == line || *at != ' ' || !at[1] || at[2] != ' ' || !strchr("tTwW", at[1]))
		return 0;
	if (!address) {
		k->hidden = true;
		return 0;
	}
	name = at + 3;
	end = name + strcspn(name, " \t");
	module = *end ? strchr(end + 1, '[') : NULL;
	*end = 0;
	if (module) {
		module++;
		module[strcspn(module, "] \t")] = 0;
	}
	if (!*name)
		return 0;
	sym_display_name(name, display, sizeof(display));
	return add(k, address, display, module && *module ? module : NULL);
}

static int parse_lines(struct kernel_symbols *k, char *data, size_t len, size_t *ret_used)
{
	size_t at = 0;
	char *newline;
	int err = 0;

	while (!err && (newline = memchr(data + at, '\n', len - at))) {
		*newline = 0;
		if ((size_t)(newline - (data + at)) < LINE_MAX_LEN)
			err = parse_line(k, data + at);
		at = (size_t)(newline - data) + 1;
	}
	*ret_used = at;
	return err;
}

static int read_all(struct kernel_symbols *k, int fd, char *data)
{
	size_t len = 0, used;
	int err = 0;

	while (!err) {
		ssize_t n = read(fd, data + len, READ_SIZE - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		len += (size_t)n;
		err = parse_lines(k, data, len, &used);
		if (!used && len == READ_SIZE)
			used = len; // no line is that long
		memmove(data, data + used, len - used);
		len -= used;
	}
	return err;
}

static unsigned underscores(const char *name)
{
	return (unsigned)strspn(name, "_");
}

static int compare(const void *a, const void *b, void *opaque)
{
	const struct kernel_symbols *k = opaque;
	const struct symbol *x = a, *y = b;
	const char *name_x = (char *)k->names.data + x->name, *name_y = (char *)k->names.data + y->name;
	size_t len_x, len_y;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (underscores(name_x) != underscores(name_y))
		return underscores(name_x) < underscores(name_y) ? -1 : 1;
	len_x = strlen(name_x);
	len_y = strlen(name_y);
	if (len_x != len_y)
		return len_x < len_y ? -1 : 1;
	return strcmp(name_x, name_y);
}

// Sorted, of each address the name people know.
static void settle(struct kernel_symbols *k)
{
	size_t kept = 0;
	struct symbol *fit;

	qsort_r(k->symbols, k->count, sizeof(*k->symbols), compare, k);
	for (size_t i = 0; i < k->count; i++)
		if (!kept || k->symbols[kept - 1].address != k->symbols[i].address)
			k->symbols[kept++] = k->symbols[i];
	k->count = kept;
	fit = realloc(k->symbols, kept * sizeof(*fit));
	if (fit) {
		k->symbols = fit;
		k->cap = kept;
	}
}

int kernel_symbols_load(int fd, struct kernel_symbols **ret)
{
	struct kernel_symbols *k = calloc(1, sizeof(*k));
	char *data = malloc(READ_SIZE);
	int err = -ENOMEM;

	if (k && data) {
		buf_byte(&k->names, 0);
		err = read_all(k, fd, data);
		if (!err && !k->count)
			err = k->hidden ? -ENODATA : -EINVAL;
	}
	free(data);
	if (err) {
		kernel_symbols_free(k);
		return err;
	}
	settle(k);
	*ret = k;
	return 0;
}

const char *kernel_symbols_find(const struct kernel_symbols *k, uint64_t address, const char **ret_module,
				uint64_t *ret_start)
{
	const char *names = (const char *)k->names.data;
	size_t low = 0, high = k->count;
	const struct symbol *s;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (k->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || (low == k->count && address - k->symbols[low - 1].address >= LAST_SIZE))
		return NULL;
	s = &k->symbols[low - 1];
	if (ret_module)
		*ret_module = s->module ? names + s->module : NULL;
	if (ret_start)
		*ret_start = s->address;
	return names + s->name;
}
