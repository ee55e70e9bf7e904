// SPDX-License-Identifier: Apache-2.0
// Every field of every header set to every kind of nonsense, and the file cut at every length: a name always comes, and
// the sanitizers have nothing to say.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "elf_image.h"
#include "symbolize/symbolize.h"

static unsigned named; // look-ups that still found the function

static void look(const uint8_t *data, size_t len, const struct image_layout *at)
{
	static const uint16_t places[] = { 0, 0x10, 0x85, 0x110, 0x210, 0x305, 0x3f8 };
	struct symbolizer *s = symbolizer_new(NULL);
	struct sym_line lines[SYM_LINES_MAX];
	int fd = image_fd(data, len);
	struct sym_module *m = symbolizer_module(s, fd, "/lib/libfoo.so", NULL);
	uint64_t start, size;

	close(fd);
	assert_non_null(m);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		unsigned n = sym_module_lookup(m, at->text + places[i], lines);

		assert_true(n >= 1 && n <= SYM_LINES_MAX && lines[n - 1].name && lines[n - 1].name[0]);
		named += !strcmp(lines[n - 1].name, "pread64");
		sym_module_function(m, at->text + places[i], &start, &size);
	}
	sym_module_lookup(m, at->plt + 0x18, lines);
	symbolizer_free(s);
}

static void try_fields(const struct image *im, const struct image_layout *at, size_t from, size_t to, size_t width)
{
	static const uint64_t values[] = { 0, 1, 0x7f, 0xff, 0xfff0, 0xffff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX - 7,
					   UINT64_MAX };
	uint8_t *copy = malloc(im->file.len);

	assert_non_null(copy);
	for (size_t field = from; field + width <= to; field += width)
		for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
			memcpy(copy, im->file.data, im->file.len);
			memcpy(copy + field, &values[i], width);
			look(copy, im->file.len, at);
		}
	free(copy);
}

static void breaks_headers(void **state)
{
	struct image im;
	struct image_layout at = image_full(&im);
	size_t sections;

	named = 0;
	look(im.file.data, im.file.len, &at);
	assert_int_equal(named, 1);
	sections = im.file.len - im.count * sizeof(Elf64_Shdr);
	try_fields(&im, &at, 0, sizeof(Elf64_Ehdr), 1);
	try_fields(&im, &at, 0, sizeof(Elf64_Ehdr), 2);
	try_fields(&im, &at, 0, sizeof(Elf64_Ehdr) + IMAGE_SEGMENTS * sizeof(Elf64_Phdr), 4);
	try_fields(&im, &at, 0, sizeof(Elf64_Ehdr) + IMAGE_SEGMENTS * sizeof(Elf64_Phdr), 8);
	try_fields(&im, &at, sections, im.file.len, 4);
	try_fields(&im, &at, sections, im.file.len, 8);
	assert_true(named > 1000); // most nonsense is in fields that do not matter here
	image_free(&im);
}

static void breaks_contents(void **state)
{
	static const char *const sections[] = { ".note.gnu.build-id", ".eh_frame", ".eh_frame_hdr", ".dynsym", ".dynstr",
						".rela.plt", ".plt", ".gopclntab" };
	struct image im;
	struct image_layout at = image_full(&im);

	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		const Elf64_Shdr *s = image_find(&im, sections[i]);

		assert_non_null(s);
		try_fields(&im, &at, s->sh_offset, s->sh_offset + s->sh_size, 1);
		try_fields(&im, &at, s->sh_offset, s->sh_offset + s->sh_size, 4);
	}
	image_free(&im);
}

static void cuts_the_file(void **state)
{
	struct image im;
	struct image_layout at = image_full(&im);

	for (size_t len = 0; len < im.file.len; len += len < 512 ? 1 : 7)
		look(im.file.data, len, &at);
	image_free(&im);
}

// The file shrinks, and changes, while it is in use.
static void shrinks_in_use(void **state)
{
	struct symbolizer *s = symbolizer_new(NULL);
	struct sym_line lines[SYM_LINES_MAX];
	struct image im;
	struct image_layout at = image_full(&im);
	int fd = image_fd(im.file.data, im.file.len);
	struct sym_module *m = symbolizer_module(s, fd, "/lib/libfoo.so", NULL);
	char byte;

	assert_int_equal(sym_module_lookup(m, at.text + 0x10, lines), 1);
	assert_string_equal(lines[0].name, "pread64");
	assert_int_equal(ftruncate(fd, 100), 0);
	sym_module_lookup(m, at.text + 0x10, lines);
	assert_string_equal(lines[0].name, "pread64");
	sym_module_lookup(m, at.text + 0x90, lines);
	assert_int_equal(strncmp(lines[0].name, "libfoo+0x", 9), 0);
	assert_int_equal(sym_module_read(m, at.text, &byte, 1), 0);
	close(fd);
	image_free(&im);
	symbolizer_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(breaks_headers),
		cmocka_unit_test(breaks_contents),
		cmocka_unit_test(cuts_the_file),
		cmocka_unit_test(shrinks_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
