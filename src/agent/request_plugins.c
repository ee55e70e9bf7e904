// SPDX-License-Identifier: Apache-2.0
#include "agent/request_plugins.h"

#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/probes.h"
#include "common/config.h"

#define LINKS_MAX 16
#define FILES_MAX 64
#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)

struct declaration {
	uint32_t abi;
	const char *object, *map;
	struct config_pairs metrics;
};

static const struct config_key keys[] = {
	{ .section = "source", .key = "abi", .type = CONFIG_U32, .offset = offsetof(struct declaration, abi) },
	{ .section = "source", .key = "object", .type = CONFIG_TEXT, .offset = offsetof(struct declaration, object) },
	{ .section = "source", .key = "map", .type = CONFIG_TEXT, .offset = offsetof(struct declaration, map) },
	{ .section = "metrics", .key = "*", .type = CONFIG_PAIRS, .offset = offsetof(struct declaration, metrics) },
};

struct plugin {
	char name[32];
	struct config *texts;
	struct declaration d;
	struct breakdown_metric metrics[REQ_PLUGIN_VALUES];
	struct bpf_object *object;
	struct bpf_link *links[LINKS_MAX];
	unsigned n_links;
	int map;
};

struct request_plugins {
	struct plugin plugins[REQ_PLUGINS]; // each has metrics in the table
	unsigned n;
	unsigned n_sources;
	int sources[REQ_PLUGINS]; // maps of those that work
	request_plugins_say say;
	void *context;
};

static int word_of(const char *const *words, const char *text, size_t len, unsigned *ret)
{
	for (unsigned i = 0; words[i]; i++) {
		if (strlen(words[i]) != len || memcmp(words[i], text, len))
			continue;
		*ret = i;
		return 0;
	}
	return -EINVAL;
}

// "timer sum max what it is".
static int parse_metric(const char *field, const char *text, struct breakdown_metric *ret, struct error *e)
{
	static const char *const kinds[] = { "timer", "counter", "gauge", NULL };
	static const char *const combines[] = { "sum", "min", "max", "avg", NULL };
	unsigned words[3] = { 0 };

	for (unsigned i = 0; i < 3; i++) {
		size_t len = strcspn(text, " \t");

		if (word_of(i ? combines : kinds, text, len, &words[i]))
			return error_set(e, -EINVAL, "%s = '%.60s': write KIND WITHIN ACROSS TEXT, with timer, counter or gauge, and sum, min, "
					 "max or avg twice", field, text);
		text += len;
		text += strspn(text, " \t");
	}
	*ret = (struct breakdown_metric){ .field = field, .kind = words[0], .within = words[1], .across = words[2], .help = text,
					  .unit = words[0] == KIND_TIMER ? "ns" : "count" };
	return 0;
}

static int check_declaration(struct plugin *p, struct error *e)
{
	const struct config_pairs *m = &p->d.metrics;
	size_t len = strlen(p->name);

	if (p->d.abi != REQ_PLUGIN_ABI)
		return error_set(e, -EPROTO, "abi = %u, and this program has %d: get the plugin for it", p->d.abi, REQ_PLUGIN_ABI);
	if (!*p->d.object || strchr(p->d.object, '/'))
		return error_set(e, -EINVAL, "object: name a file of the same folder");
	if (!m->n || m->n > REQ_PLUGIN_VALUES)
		return error_set(e, -EINVAL, "[metrics] has %u lines; 1 to %d are allowed", m->n, REQ_PLUGIN_VALUES);
	for (unsigned i = 0; i < m->n; i++) {
		if (strncmp(m->name[i], p->name, len) || m->name[i][len] != '_')
			return error_set(e, -EINVAL, "%.60s: a plugin's metrics begin with its own name, %s_", m->name[i], p->name);
		if (parse_metric(m->name[i], m->value[i], &p->metrics[i], e))
			return -EINVAL;
	}
	return 0;
}

// Whoever can change it runs programs in the kernel. `type`: S_IFREG, S_IFDIR; reading a pipe would wait for ever.
static int check_owner(const char *path, mode_t type, struct error *e)
{
	struct stat st;

	if (lstat(path, &st))
		return error_set(e, -errno, "%.200s: %s", path, strerror(errno));
	if (st.st_uid || (st.st_mode & (S_IWGRP | S_IWOTH)) || S_ISLNK(st.st_mode))
		return error_set(e, -EPERM, "%.200s is not root's alone: chown root, chmod go-w, and no link", path);
	if ((st.st_mode & S_IFMT) != type)
		return error_set(e, -EINVAL, "%.200s is no %s", path, type == S_IFDIR ? "folder" : "file");
	return 0;
}

static int declare(struct plugin *p, struct breakdown_table *table, unsigned *ret_first, struct error *e)
{
	unsigned before = table->n, at;

	for (unsigned i = 0; i < p->d.metrics.n; i++) {
		int err = breakdown_table_add(table, &p->metrics[i], &at, e);

		if (err) {
			table->n = before;
			return err;
		}
	}
	*ret_first = before;
	return 0;
}

static int attach_all(struct plugin *p, struct error *e)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, p->object) {
		if (p->n_links == LINKS_MAX)
			return error_set(e, -E2BIG, "its object has more than %d programs", LINKS_MAX);
		p->links[p->n_links] = bpf_program__attach(program);
		if (!p->links[p->n_links])
			return error_set(e, -errno, "the kernel refuses to attach %.40s: %s", bpf_program__name(program), strerror(errno));
		p->n_links++;
	}
	return p->n_links ? 0 : error_set(e, -EINVAL, "its object has no program");
}

static int check_map(struct plugin *p, struct error *e)
{
	struct bpf_map *map = bpf_object__find_map_by_name(p->object, p->d.map);

	if (!map)
		return error_set(e, -ENOENT, "its object has no map '%.40s'", p->d.map);
	if (bpf_map__type(map) != BPF_MAP_TYPE_HASH || bpf_map__key_size(map) != sizeof(u32) ||
	    bpf_map__value_size(map) != sizeof(struct req_plugin_values) || bpf_map__map_flags(map))
		return error_set(e, -EINVAL, "map '%.40s' must be a preallocated hash of 4 bytes (a thread) to %zu (its sums)", p->d.map,
				 sizeof(struct req_plugin_values));
	bpf_map__set_max_entries(map, REQ_PLUGIN_THREADS);
	return 0;
}

static int load_object(struct plugin *p, const char *directory, struct error *e)
{
	char path[PATH_MAX], why[80];
	struct bpf_map *map;
	int err;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", directory, p->d.object) >= sizeof(path))
		return error_set(e, -ENAMETOOLONG, "its object's path is too long");
	err = check_owner(path, S_IFREG, e);
	if (err)
		return err;
	p->object = bpf_object__open_file(path, NULL);
	if (!p->object) {
		err = -errno;
		libbpf_strerror(err, why, sizeof(why)); // it has numbers of its own
		return error_set(e, err, "%.60s is no BPF object that can be read: %s", p->d.object, why);
	}
	err = check_map(p, e);
	if (err)
		return err;
	err = bpf_object__load(p->object);
	if (err)
		return error_set(e, err, "the kernel refuses its programs: %s (BLKPROF_DEBUG=1 shows why)", strerror(-err));
	map = bpf_object__find_map_by_name(p->object, p->d.map);
	p->map = bpf_map__fd(map);
	return attach_all(p, e);
}

static void plugin_detach(struct plugin *p)
{
	for (unsigned i = 0; i < p->n_links; i++)
		bpf_link__destroy(p->links[i]);
	p->n_links = 0;
	bpf_object__close(p->object);
	p->object = NULL;
}

static const struct declaration declaration_defaults = { .object = "", .map = "sums" };

int request_plugins_check(const char *name, const char *text, size_t size, struct error *e)
{
	struct breakdown_table table;
	struct plugin p = { .d = declaration_defaults };
	unsigned first;
	int err;

	snprintf(p.name, sizeof(p.name), "%s", name);
	breakdown_table_init(&table);
	err = config_parse(name, text, size, keys, sizeof(keys) / sizeof(*keys), &p.d, &p.texts, e);
	if (!err)
		err = check_declaration(&p, e);
	if (!err)
		err = declare(&p, &table, &first, e);
	config_free(p.texts);
	return err;
}

static int read_declaration(struct plugin *p, const char *directory, const char *file, struct error *e)
{
	char path[PATH_MAX];
	size_t len = strlen(file) - strlen(".conf");
	int err;

	if (len >= sizeof(p->name) || (size_t)snprintf(path, sizeof(path), "%s/%s", directory, file) >= sizeof(path))
		return error_set(e, -ENAMETOOLONG, "its name is longer than %zu bytes", sizeof(p->name) - 1);
	memcpy(p->name, file, len);
	p->name[len] = 0;
	p->d = declaration_defaults;
	err = check_owner(path, S_IFREG, e);
	if (!err)
		err = config_read(path, keys, sizeof(keys) / sizeof(*keys), &p->d, &p->texts, e);
	return err ? err : check_declaration(p, e);
}

static void refused(struct request_plugins *all, const char *file, const struct error *e)
{
	char text[700];

	snprintf(text, sizeof(text), "plugin %.60s is not used: %s", file, e->text);
	all->say(all->context, text);
}

static void load_one(struct request_plugins *all, const char *directory, const char *file, struct breakdown_table *table)
{
	struct plugin *p = &all->plugins[all->n];
	unsigned first = 0;
	struct error e = { "" };
	int err;

	if (all->n == REQ_PLUGINS) {
		error_set(&e, -ENOSPC, "%d are in use already", REQ_PLUGINS);
		refused(all, file, &e);
		return;
	}
	memset(p, 0, sizeof(*p));
	err = read_declaration(p, directory, file, &e);
	if (!err)
		err = declare(p, table, &first, &e);
	if (err) {
		refused(all, file, &e);
		config_free(p->texts);
		return;
	}
	all->n++;
	if (load_object(p, directory, &e)) {
		refused(all, file, &e);
		plugin_detach(p);
		return;
	}
	for (unsigned i = 0; i < p->d.metrics.n; i++)
		table->source[first + i] = (int)(all->n_sources * REQ_PLUGIN_VALUES + i);
	all->sources[all->n_sources++] = p->map;
}

static int is_declaration(const struct dirent *d)
{
	size_t len = strlen(d->d_name);

	return len > 5 && d->d_name[0] != '.' && !strcmp(d->d_name + len - 5, ".conf");
}

int request_plugins_load(const char *directory, struct breakdown_table *table, request_plugins_say say, void *context,
			 struct request_plugins **ret, struct error *e)
{
	struct request_plugins *all;
	struct dirent **files;
	int err = check_owner(directory, S_IFDIR, e), n;

	if (err)
		return error_prefix(e, err, "plugins");
	n = scandir(directory, &files, is_declaration, alphasort);
	if (n < 0)
		return error_set(e, -errno, "plugins: cannot read %.200s: %s", directory, strerror(errno));
	all = calloc(1, sizeof(*all));
	if (all) {
		all->say = say;
		all->context = context;
		probes_quiet();
	}
	for (int i = 0; i < n; i++) {
		if (all && i < FILES_MAX)
			load_one(all, directory, files[i]->d_name, table);
		free(files[i]);
	}
	free(files);
	if (!all)
		return error_set(e, -ENOMEM, "plugins: no memory");
	if (n > FILES_MAX)
		say(context, "plugins: more than " STRING(FILES_MAX) " declarations: those after them are not looked at");
	*ret = all;
	return 0;
}

void request_plugins_free(struct request_plugins *all)
{
	if (!all)
		return;
	for (unsigned i = 0; i < all->n; i++) {
		plugin_detach(&all->plugins[i]);
		config_free(all->plugins[i].texts);
	}
	free(all);
}

unsigned request_plugins_maps(const struct request_plugins *all, int ret[REQ_PLUGINS])
{
	memcpy(ret, all->sources, sizeof(all->sources));
	return all->n_sources;
}
