// SPDX-License-Identifier: Apache-2.0
// Names for addresses. A module is one ELF file (an executable, a library, the vDSO), known by its build-id or, where it
// has none, by device and inode; it is opened once however many processes map it, its symbols are read on the first
// look-up, and it lives as long as the symbolizer unless the cache's bounds evict it.
// Everything read from files is hostile: bounded, checked, fuzzed. Not thread-safe.
#ifndef BLKPROF_SYMBOLIZE_SYMBOLIZE_H
#define BLKPROF_SYMBOLIZE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct symbolizer;
struct sym_module;

struct symbolizer_options {
	size_t memory;		// bytes of symbols kept, 0 = 256 MiB
	const char *debug_root; // host folder of debug files, NULL = /usr/lib/debug
	const char *kernel;	// symbolizer_load_kernel of it with the first look-up of a kernel address; NULL = not
};

struct sym_line {
	const char *name;	 // display name (section "Names" of docs/formats.md); owned by the module
	const char *system_name; // mangled name where it differs, or NULL
	const char *file;	 // source file where line tables are at hand, or NULL
	int64_t line;		 // 0 = unknown
};

#define SYM_LINES_MAX 16

// What tells a module from all others, also from one that was forgotten since: what it contains, who wrote it and its name
// where there is a build-id, else the file. Without padding: may be compared as bytes.
struct sym_module_key {
	uint8_t build_id[64];
	uint64_t size, uid, trusted;
	uint64_t name; // hash
	uint64_t device, inode, modified;
};

// Keeps files open to read names on demand, a quarter of RLIMIT_NOFILE (as it is now) at most; beyond that, and when they
// were not used for a while (symbolizer_close_idle), files are closed and opened again when needed: by sym_module_reopen,
// else by path, which only works while the file is there.
struct symbolizer *symbolizer_new(const struct symbolizer_options *options);
void symbolizer_free(struct symbolizer *s);
// Closes files that were not used since the last call but one, so that their file systems can be unmounted. What was
// parsed stays; modules that nobody holds go after sixty calls without use. Once a second or so.
void symbolizer_close_idle(struct symbolizer *s);

// The module of an open ELF file. fd stays the caller's. `path` is for display ("libc.so.6" of /usr/lib/…/libc.so.6),
// `root` the root of the process for debug files in its container ("/proc/123/root"), or NULL. Returns a module also for
// a file that is no ELF or is broken (it then names addresses libfoo+0x1a2b and sym_module_error says why); NULL only
// without memory.
struct sym_module *symbolizer_module(struct symbolizer *s, int fd, const char *path, const char *root);
// A module for a file that could not be opened (gone with its process): names only `basename+0x1a2b`.
struct sym_module *symbolizer_missing(struct symbolizer *s, const char *path, dev_t dev, ino_t inode);
// The module of the vDSO, read from this process's own.
struct sym_module *symbolizer_vdso(struct symbolizer *s);

// Each call of the three above takes a hold on the module that sym_module_put gives back. A module that nobody holds
// stays known until its memory is needed; one that is never put lives as long as the symbolizer.
void sym_module_put(struct sym_module *m); // also NULL
// Whether a look-up would have to open the file again; then whoever can lead to it may give it a descriptor, which stays
// the caller's. What is not the same file (device, inode, size, time) is not taken.
bool sym_module_is_closed(const struct sym_module *m);
void sym_module_reopen(struct sym_module *m, int fd);

void sym_module_key(const struct sym_module *m, struct sym_module_key *ret);
const char *sym_module_build_id(const struct sym_module *m); // hexadecimal or NULL
const char *sym_module_error(const struct sym_module *m);    // NULL when all is well
// What a mapping that is shown for this module may claim; known from the first look-up on.
void sym_module_has(const struct sym_module *m, bool *ret_filenames, bool *ret_lines, bool *ret_inlines);

// The lines of the code at a file offset, innermost inlined call first, the containing function last; at least one,
// at most SYM_LINES_MAX. Where there is no symbol: "libfoo+0x1a2b" (library without .so.N; the virtual address, as
// addr2line takes it, of the function's start where .eh_frame tells it, else of the code; a missing or broken file's:
// the file offset). A PLT stub is "read@plt". Names are owned by the module and stay while somebody holds it. Returns
// their number. Lines and inlined calls come from libdw, which is not made for hostile files: they are read only from
// files below the host's root that root or this user owns and nobody else may write.
unsigned sym_module_lookup(struct sym_module *m, uint64_t file_offset, struct sym_line lines[SYM_LINES_MAX]);
// Start and size of the function that holds the file offset (as file offsets); false when unknown.
bool sym_module_function(struct sym_module *m, uint64_t file_offset, uint64_t *ret_start, uint64_t *ret_size);
// Bytes of the file at an offset, for looking at instructions; the number read, at most len.
size_t sym_module_read(struct sym_module *m, uint64_t file_offset, void *out, size_t len);

// For readers of their own: a descriptor of the file (the caller's), of a copy for the vDSO; negative errno.
int sym_module_open(struct sym_module *m);
// The virtual address of the code at a file offset; the segment counts from its first page to its last.
bool sym_module_code_address(const struct sym_module *m, uint64_t file_offset, uint64_t *ret_address);
// What tells the file's content from all others: its build-id where only root or this user could have written the file,
// else device, inode, size and time. False when it was never opened.
bool sym_module_identity(const struct sym_module *m, char *out, size_t cap);

// Kernel symbols from /proc/kallsyms (or a file of its form, for tests). -ENODATA when all addresses are hidden
// (kptr_restrict). Look-ups before give "[kernel]+0x…".
int symbolizer_load_kernel(struct symbolizer *s, const char *path);
// name of the function at a kernel address ("submit_bio", "xfs_file_write [xfs]" is split: module in ret_module, NULL
// for the core kernel); NULL when unknown. Owned by the symbolizer until the next load.
const char *symbolizer_kernel(struct symbolizer *s, uint64_t address, const char **ret_module, uint64_t *ret_start);

// Display name of a mangled or plain symbol: C++ and Rust without parameters and template arguments and hash suffix.
// Writes at most cap bytes, terminated, valid UTF-8; returns false when the name was already plain. What compilers append
// to copies (".isra.0", ".constprop.0", ".part.0", ".cold", ".llvm.123") is stripped too.
bool sym_display_name(const char *mangled, char *out, size_t cap);
// The same for a method as perf maps write it: "org.x.A.readBytes" of "void org.x.A.readBytes(byte[], int)" or
// "Lorg/x/A;::readBytes"; numbers of generated classes ($$Lambda$14/0x…, $Proxy12) stripped, since they differ from run
// to run. Returns false when the name was already so.
bool sym_java_name(const char *name, char *out, size_t cap);

#endif
