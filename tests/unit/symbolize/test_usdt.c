// SPDX-License-Identifier: Apache-2.0
// Probes of a program's own, from their notes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "elf/usdt.h"
#include "unit/symbolize/elf_image.h"

static void note(struct buf *b, uint32_t type, uint64_t at, uint64_t base, uint64_t semaphore, const char *provider, const char *name)
{
	uint64_t place[3] = { at, base, semaphore };
	uint32_t head[3] = { 8, (uint32_t)(sizeof(place) + strlen(provider) + strlen(name) + 3), type };

	buf_append(b, head, sizeof(head));
	buf_append(b, "stapsdt", 8);
	buf_append(b, place, sizeof(place));
	buf_append(b, provider, strlen(provider) + 1);
	buf_append(b, name, strlen(name) + 1);
	buf_byte(b, 0); // no arguments
	image_align(b, 4);
}

static void open_image(struct image *im, struct elf_file *f)
{
	struct error e;

	image_end(im);
	assert_int_equal(elf_file_open(f, image_fd(im->file.data, im->file.len), &e), 0);
	image_free(im);
}

static void begin(struct image *im, uint64_t *ret_code, const struct buf *notes)
{
	static const uint8_t code[64], base[1];

	image_begin(im);
	*ret_code = image_offset(im, image_section(im, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, code, sizeof(code), 0, 0));
	image_section(im, ".stapsdt.base", SHT_PROGBITS, SHF_ALLOC, base, sizeof(base), 0, 0);
	image_section(im, ".note.stapsdt", SHT_NOTE, 0, notes->data, notes->len, 0, 0);
}

// Where code and base lie in the images of this file.
static void layout(uint64_t *ret_code, uint64_t *ret_base)
{
	struct buf none = { 0 };
	struct image im;

	begin(&im, ret_code, &none);
	*ret_base = image_find(&im, ".stapsdt.base")->sh_addr;
	image_free(&im);
}

static void probes_are_found(void **state)
{
	uint64_t code, base, places[8];
	struct buf notes = { 0 };
	struct elf_file f;
	struct image im;

	layout(&code, &base);
	note(&notes, 3, IMAGE_BASE + code + 4, base, 0, "hotspot", "gc__begin");
	note(&notes, 3, IMAGE_BASE + code + 8, base, 0, "hotspot", "gc__begin_not");
	note(&notes, 3, IMAGE_BASE + code + 12, base, 0, "hotspot_jni", "gc__begin");
	note(&notes, 1, IMAGE_BASE + code + 16, base, 0, "hotspot", "gc__begin");
	note(&notes, 3, IMAGE_BASE + code + 20, base, 1, "hotspot", "gc__begin"); // has a semaphore
	note(&notes, 3, IMAGE_BASE + code + 0x1000 + 24, base + 0x1000, 0, "hotspot", "gc__begin"); // prelinked
	note(&notes, 3, 28, base, 0, "hotspot", "gc__begin"); // nowhere
	note(&notes, 3, IMAGE_BASE + code + 32, base, 0, "hotspot", "gc__begin");
	begin(&im, &code, &notes);
	open_image(&im, &f);
	assert_int_equal(usdt_find(&f, "hotspot", "gc__begin", places, 8), 3);
	assert_int_equal(places[0], code + 4);
	assert_int_equal(places[1], code + 24);
	assert_int_equal(places[2], code + 32);
	assert_int_equal(usdt_find(&f, "hotspot", "gc__begin", places, 2), 2);
	assert_int_equal(usdt_find(&f, "hotspot", "gc", places, 8), 0);
	elf_file_close(&f);
	buf_free(&notes);
}

// Each length of what there is of two notes: what is whole is found, and nothing beyond is read.
static void cut_notes(void **state)
{
	uint64_t code, base, places[8];
	struct buf notes = { 0 };
	size_t first;

	layout(&code, &base);
	note(&notes, 3, IMAGE_BASE + code + 4, base, 0, "a", "b");
	first = notes.len;
	note(&notes, 3, IMAGE_BASE + code + 8, base, 0, "a", "b");
	for (size_t len = 0; len <= notes.len; len++) {
		struct buf part = { .data = notes.data, .len = len };
		struct elf_file f;
		struct image im;

		begin(&im, &code, &part);
		open_image(&im, &f);
		// Only padding may be lacking.
		assert_int_equal(usdt_find(&f, "a", "b", places, 8), (len + 3 >= first) + (len + 3 >= notes.len));
		elf_file_close(&f);
	}
	buf_free(&notes);
}

static void no_notes(void **state)
{
	struct elf_file f;
	struct image im;
	uint64_t place;

	image_begin(&im);
	open_image(&im, &f);
	assert_int_equal(usdt_find(&f, "a", "b", &place, 1), 0);
	elf_file_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes_are_found),
		cmocka_unit_test(cut_notes),
		cmocka_unit_test(no_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
