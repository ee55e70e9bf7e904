// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/file.h"
#include "common/text.h"

enum {
	PLAN_MAX = 1 << 20,
	SIZE_MAX_BYTES = 16 << 20,
	THREADS_MAX = 256,
	DEPTH_MAX = 1024,
};

static int copy_text(char *out, size_t cap, const char *value, const char *key, struct error *e)
{
	if (strlen(value) >= cap)
		return error_set(e, -ENAMETOOLONG, "%s: '%.60s' is longer than %zu characters", key, value, cap - 1);
	strcpy(out, value);
	return 0;
}

static int choose(const char *value, const char *off, const char *on, const char *key, bool *ret, struct error *e)
{
	if (strcmp(value, on) && strcmp(value, off))
		return error_set(e, -EINVAL, "%s: '%.60s' is neither %s nor %s", key, value, off, on);
	*ret = strcmp(value, on) == 0;
	return 0;
}

static int parse_unsigned(const char *value, uint64_t max, const char *key, unsigned *ret, struct error *e)
{
	uint64_t n;
	int r = text_number(value, 1, max, key, &n, e);

	if (!r)
		*ret = (unsigned)n;
	return r;
}

static int parse_size(const char *value, const char *key, uint64_t *ret, struct error *e)
{
	uint64_t n;
	int r = text_size(value, key, &n, e);

	if (r)
		return r;
	if (n == 0 || n > SIZE_MAX_BYTES || n % 512)
		return error_set(e, -ERANGE, "%s: %.30s is not a multiple of 512 up to 16M", key, value);
	*ret = n;
	return 0;
}

static int set_key(struct entry *n, const char *key, const char *value, struct error *e)
{
	if (strcmp(key, "target") == 0)
		return copy_text(n->target, sizeof(n->target), value, key, e);
	if (strcmp(key, "name") == 0)
		return copy_text(n->name, sizeof(n->name), value, key, e);
	if (strcmp(key, "size") == 0)
		return parse_size(value, key, &n->size, e);
	if (strcmp(key, "skip") == 0)
		return text_size(value, key, &n->skip, e);
	if (strcmp(key, "count") == 0)
		return text_number(value, 1, 1000000000, key, &n->count, e);
	if (strcmp(key, "rate") == 0)
		return text_number(value, 0, 10000000, key, &n->rate, e);
	if (strcmp(key, "seed") == 0)
		return text_number(value, 0, UINT32_MAX, key, &n->seed, e);
	if (strcmp(key, "threads") == 0)
		return parse_unsigned(value, THREADS_MAX, key, &n->threads, e);
	if (strcmp(key, "depth") == 0)
		return parse_unsigned(value, DEPTH_MAX, key, &n->depth, e);
	if (strcmp(key, "order") == 0)
		return choose(value, "seq", "random", key, &n->random, e);
	if (strcmp(key, "data") == 0)
		return choose(value, "random", "zero", key, &n->zero, e);
	return error_set(e, -EINVAL, "unknown key '%.60s'", key);
}

static int parse_options(struct entry *n, char *text, struct error *e)
{
	char *save = NULL;

	for (char *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		char *value = strchr(item, '=');
		int r;

		if (!value)
			return error_set(e, -EINVAL, "'%.60s' is not KEY=VALUE", item);
		*value++ = '\0';
		r = set_key(n, item, value, e);
		if (r)
			return r;
	}
	return 0;
}

static int check(const struct entry *n, struct error *e)
{
	const struct method_info *m = method_info(n->method);

	if (m->engine == ENGINE_SYNC && n->depth > 1)
		return error_set(e, -EINVAL, "depth needs an asynchronous method, %s is none", m->name);
	if (n->method == METHOD_MMAP && n->size % 4096)
		return error_set(e, -EINVAL, "mmap needs a size of whole pages");
	return 0;
}

int entry_parse(const char *text, struct entry *ret, struct error *e)
{
	struct entry n = {.size = 4096, .count = 1009, .seed = 1, .threads = 1, .depth = 1};
	char *copy = strdup(text), *save = NULL, *function, *method, *options;
	int r = -EINVAL;

	if (!copy)
		return error_set(e, -ENOMEM, "no memory");
	function = strtok_r(copy, ":", &save);
	method = strtok_r(NULL, ":", &save);
	options = strtok_r(NULL, "", &save);
	if (!function || !method)
		error_set(e, r, "'%.60s' is not FUNCTION:METHOD[:KEY=VALUE,…]", text);
	else if (!(n.issue = function_find(function)))
		error_set(e, r, "unknown function '%.60s' (see --list)", function);
	else if (method_parse(method, &n.method))
		error_set(e, r, "unknown method '%.60s' (see --list)", method);
	else
		r = options ? parse_options(&n, options, e) : 0;
	if (!r)
		r = check(&n, e);
	if (!r)
		r = copy_text(n.function, sizeof(n.function), function, "function", e);
	free(copy);
	if (!r)
		*ret = n;
	return r;
}

int plan_add(struct plan *p, const char *text, struct error *e)
{
	struct entry *grown, n;
	int r = entry_parse(text, &n, e);

	if (r)
		return r;
	grown = reallocarray(p->entries, p->count + 1, sizeof(*grown));
	if (!grown)
		return error_set(e, -ENOMEM, "no memory");
	p->entries = grown;
	p->entries[p->count++] = n;
	return 0;
}

int plan_read(struct plan *p, const char *path, struct error *e)
{
	struct buf b = {0};
	char *save = NULL;
	int r = file_read(path, PLAN_MAX, &b);

	if (r) {
		buf_free(&b);
		return error_set(e, r, "cannot read the plan %s: %s", path, strerror(-r));
	}
	for (char *line = strtok_r((char *)b.data, "\n", &save); line && !r; line = strtok_r(NULL, "\n", &save)) {
		line += strspn(line, " \t");
		if (*line && *line != '#')
			r = plan_add(p, line, e);
	}
	buf_free(&b);
	return r;
}

void plan_free(struct plan *p)
{
	free(p->entries);
	*p = (struct plan){0};
}
