// SPDX-License-Identifier: Apache-2.0
// One module, seen from inside the library.
#ifndef BLKPROF_SYMBOLIZE_MODULE_H
#define BLKPROF_SYMBOLIZE_MODULE_H

#include <sys/stat.h>

#include "elf/elf_file.h"
#include "symbolize/debug_file.h"
#include "symbolize/dwarf_lines.h"
#include "symbolize/eh_frame.h"
#include "symbolize/gopcln.h"
#include "symbolize/names.h"
#include "symbolize/symbolize.h"
#include "symbolize/symtab.h"

struct known_file;
struct content;

struct sym_module {
	struct symbolizer *owner;
	struct sym_module *prev, *next; // owner's list, last used first
	unsigned refs, known; // known: how many files are remembered for it
	struct known_file *known_files; // these; owner's
	struct content *content;	// owner's, or NULL
	char *path, *root, *stem;
	char build_id[2 * ELF_BUILD_ID_MAX + 1];
	struct sym_module_key key;
	struct error error;
	bool elf_ok, reopen; // reopen: descriptors were closed to save them
	struct file_id id;
	bool trusted; // nobody but root or this user could have written the file: libdw may read it
	struct elf_file elf;

	// What is loaded on the first look-up and dropped when memory is short.
	bool loaded;
	struct symtab *table;
	struct debug_file debug;
	struct elf_file mini; // .gnu_debugdata
	bool mini_ok;
	struct eh_frame frames;
	bool is_go;
	struct go_table go; // where there is no full symbol table
	struct dwarf_lines *dwarf;
	bool lines_dropped; // to be read again when the file is open

	bool has_lines; // ever had them
	struct names names;
	unsigned offset_names; // that were made of offsets
	size_t counted; // memory that is in the owner's sum
	uint64_t used;	// the owner's turn when it was last used
};

struct sym_module *module_new(const char *path, const char *root);
void module_free(struct sym_module *m);
// Drops symbols and line tables; names stay.
void module_drop(struct sym_module *m);
size_t module_memory(const struct sym_module *m);
void module_close_files(struct sym_module *m);
void module_reopen_files(struct sym_module *m);
unsigned module_files(const struct sym_module *m);

// Called by the module: makes it the last used one and keeps to the limits.
void symbolizer_touch(struct symbolizer *s, struct sym_module *m);
void symbolizer_settle(struct symbolizer *s, struct sym_module *m);
size_t symbolizer_table_max(const struct symbolizer *s);
const char *symbolizer_debug_root(const struct symbolizer *s);

#endif
