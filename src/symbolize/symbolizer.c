// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "common/hash.h"
#include "symbolize/kernel.h"
#include "symbolize/module.h"
#include "symbolize/names.h"

#define MEMORY_DEFAULT	 ((size_t)256 << 20)
#define FILES_MAX	 4096
#define UNUSED_MAX	 1024 // modules that nobody holds any more, kept in case they come back
#define UNUSED_TURNS	 60   // of symbolizer_close_idle, then they go
#define KNOWN_MAX	 64   // files remembered for one module
#define KERNEL_NAMES_MAX 4096
#define VDSO_MAX	 (256u << 10)

// A file that was seen: on the next time its content is not looked at.
struct known_file {
	struct file_id id;
	struct sym_module *module;
	struct known_file *next; // of the same module
	UT_hash_handle hh;
};

// Modules by what they contain: build-id and size; and by who wrote them, so that nobody lends names to the programs of
// others by copying a build-id: the host's files are never one with a container's.
struct content {
	struct sym_module_key key;
	struct sym_module *module;
	UT_hash_handle hh;
};

struct symbolizer {
	size_t memory_max, memory;
	size_t least; // memory that the last try to free some had to leave; 0 = it came to its goal
	char *debug_root;
	struct sym_module *modules; // last used first
	unsigned files, files_max, unused;
	uint64_t turn; // calls of symbolizer_close_idle
	struct known_file *known;
	struct content *contents;
	struct sym_module *vdso;
	struct kernel_symbols *kernel;
	char *kernel_path; // not read yet
	struct names kernel_names; // of addresses without a symbol
};

struct symbolizer *symbolizer_new(const struct symbolizer_options *options)
{
	struct symbolizer *s = calloc(1, sizeof(*s));
	struct rlimit limit = { .rlim_cur = 1024 };

	if (!s)
		return NULL;
	getrlimit(RLIMIT_NOFILE, &limit);
	s->files_max = limit.rlim_cur / 4 < FILES_MAX ? (unsigned)(limit.rlim_cur / 4) : FILES_MAX;
	s->memory_max = options && options->memory ? options->memory : MEMORY_DEFAULT;
	s->debug_root = strdup(options && options->debug_root ? options->debug_root : "/usr/lib/debug");
	if (options && options->kernel)
		s->kernel_path = strdup(options->kernel);
	if (!s->debug_root || (options && options->kernel && !s->kernel_path)) {
		symbolizer_free(s);
		return NULL;
	}
	return s;
}

static void forget(struct symbolizer *s, struct sym_module *m)
{
	struct known_file *k;

	while ((k = m->known_files)) {
		LL_DELETE(m->known_files, k);
		HASH_DEL(s->known, k);
		free(k);
	}
	if (!m->content)
		return;
	HASH_DEL(s->contents, m->content);
	free(m->content);
	m->content = NULL;
}

static void remove_module(struct symbolizer *s, struct sym_module *m)
{
	forget(s, m);
	DL_DELETE(s->modules, m);
	s->memory -= m->counted;
	s->files -= module_files(m);
	if (!m->refs)
		s->unused--;
	if (s->vdso == m)
		s->vdso = NULL;
	module_free(m);
}

void symbolizer_free(struct symbolizer *s)
{
	if (!s)
		return;
	while (s->modules)
		remove_module(s, s->modules);
	kernel_symbols_free(s->kernel);
	names_free(&s->kernel_names);
	free(s->debug_root);
	free(s->kernel_path);
	free(s);
}

size_t symbolizer_table_max(const struct symbolizer *s)
{
	return s->memory_max / 2;
}

const char *symbolizer_debug_root(const struct symbolizer *s)
{
	return s->debug_root;
}

static void count(struct symbolizer *s, struct sym_module *m)
{
	size_t now = module_memory(m);

	s->memory += now - m->counted;
	m->counted = now;
}

static void drop(struct symbolizer *s, struct sym_module *m)
{
	unsigned files = module_files(m);

	module_drop(m);
	s->files -= files - module_files(m);
	count(s, m);
}

// Least used first: modules nobody holds go whole, of the others what can be read again.
static void keep_memory(struct symbolizer *s, struct sym_module *current)
{
	struct sym_module *m, *before;

	// Not the way through all modules at each call where nothing is left to free.
	if (s->unused <= UNUSED_MAX && (s->memory <= s->memory_max || s->memory < s->least + s->memory_max / 16))
		return;
	for (m = s->modules ? s->modules->prev : NULL; m && (s->memory > s->memory_max || s->unused > UNUSED_MAX); m = before) {
		before = m == s->modules ? NULL : m->prev;
		if (m == current)
			continue;
		if (!m->refs)
			remove_module(s, m);
		else if (s->memory > s->memory_max && m->loaded)
			drop(s, m);
	}
	s->least = s->memory > s->memory_max ? s->memory : 0;
}

static void keep_files(struct symbolizer *s, struct sym_module *current)
{
	struct sym_module *m, *before;

	if (s->files <= s->files_max)
		return;
	// Some more than must be: the way there leads past all that are closed already.
	for (m = s->modules->prev; m && s->files > s->files_max - s->files_max / 4; m = before) {
		before = m == s->modules ? NULL : m->prev;
		if (m == current)
			continue;
		s->files -= module_files(m);
		module_close_files(m);
	}
}

void symbolizer_close_idle(struct symbolizer *s)
{
	struct sym_module *m, *next;

	s->turn++;
	DL_FOREACH_SAFE(s->modules, m, next) {
		if (!m->refs && m->used + UNUSED_TURNS < s->turn) {
			remove_module(s, m);
			continue;
		}
		if (m->used + 1 >= s->turn || !module_files(m))
			continue;
		s->files -= module_files(m);
		module_close_files(m);
		count(s, m);
	}
	keep_memory(s, NULL);
}

void symbolizer_touch(struct symbolizer *s, struct sym_module *m)
{
	m->used = s->turn;
	// What the module opens from here on is counted when it settles.
	s->files -= module_files(m);
	if (s->modules != m) {
		DL_DELETE(s->modules, m);
		DL_PREPEND(s->modules, m);
	}
}

void symbolizer_settle(struct symbolizer *s, struct sym_module *m)
{
	s->files += module_files(m);
	count(s, m);
	keep_memory(s, m);
	keep_files(s, m);
}

static struct sym_module *take(struct symbolizer *s, struct sym_module *m)
{
	if (!m->refs++)
		s->unused--;
	return m;
}

void sym_module_put(struct sym_module *m)
{
	if (m && m->refs && !--m->refs)
		m->owner->unused++;
}

bool sym_module_is_closed(const struct sym_module *m)
{
	return m->elf_ok && !m->elf.image && m->elf.fd < 0;
}

void sym_module_reopen(struct sym_module *m, int fd)
{
	struct file_id now;
	struct stat st;

	if (!sym_module_is_closed(m) || fstat(fd, &st))
		return;
	now = file_id_of(&st);
	if (!file_id_equal(&now, &m->id))
		return;
	symbolizer_touch(m->owner, m);
	m->elf.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	symbolizer_settle(m->owner, m);
}

static void insert(struct symbolizer *s, struct sym_module *m)
{
	m->owner = s;
	m->used = s->turn;
	m->refs = 1;
	DL_PREPEND(s->modules, m);
	symbolizer_settle(s, m);
}

static struct sym_module *find_known(struct symbolizer *s, const struct file_id *id)
{
	struct known_file *k;

	HASH_FIND(hh, s->known, id, sizeof(*id), k);
	return k ? k->module : NULL;
}

static void remember(struct symbolizer *s, const struct file_id *id, struct sym_module *m)
{
	struct known_file *k;

	if (m->known >= KNOWN_MAX)
		return;
	k = calloc(1, sizeof(*k));
	if (!k)
		return;
	k->id = *id;
	k->module = m;
	HASH_ADD(hh, s->known, id, sizeof(k->id), k);
	if (!k->hh.tbl) {
		free(k);
		return;
	}
	LL_PREPEND(m->known_files, k);
	m->known++;
}

// st may be NULL.
static void set_key(struct sym_module *m, const struct stat *st)
{
	struct sym_module_key *k = &m->key;

	memcpy(k->build_id, m->elf.build_id, m->elf.build_id_len);
	k->size = m->id.size;
	k->uid = st ? st->st_uid : 0;
	k->trusted = m->trusted;
	k->name = hash_bytes(m->stem, strlen(m->stem), 0);
	if (m->elf.build_id_len)
		return;
	k->device = m->id.device;
	k->inode = m->id.inode;
	k->modified = (uint64_t)m->id.modified;
}

static struct sym_module *find_content(struct symbolizer *s, const struct sym_module *m)
{
	struct content *c;

	HASH_FIND(hh, s->contents, &m->key, sizeof(m->key), c);
	return c ? c->module : NULL;
}

static void remember_content(struct symbolizer *s, struct sym_module *m)
{
	struct content *c = malloc(sizeof(*c));

	if (!c)
		return;
	memset(c, 0, sizeof(*c));
	c->key = m->key;
	c->module = m;
	HASH_ADD(hh, s->contents, key, sizeof(c->key), c);
	if (c->hh.tbl)
		m->content = c;
	else
		free(c);
}

static void open_module(struct sym_module *m, int fd)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (own < 0) {
		error_set(&m->error, -errno, "cannot keep the file open: %s", strerror(errno));
		return;
	}
	m->elf_ok = !elf_file_open(&m->elf, own, &m->error);
	for (unsigned i = 0; i < m->elf.build_id_len; i++)
		snprintf(m->build_id + 2 * i, 3, "%02x", m->elf.build_id[i]);
}

struct sym_module *symbolizer_module(struct symbolizer *s, int fd, const char *path, const char *root)
{
	struct sym_module *m, *same;
	struct file_id id;
	struct stat st;

	if (fstat(fd, &st))
		return symbolizer_missing(s, path, 0, 0);
	id = file_id_of(&st);
	m = find_known(s, &id);
	if (m)
		return take(s, m);
	m = module_new(path, root);
	if (!m)
		return NULL;
	m->id = id;
	m->trusted = file_trusted(&st, root);
	open_module(m, fd);
	set_key(m, &st);
	same = m->build_id[0] ? find_content(s, m) : NULL;
	if (same) {
		remember(s, &id, same);
		module_free(m);
		return take(s, same);
	}
	insert(s, m);
	remember(s, &id, m);
	if (m->build_id[0])
		remember_content(s, m);
	return m;
}

struct sym_module *symbolizer_missing(struct symbolizer *s, const char *path, dev_t dev, ino_t inode)
{
	// A size that no file has keeps it apart from the same file when it can be opened.
	struct file_id id = { .device = dev, .inode = inode, .size = UINT64_MAX };
	struct sym_module *m;

	id.modified = (int64_t)hash_bytes(path, strlen(path), 0);
	m = find_known(s, &id);
	if (m)
		return take(s, m);
	m = module_new(path, NULL);
	if (!m)
		return NULL;
	m->id = id;
	set_key(m, NULL);
	error_set(&m->error, -ENOENT, "the file was gone before it could be opened");
	insert(s, m);
	remember(s, &id, m);
	return m;
}

// The range of a mapping of this process by its name.
static bool own_mapping(const char *name, uintptr_t *ret_start, size_t *ret_len)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	if (!maps)
		return false;
	while (!found && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;

		found = strstr(line, name) && sscanf(line, "%lx-%lx", &start, &end) == 2 && end > start;
		if (found) {
			*ret_start = start;
			*ret_len = end - start;
		}
	}
	fclose(maps);
	return found;
}

static void open_vdso(struct sym_module *m)
{
	uintptr_t start;
	size_t len;
	uint8_t *image;

	if (!own_mapping("[vdso]", &start, &len) || len > VDSO_MAX || !(image = malloc(len))) {
		error_set(&m->error, -ENOENT, "this process has no vDSO");
		return;
	}
	memcpy(image, (const void *)start, len);
	m->elf_ok = !elf_file_open_image(&m->elf, image, len, &m->error);
	for (unsigned i = 0; i < m->elf.build_id_len; i++)
		snprintf(m->build_id + 2 * i, 3, "%02x", m->elf.build_id[i]);
}

struct sym_module *symbolizer_vdso(struct symbolizer *s)
{
	if (s->vdso)
		return take(s, s->vdso);
	s->vdso = module_new("[vdso]", NULL);
	if (!s->vdso)
		return NULL;
	open_vdso(s->vdso);
	set_key(s->vdso, NULL);
	insert(s, s->vdso);
	return s->vdso;
}

int symbolizer_load_kernel(struct symbolizer *s, const char *path)
{
	struct kernel_symbols *kernel;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = kernel_symbols_load(fd, &kernel);
	close(fd);
	if (err)
		return err;
	kernel_symbols_free(s->kernel);
	s->kernel = kernel;
	return 0;
}

const char *symbolizer_kernel(struct symbolizer *s, uint64_t address, const char **ret_module, uint64_t *ret_start)
{
	const struct sym_name *name;
	char text[48], *path = s->kernel_path;

	s->kernel_path = NULL;
	if (path)
		symbolizer_load_kernel(s, path);
	free(path);
	if (s->kernel)
		return kernel_symbols_find(s->kernel, address, ret_module, ret_start);
	if (ret_module)
		*ret_module = NULL;
	if (ret_start)
		*ret_start = address;
	// The low half: enough to tell functions apart, and it does not publish where the kernel was loaded.
	if (s->kernel_names.count >= KERNEL_NAMES_MAX)
		return "[kernel]";
	snprintf(text, sizeof(text), "[kernel]+0x%x", (unsigned)address & 0xfffffff);
	name = names_text(&s->kernel_names, text);
	return name ? name->display : "[kernel]";
}
