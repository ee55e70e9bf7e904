// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "elf_image.h"
#include "symbolize/symbolize.h"

static struct sym_module *open_image(struct symbolizer *s, const struct image *im, const char *path)
{
	int fd = image_fd(im->file.data, im->file.len);
	struct sym_module *m;

	assert_true(fd >= 0);
	m = symbolizer_module(s, fd, path, NULL);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC); // still open: it stays the caller's
	close(fd);
	assert_non_null(m);
	return m;
}

static const char *name_at(struct sym_module *m, uint64_t offset)
{
	struct sym_line lines[SYM_LINES_MAX];
	unsigned n = sym_module_lookup(m, offset, lines);

	assert_true(n >= 1 && n <= SYM_LINES_MAX);
	assert_non_null(lines[n - 1].name);
	return lines[n - 1].name;
}

static void names_functions(void **state)
{
	struct symbolizer *s = symbolizer_new(NULL);
	struct sym_line lines[SYM_LINES_MAX];
	struct image im;
	struct image_layout at = image_full(&im);
	struct sym_module *m = open_image(s, &im, "/usr/lib/libfoo.so.1.2");
	char text[64];
	uint64_t start, size;

	assert_null(sym_module_error(m));
	assert_string_equal(sym_module_build_id(m), "abababababababababababababababababababab");
	assert_string_equal(name_at(m, at.text + 0x10), "pread64");
	assert_string_equal(name_at(m, at.text + 0x4f), "pread64");
	assert_int_equal(sym_module_lookup(m, at.text + 0x85, lines), 1);
	assert_string_equal(lines[0].name, "rocksdb::DB::Get");
	assert_string_equal(lines[0].system_name, "_ZN7rocksdb2DB3GetERKNS_5SliceE");
	assert_null(lines[0].file);
	assert_int_equal(sym_module_lookup(m, at.text + 0x10, lines), 1);
	assert_null(lines[0].system_name);

	// Behind the end of a symbol that has a size, and before the first.
	snprintf(text, sizeof(text), "libfoo+0x%llx", (unsigned long long)(IMAGE_BASE + at.text + 0x50));
	assert_string_equal(name_at(m, at.text + 0x50), text);
	snprintf(text, sizeof(text), "libfoo+0x%llx", (unsigned long long)(IMAGE_BASE + at.text + 1));
	assert_string_equal(name_at(m, at.text + 1), text);
	// Two places in one function without a name are one function.
	snprintf(text, sizeof(text), "libfoo+0x%llx", (unsigned long long)(IMAGE_BASE + at.text + 0x200));
	assert_string_equal(name_at(m, at.text + 0x210), text);
	assert_string_equal(name_at(m, at.text + 0x25f), text);
	// A label holds up to what unwind information says is another function.
	assert_string_equal(name_at(m, at.text + 0x3a0), "in_assembler");
	snprintf(text, sizeof(text), "libfoo+0x%llx", (unsigned long long)(IMAGE_BASE + at.text + 0x3f0));
	assert_string_equal(name_at(m, at.text + 0x3f8), text);
	assert_string_equal(name_at(m, at.text + 0x125), "main.(*T).destroy");
	// A stub of the linkage table, and the table's head, which is nobody's.
	assert_string_equal(name_at(m, at.plt + 0x18), "pwrite64@plt");
	assert_null(strstr(name_at(m, at.plt + 4), "@plt"));
	// Outside of what is loaded.
	assert_string_equal(name_at(m, 0x7fffffff), "libfoo+0x7fffffff");
	assert_string_equal(name_at(m, UINT64_MAX), "libfoo+0xffffffffffffffff");

	assert_true(sym_module_function(m, at.text + 0x90, &start, &size));
	assert_int_equal(start, at.text + 0x80);
	assert_int_equal(size, 0x80);
	assert_true(sym_module_function(m, at.text + 0x220, &start, &size));
	assert_int_equal(start, at.text + 0x200);
	assert_int_equal(size, 0x60);
	assert_false(sym_module_function(m, at.text + 1, &start, &size));
	image_free(&im);
	symbolizer_free(s);
}

static void walks_frames_without_a_table(void **state)
{
	struct symbolizer *s = symbolizer_new(NULL);
	uint8_t code[0x100] = { 0 };
	struct image im;
	struct sym_module *m;
	unsigned text;
	char want[64];
	uint64_t at;

	image_begin(&im);
	text = image_section(&im, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, code, sizeof(code), 0, 0);
	at = im.sections[text].sh_addr;
	const struct image_function functions[] = { { at, 0x20 }, { at + 0x80, 0x20 }, { at + 0x40, 0x20 } };

	image_frames(&im, functions, 3, false);
	image_end(&im);
	m = open_image(s, &im, "prog");
	snprintf(want, sizeof(want), "prog+0x%llx", (unsigned long long)at + 0x40);
	assert_string_equal(name_at(m, image_offset(&im, text) + 0x5f), want);
	snprintf(want, sizeof(want), "prog+0x%llx", (unsigned long long)at + 0x60);
	assert_string_equal(name_at(m, image_offset(&im, text) + 0x60), want);
	image_free(&im);
	symbolizer_free(s);
}

// Nested symbols, aliases of all kinds, and versions in names.
static void picks_one_of_many(void **state)
{
	struct symbolizer *s = symbolizer_new(NULL);
	uint8_t code[0x200] = { 0 };
	struct image im;
	struct sym_module *m;
	unsigned text;
	uint64_t at, offset;

	image_begin(&im);
	text = image_section(&im, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, code, sizeof(code), 0, 0);
	at = im.sections[text].sh_addr;
	offset = image_offset(&im, text);
	image_symbol(&im, "a", STB_LOCAL, STT_FUNC, text, at, 0x10);
	image_symbol(&im, "__write", STB_GLOBAL, STT_FUNC, text, at, 0x10);
	image_symbol(&im, "__libc_write", STB_GLOBAL, STT_FUNC, text, at, 0x10);
	image_symbol(&im, "write@@GLIBC_2.2.5", STB_WEAK, STT_FUNC, text, at, 0x10);
	image_symbol(&im, "b", STB_GLOBAL, STT_NOTYPE, text, at, 0);
	image_symbol(&im, "outer", STB_GLOBAL, STT_FUNC, text, at + 0x20, 0x100);
	image_symbol(&im, "label_inside", STB_LOCAL, STT_NOTYPE, text, at + 0x30, 0);
	image_symbol(&im, "inner", STB_LOCAL, STT_FUNC, text, at + 0x40, 0x10);
	image_symbol(&im, "_ZN1XC2Ev", STB_GLOBAL, STT_FUNC, text, at + 0x140, 0x10);
	image_symbol(&im, "_ZN1XC1Ev", STB_GLOBAL, STT_FUNC, text, at + 0x140, 0x10);
	image_symbol(&im, "$x", STB_LOCAL, STT_NOTYPE, text, at + 0x160, 0);
	image_symbol(&im, "fetch.constprop.0.isra.0", STB_LOCAL, STT_FUNC, text, at + 0x180, 0x10);
	image_symbol(&im, "selector", STB_GLOBAL, STT_GNU_IFUNC, text, at + 0x1a0, 0x10);
	image_symbol(&im, "empty", STB_GLOBAL, STT_FUNC, text, at + 0x1c0, 0);
	image_symbol(&im, "follows_empty", STB_GLOBAL, STT_FUNC, text, at + 0x1c0, 0x10);
	image_symbols(&im, SHT_SYMTAB);
	image_end(&im);
	m = open_image(s, &im, "prog");
	assert_string_equal(name_at(m, offset + 0x1c5), "follows_empty");
	assert_string_equal(name_at(m, offset + 4), "write");
	assert_string_equal(name_at(m, offset + 0x22), "outer");
	assert_string_equal(name_at(m, offset + 0x35), "outer");
	assert_string_equal(name_at(m, offset + 0x45), "inner");
	assert_string_equal(name_at(m, offset + 0x60), "outer");
	assert_string_equal(name_at(m, offset + 0x145), "X::X");
	assert_int_equal(strncmp(name_at(m, offset + 0x165), "prog+0x", 7), 0);
	assert_string_equal(name_at(m, offset + 0x185), "fetch");
	assert_string_equal(name_at(m, offset + 0x1a5), "selector");
	image_free(&im);
	symbolizer_free(s);
}

static void expect_go(const struct image_go *given, const char *first, const char *second)
{
	struct symbolizer *s = symbolizer_new(NULL);
	struct image_go go = *given;
	uint8_t code[0x100] = { 0 };
	struct image im;
	struct sym_module *m;
	uint64_t start, size;
	unsigned text;

	image_begin(&im);
	text = image_section(&im, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, code, sizeof(code), 0, 0);
	go.text = im.sections[text].sh_addr;
	go.text_size = sizeof(code);
	go.entry += go.text;
	image_go_table(&im, &go);
	image_go_end(&im, &go);
	m = open_image(s, &im, "prog");
	if (first) {
		assert_string_equal(name_at(m, image_offset(&im, text) + 0x7f), first);
		assert_string_equal(name_at(m, image_offset(&im, text) + 0x80), second);
		assert_string_equal(name_at(m, image_offset(&im, text) + 0xff), second);
		assert_true(sym_module_function(m, image_offset(&im, text) + 0x90, &start, &size));
		assert_int_equal(start, image_offset(&im, text) + 0x80);
		assert_int_equal(size, 0x80);
	} else {
		assert_int_equal(strncmp(name_at(m, image_offset(&im, text) + 0x7f), "prog+0x", 7), 0);
	}
	image_free(&im);
	symbolizer_free(s);
}

static void names_stripped_go(void **state)
{
	const struct image_go of_1_20 = { .magic = 0xfffffff1, .says_text = true };
	const struct image_go of_1_18 = { .magic = 0xfffffff0, .says_text = true, .entry = 5 };
	const struct image_go of_1_16 = { .magic = 0xfffffffa };
	const struct image_go of_1_26 = { .magic = 0xfffffff1 };
	const struct image_go with_c = { .magic = 0xfffffff1, .entry = 0x90 };
	const struct image_go of_the_future = { .magic = 0xfffffff7, .says_text = true };

	expect_go(&of_1_20, "_rt0_amd64_linux", "main.(*T).destroy");
	expect_go(&of_1_18, "_rt0_amd64_linux", "main.(*T).destroy");
	expect_go(&of_1_16, "_rt0_amd64_linux", "main.(*T).destroy");
	expect_go(&of_1_26, "_rt0_amd64_linux", "main.(*T).destroy");
	// Where Go's code starts is not known: better no name than a wrong one.
	expect_go(&with_c, NULL, NULL);
	expect_go(&of_the_future, NULL, NULL);
}

static void names_what_is_no_elf(void **state)
{
	struct symbolizer *s = symbolizer_new(NULL);
	int text = image_fd("not a program", 13), folder = open("/", O_RDONLY | O_CLOEXEC);
	struct sym_module *m = symbolizer_module(s, text, "/opt/tool-1.2 (deleted)", NULL);
	uint64_t start, size;
	char byte[4];

	assert_string_equal(name_at(m, 0x1a2b), "tool-1.2+0x1a2b");
	assert_string_equal(sym_module_error(m), "not an ELF file");
	assert_null(sym_module_build_id(m));
	assert_false(sym_module_function(m, 1, &start, &size));
	assert_int_equal(sym_module_read(m, 4, byte, 4), 4);
	assert_memory_equal(byte, "a pr", 4);
	assert_int_equal(sym_module_read(m, 12, byte, 4), 1);

	m = symbolizer_module(s, folder, "/", NULL);
	assert_non_null(sym_module_error(m));
	assert_non_null(name_at(m, 1));
	m = symbolizer_missing(s, "/usr/lib/libgone.so.6", 1, 2);
	assert_string_equal(name_at(m, 0x1a2b), "libgone+0x1a2b");
	assert_ptr_equal(symbolizer_missing(s, "/usr/lib/libgone.so.6", 1, 2), m);
	assert_ptr_not_equal(symbolizer_missing(s, "/usr/lib/libgone.so.6", 1, 3), m);
	assert_non_null(sym_module_error(m));
	assert_int_equal(sym_module_read(m, 0, byte, 4), 0);
	assert_string_equal(name_at(symbolizer_missing(s, "", 0, 0), 1), "[unknown]+0x1");
	assert_string_equal(name_at(symbolizer_missing(s, "/lib/.so", 0, 0), 1), ".so+0x1");
	assert_string_equal(name_at(symbolizer_missing(s, "/l\xff" "b.so", 0, 0), 1), "l?b+0x1");
	for (unsigned i = 0; i < 20000; i++)
		name_at(m, 0x1a2b);
	assert_string_equal(name_at(m, 0x1a2c), "libgone+0x1a2c");
	// Offsets without end do not take memory without end.
	for (uint64_t offset = 0; offset < 20000; offset++)
		assert_int_equal(strncmp(name_at(m, offset), "libgone", 7), 0);
	assert_string_equal(name_at(m, 20000), "libgone");
	close(text);
	close(folder);
	symbolizer_free(s);
}

static void shares_modules(void **state)
{
	struct symbolizer *s = symbolizer_new(NULL);
	struct image im, other;
	struct image_layout at = image_full(&im);
	struct sym_module *a = open_image(s, &im, "/a/libfoo.so"), *b = open_image(s, &im, "/b/libfoo.so"), *c;

	image_full(&other);
	other.file.data[image_find(&other, ".note.gnu.build-id")->sh_offset + 20] ^= 1;
	c = open_image(s, &other, "/a/libfoo.so");
	assert_ptr_equal(a, b); // two files, one build-id
	assert_ptr_not_equal(a, c);
	assert_string_equal(name_at(a, at.text + 0x10), name_at(c, at.text + 0x10));
	image_free(&im);
	image_free(&other);
	symbolizer_free(s);
}

// Symbols go when memory is short and come back; names that were given out stay.
static void keeps_to_its_memory(void **state)
{
	struct symbolizer_options options = { .memory = 40000 };
	struct symbolizer *s = symbolizer_new(&options);
	struct sym_module *modules[64];
	const char *first[64];
	struct image_layout at = { 0 };
	struct image im;

	for (unsigned i = 0; i < 64; i++) {
		at = image_full(&im);
		im.file.data[image_find(&im, ".note.gnu.build-id")->sh_offset + 20] = (uint8_t)i;
		modules[i] = open_image(s, &im, "/lib/libfoo.so");
		first[i] = name_at(modules[i], at.text + 0x80);
		image_free(&im);
	}
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 64; i++) {
			assert_ptr_equal(name_at(modules[i], at.text + 0x81), first[i]);
			assert_string_equal(first[i], "rocksdb::DB::Get");
		}
	for (unsigned i = 0; i < 64; i++)
		sym_module_put(modules[i]);
	sym_module_put(NULL);
	at = image_full(&im);
	assert_string_equal(name_at(open_image(s, &im, "/lib/libfoo.so"), at.text + 0x10), "pread64");
	image_free(&im);
	symbolizer_free(s);
}

static unsigned open_files(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 2000; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

// More modules than descriptors: files are closed and opened again by their path, and only if they are the same.
static void keeps_to_its_files(void **state)
{
	struct rlimit limit, low;
	struct symbolizer *s;
	struct sym_module *modules[40];
	char folder[] = "/tmp/blkprof-symbolize-XXXXXX", path[64];
	struct image_layout at = { 0 };
	struct image im;
	unsigned before;

	assert_non_null(mkdtemp(folder));
	getrlimit(RLIMIT_NOFILE, &limit);
	low = limit;
	low.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	before = open_files();
	s = symbolizer_new(NULL);
	for (unsigned i = 0; i < 40; i++) {
		int fd;

		at = image_full(&im);
		im.file.data[image_find(&im, ".note.gnu.build-id")->sh_offset + 20] = (uint8_t)i;
		snprintf(path, sizeof(path), "%s/lib%u.so", folder, i);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		assert_int_equal(write(fd, im.file.data, im.file.len), im.file.len);
		modules[i] = symbolizer_module(s, fd, path, NULL);
		close(fd);
		image_free(&im);
		assert_true(open_files() <= before + 17);
	}
	snprintf(path, sizeof(path), "%s/lib1.so", folder);
	unlink(path);
	assert_string_equal(name_at(modules[0], at.text + 0x10), "pread64");
	assert_int_equal(strncmp(name_at(modules[1], at.text + 0x10), "lib1+0x", 7), 0);
	assert_non_null(strstr(sym_module_error(modules[1]), "is gone"));
	for (unsigned i = 2; i < 40; i++)
		assert_string_equal(name_at(modules[i], at.text + 0x10), "pread64");
	assert_true(open_files() <= before + 17);
	symbolizer_free(s);
	assert_int_equal(open_files(), before);
	setrlimit(RLIMIT_NOFILE, &limit);
	for (unsigned i = 0; i < 40; i++) {
		snprintf(path, sizeof(path), "%s/lib%u.so", folder, i);
		unlink(path);
	}
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_functions),	cmocka_unit_test(walks_frames_without_a_table),
		cmocka_unit_test(picks_one_of_many),	cmocka_unit_test(names_what_is_no_elf),
		cmocka_unit_test(shares_modules),	cmocka_unit_test(keeps_to_its_memory),
		cmocka_unit_test(keeps_to_its_files),	cmocka_unit_test(names_stripped_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
