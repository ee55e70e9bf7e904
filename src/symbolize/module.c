// SPDX-License-Identifier: Apache-2.0
#include "symbolize/module.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/plt.h"

#define TEXT_MAX	 512
#define OFFSET_NAMES_MAX 8192
#define MODULE_OVERHEAD	 2048 // paths, the tables of names, the entry by content
#define KNOWN_OVERHEAD	 128

static const struct sym_name unknown = { .display = "[unknown]" };

// "libfoo" of "/usr/lib/libfoo.so.1.2 (deleted)".
static char *stem_of(const char *path)
{
	const char *base = strrchr(path, '/'), *so;
	size_t len;

	base = base && base[1] ? base + 1 : path;
	len = strlen(base);
	if (len > 10 && !strcmp(base + len - 10, " (deleted)"))
		len -= 10;
	so = memmem(base, len, ".so", 3);
	if (so && so > base && (so + 3 == base + len || so[3] == '.'))
		len = (size_t)(so - base);
	return len ? strndup(base, len) : strdup("[unknown]");
}

struct sym_module *module_new(const char *path, const char *root)
{
	struct sym_module *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->elf.fd = m->mini.fd = m->debug.elf.fd = -1;
	m->path = strdup(path);
	m->stem = stem_of(path);
	m->root = root ? strdup(root) : NULL;
	if (!m->path || !m->stem || (root && !m->root)) {
		module_free(m);
		return NULL;
	}
	return m;
}

void module_drop(struct sym_module *m)
{
	dwarf_lines_free(m->dwarf);
	m->dwarf = NULL;
	symtab_free(m->table);
	m->table = NULL;
	debug_file_close(&m->debug);
	elf_file_close(&m->mini);
	eh_frame_free(&m->frames);
	memset(&m->go, 0, sizeof(m->go));
	m->mini_ok = m->loaded = m->lines_dropped = false;
}

void module_free(struct sym_module *m)
{
	if (!m)
		return;
	module_drop(m);
	elf_file_close(&m->elf);
	names_free(&m->names);
	free(m->path);
	free(m->root);
	free(m->stem);
	free(m);
}

static size_t elf_memory(const struct elf_file *f)
{
	return (f->image ? (size_t)f->size : 0) + f->sections_count * sizeof(*f->sections) + f->loads_count * sizeof(*f->loads);
}

// With what malloc and the tables of names cost.
size_t module_memory(const struct sym_module *m)
{
	return sizeof(*m) + MODULE_OVERHEAD + m->known * KNOWN_OVERHEAD + elf_memory(&m->elf) + elf_memory(&m->mini) + elf_memory(&m->debug.elf) +
	       symtab_memory(m->table) + dwarf_lines_memory(m->dwarf) + m->frames.count * sizeof(*m->frames.functions) + m->names.memory;
}

unsigned module_files(const struct sym_module *m)
{
	return (m->elf.fd >= 0) + (m->debug.elf.fd >= 0) + (m->dwarf != NULL);
}

static void close_file(struct elf_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

void module_close_files(struct sym_module *m)
{
	m->reopen = m->reopen || module_files(m);
	close_file(&m->elf);
	close_file(&m->debug.elf);
	// Line tables need their file: they are read again.
	if (m->dwarf) {
		dwarf_lines_free(m->dwarf);
		m->dwarf = NULL;
		m->lines_dropped = true;
	}
}

static int reopen_below(const char *root, const char *path, const struct file_id *id)
{
	int fd = file_open_below(root, path);
	struct file_id now;
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st)) {
		now = file_id_of(&st);
		if (file_id_equal(&now, id))
			return fd;
	}
	close(fd);
	return -1;
}

// The process whose root it was may have ended: what the host has under that path is taken when it is the same file.
static int reopen_file(const char *root, const char *path, const struct file_id *id)
{
	int fd = reopen_below(root, path, id);

	return fd < 0 && root ? reopen_below(NULL, path, id) : fd;
}

static void load_lines(struct sym_module *m)
{
	size_t max = symbolizer_table_max(m->owner);

	if (m->trusted && dwarf_lines_present(&m->elf))
		m->dwarf = dwarf_lines_new(&m->elf, max);
	else if (m->debug.found && m->debug.trusted && dwarf_lines_present(&m->debug.elf))
		m->dwarf = dwarf_lines_new(&m->debug.elf, max);
	if (m->dwarf)
		m->has_lines = true;
}

void module_reopen_files(struct sym_module *m)
{
	if (!m->reopen)
		return;
	m->reopen = false;
	if (m->elf_ok && !m->elf.image && m->elf.fd < 0) {
		m->elf.fd = reopen_file(m->root, m->path, &m->id);
		if (m->elf.fd < 0)
			error_set(&m->error, -ENOENT, "%s is gone", m->path);
	}
	if (m->debug.found && m->debug.elf.fd < 0)
		m->debug.elf.fd = reopen_file(m->debug.root, m->debug.path, &m->debug.id);
}

static void add_table(struct sym_module *m, const struct elf_file *f, uint32_t type)
{
	const struct elf_section *section = elf_file_section_type(f, type);
	int err;

	if (!section)
		return;
	err = symtab_add(m->table, f, section);
	if (err)
		error_set(&m->error, err, err == -E2BIG ? "more symbols than the memory allows" : "broken symbol table");
}

static bool has_symtab(const struct elf_file *f)
{
	const struct elf_section *section = elf_file_section_type(f, SHT_SYMTAB);

	return section && section->size;
}

// One full symbol table is enough: the file's own, else the debug file's; else the exported symbols and what the
// distribution left in .gnu_debugdata.
static void load(struct sym_module *m)
{
	m->loaded = true;
	m->is_go = elf_file_section(&m->elf, ".go.buildinfo") != NULL;
	m->table = symtab_new(&m->elf, symbolizer_table_max(m->owner));
	if (!m->table)
		return;
	if (!m->elf.image && (!has_symtab(&m->elf) || !dwarf_lines_present(&m->elf)))
		m->debug.found = debug_file_find(&m->debug, &m->elf, m->path, m->root, symbolizer_debug_root(m->owner));
	if (has_symtab(&m->elf)) {
		add_table(m, &m->elf, SHT_SYMTAB);
	} else if (m->debug.found && has_symtab(&m->debug.elf)) {
		add_table(m, &m->debug.elf, SHT_SYMTAB);
	} else {
		add_table(m, &m->elf, SHT_DYNSYM);
		go_table_open(&m->go, &m->elf);
		m->mini_ok = debug_data_open(&m->mini, &m->elf);
		if (m->mini_ok)
			add_table(m, &m->mini, SHT_SYMTAB);
	}
	symtab_sort(m->table);
	load_lines(m);
}

static void prepare(struct sym_module *m)
{
	symbolizer_touch(m->owner, m);
	module_reopen_files(m);
	if (!m->loaded && m->elf_ok)
		load(m);
	else if (m->lines_dropped)
		load_lines(m);
	m->lines_dropped = false;
}

static const struct sym_name *offset_name(struct sym_module *m, uint64_t offset)
{
	char text[TEXT_MAX];
	const struct sym_name *name;

	snprintf(text, sizeof(text), "%.256s+0x%llx", m->stem, (unsigned long long)offset);
	name = names_find_text(&m->names, text);
	if (!name && m->offset_names < OFFSET_NAMES_MAX) {
		name = names_text(&m->names, text);
		m->offset_names++;
	}
	// Too many names: the module's alone still tells where the time went.
	return name ? name : names_text(&m->names, m->stem);
}

struct function {
	uint64_t start, size; // virtual addresses; size 0 = unknown
	struct symtab_match match;
	struct go_function go;
	bool has_symbol, has_go;
};

// A symbol without a size gives way to a table that knows of a function behind it.
static bool find_function(struct sym_module *m, uint64_t address, struct function *ret)
{
	uint64_t start, size;

	ret->has_go = false;
	ret->has_symbol = m->table && symtab_find(m->table, address, &ret->match);
	if (ret->has_symbol && ret->match.size) {
		ret->start = ret->match.start;
		ret->size = ret->match.size;
		return true;
	}
	ret->has_go = m->go.count && go_table_find(&m->go, &m->elf, address, &ret->go);
	if (ret->has_go) {
		ret->start = ret->go.start;
		ret->size = ret->go.size;
		return true;
	}
	if (eh_frame_find(&m->frames, &m->elf, address, &start, &size)) {
		ret->has_symbol = ret->has_symbol && ret->match.start >= start;
		ret->start = ret->has_symbol ? ret->match.start : start;
		ret->size = size - (ret->start - start);
		return true;
	}
	ret->start = ret->has_symbol ? ret->match.start : address;
	ret->size = 0;
	return ret->has_symbol;
}

// Go's names have their own dots: "poll.(*FD).destroy" is no copy of anything. C code linked into the program is mangled
// or has no dot.
static const struct sym_name *symbol_name(struct sym_module *m, char *raw)
{
	size_t len = strlen(raw);

	if (!m->is_go || !strncmp(raw, "_Z", 2) || !strncmp(raw, "_R", 2))
		return names_symbol(&m->names, raw, "");
	if (len > 5 && !strcmp(raw + len - 5, ".abi0"))
		raw[len - 5] = 0; // the calling convention
	return names_text(&m->names, raw);
}

static const struct sym_name *new_name(struct sym_module *m, const struct function *f, const struct plt_stub *stub)
{
	char raw[SYMTAB_NAME_MAX];
	const struct sym_name *name = NULL;

	if (stub && plt_target(&m->elf, stub, raw, sizeof(raw)))
		name = names_symbol(&m->names, raw, "@plt");
	else if (!stub && (f->has_go ? go_table_name(&m->go, &m->elf, &f->go, raw, sizeof(raw))
				     : f->has_symbol && symtab_name(m->table, &f->match, raw)))
		name = symbol_name(m, raw);
	return name ? name : offset_name(m, f->start);
}

// Unwind information takes a whole linkage table for one function: its stubs come first.
static const struct sym_name *name_of(struct sym_module *m, uint64_t address)
{
	struct function f;
	struct plt_stub stub;
	const struct sym_name *name;
	bool known = find_function(m, address, &f), is_stub;

	is_stub = !(f.has_symbol && f.match.size) && plt_find(&m->elf, address, &stub);
	if (is_stub)
		f.start = stub.start;
	name = names_start(&m->names, f.start);
	if (name)
		return name;
	name = new_name(m, &f, is_stub ? &stub : NULL);
	if (name && (known || is_stub) && !sym_module_is_closed(m))
		names_set_start(&m->names, f.start, name);
	return name;
}

static unsigned fill_inlined(struct sym_module *m, uint64_t address, struct sym_line *lines)
{
	struct dwarf_line found[SYM_LINES_MAX];
	unsigned count = m->dwarf ? dwarf_lines_find(m->dwarf, address, found, SYM_LINES_MAX) : 0;

	for (unsigned i = 0; i < count; i++) {
		const struct sym_name *name = found[i].name ? names_symbol(&m->names, found[i].name, "") : NULL;
		const struct sym_name *file = found[i].file ? names_text(&m->names, found[i].file) : NULL;

		lines[i].name = name ? name->display : unknown.display;
		lines[i].system_name = name ? name->system : NULL;
		lines[i].file = file ? file->display : NULL;
		lines[i].line = found[i].line;
	}
	return count;
}

unsigned sym_module_lookup(struct sym_module *m, uint64_t file_offset, struct sym_line lines[SYM_LINES_MAX])
{
	const struct sym_name *name;
	uint64_t address;
	unsigned count = 0;

	memset(lines, 0, sizeof(*lines));
	prepare(m);
	if (m->elf_ok && elf_file_address(&m->elf, file_offset, &address)) {
		name = name_of(m, address);
		count = fill_inlined(m, address, lines);
	} else {
		name = offset_name(m, file_offset);
	}
	if (!count)
		count = 1;
	if (!name)
		name = &unknown;
	lines[count - 1].name = name->display;
	lines[count - 1].system_name = name->system;
	symbolizer_settle(m->owner, m);
	return count;
}

bool sym_module_function(struct sym_module *m, uint64_t file_offset, uint64_t *ret_start, uint64_t *ret_size)
{
	struct function f;
	uint64_t address, start;
	bool found;

	prepare(m);
	found = m->elf_ok && elf_file_address(&m->elf, file_offset, &address) && find_function(m, address, &f) && f.size &&
		elf_file_offset(&m->elf, f.start, &start);
	symbolizer_settle(m->owner, m);
	if (!found)
		return false;
	*ret_start = start;
	*ret_size = f.size;
	return true;
}

size_t sym_module_read(struct sym_module *m, uint64_t file_offset, void *out, size_t len)
{
	size_t n;

	symbolizer_touch(m->owner, m);
	module_reopen_files(m);
	n = elf_file_read(&m->elf, file_offset, out, len);
	symbolizer_settle(m->owner, m);
	return n;
}

void sym_module_key(const struct sym_module *m, struct sym_module_key *ret)
{
	*ret = m->key;
}

const char *sym_module_build_id(const struct sym_module *m)
{
	return m->build_id[0] ? m->build_id : NULL;
}

const char *sym_module_error(const struct sym_module *m)
{
	return m->error.text[0] ? m->error.text : NULL;
}

void sym_module_has(const struct sym_module *m, bool *ret_filenames, bool *ret_lines, bool *ret_inlines)
{
	*ret_filenames = *ret_lines = *ret_inlines = m->has_lines;
}
