// SPDX-License-Identifier: Apache-2.0
// What is no file, what is beyond a limit, and files with every field set to nonsense: each has its own message, a table that
// comes out keeps its promises, and the sanitizers have nothing to say.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cfi_image.h"
#include "common/clock.h"

static const uint8_t push[] = { DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16 };

static void simple(struct image *im)
{
	struct buf b = { 0 };

	put_fde(&b, true, put_cie(&b, true, "", NULL, 0, CIE_USUAL), TEXT, 0x40, push, sizeof(push));
	text_begin(im);
	frames_end(im, ".eh_frame", &b, SHF_ALLOC);
	image_end(im);
}

static void assert_refused(const void *data, size_t len, const struct unwind_limits *limits, int code, const char *part)
{
	struct unwind_table *t = NULL;
	struct error e = { "" };

	assert_int_equal(compile_bytes(data, len, limits, &t, &e), code);
	assert_null(t);
	if (!strstr(e.text, part))
		fail_msg("'%s' is not about '%s'", e.text, part);
}

static void refuses_what_is_no_file_of_this_machine(void **state)
{
	struct image im;
	Elf64_Ehdr h;

	simple(&im);
	assert_refused("", 0, NULL, -EINVAL, "not an ELF file");
	assert_refused("#!/bin/sh\n#                                                       ", 60, NULL, -EINVAL, "not an ELF file");
	memcpy(&h, im.file.data, sizeof(h));
	h.e_machine = EM_AARCH64;
	memcpy(im.file.data, &h, sizeof(h));
	assert_refused(im.file.data, im.file.len, NULL, -EINVAL, "not an ELF file of x86-64");
	h.e_machine = EM_X86_64;
	h.e_phnum = 0;
	memcpy(im.file.data, &h, sizeof(h));
	assert_refused(im.file.data, im.file.len, NULL, -ENODATA, "no executable segment");
	image_free(&im);
	assert_int_equal(unwind_compile(-1, NULL, &(struct unwind_table *){ NULL }, NULL), -EBADF);
}

static void says_that_there_is_nothing(void **state)
{
	struct buf b = { 0 };
	struct image im;

	text_begin(&im);
	image_end(&im);
	assert_refused(im.file.data, im.file.len, NULL, -ENODATA, "neither .eh_frame nor .debug_frame");
	image_free(&im);
	put_cie(&b, true, "", NULL, 0, CIE_USUAL);
	text_begin(&im);
	frames_end(&im, ".eh_frame", &b, SHF_ALLOC);
	image_end(&im);
	assert_refused(im.file.data, im.file.len, NULL, -ENODATA, "describes no function");
	image_free(&im);
}

static void keeps_its_limits(void **state)
{
	struct unwind_limits l = { .file = 100 };
	struct buf b = { 0 }, code = { 0 };
	struct image im;

	simple(&im);
	assert_refused(im.file.data, im.file.len, &l, -EFBIG, "more than the limit of 100");
	l = (struct unwind_limits){ .cfi = 10 };
	assert_refused(im.file.data, im.file.len, &l, -EFBIG, ".eh_frame has");
	l = (struct unwind_limits){ .rows = 2 };
	assert_refused(im.file.data, im.file.len, &l, -EFBIG, "more than 2 rows");
	image_free(&im);

	for (unsigned i = 0; i < 2000000; i++)
		buf_byte(&code, DW_CFA_nop);
	put_fde(&b, true, put_cie(&b, true, "", NULL, 0, CIE_USUAL), TEXT, 0x40, code.data, code.len);
	buf_free(&code);
	text_begin(&im);
	frames_end(&im, ".eh_frame", &b, SHF_ALLOC);
	image_end(&im);
	l = (struct unwind_limits){ .cpu_ns = 1 };
	assert_refused(im.file.data, im.file.len, &l, -EFBIG, "time");
	image_free(&im);
}

static void refuses_corrupt_sections(void **state)
{
	struct unwind_limits l = { .cfi = 4096 };
	Elf64_Chdr header = { .ch_type = 77, .ch_size = 64 };
	struct buf b = { 0 };
	struct image im;
	uint32_t len = 1 << 20;

	simple(&im);
	image_patch(&im, 2, 0, &len, sizeof(len));
	assert_refused(im.file.data, im.file.len, NULL, -EBADMSG, "entry of a wrong length at offset 0x0");
	image_free(&im);
	for (int i = 0; i < 3; i++) {
		static const char *const parts[] = { "method 77", "has 1048576 bytes", "does not decompress" };

		if (i)
			header = (Elf64_Chdr){ .ch_type = ELFCOMPRESS_ZLIB, .ch_size = i == 1 ? 1 << 20 : 64 };
		buf_append(&b, &header, sizeof(header));
		buf_append(&b, "not zlib's", 10);
		text_begin(&im);
		frames_end(&im, ".debug_frame", &b, SHF_COMPRESSED);
		image_end(&im);
		assert_refused(im.file.data, im.file.len, &l, i == 1 ? -EFBIG : -EBADMSG, parts[i]);
		image_free(&im);
	}
	buf_append(&b, &header, 8);
	text_begin(&im);
	frames_end(&im, ".debug_frame", &b, SHF_COMPRESSED);
	image_end(&im);
	assert_refused(im.file.data, im.file.len, NULL, -EBADMSG, "has no header");
	image_free(&im);
	simple(&im);
	((Elf64_Shdr *)(im.file.data + im.file.len - im.count * sizeof(Elf64_Shdr)))[2].sh_offset = UINT64_MAX - 4;
	assert_refused(im.file.data, im.file.len, NULL, -EBADMSG, "outside of the file");
	image_free(&im);
}

static void look(const uint8_t *data, size_t len)
{
	struct unwind_limits l = { .rows = 10000, .cpu_ns = 1000000000 };
	struct unwind_table *t = NULL;
	struct error e = { "" };

	if (compile_bytes(data, len, &l, &t, &e)) {
		assert_null(t);
		assert_true(e.text[0]);
		return;
	}
	for (unsigned i = 0; i < t->n_rows; i++) {
		assert_true(t->rows[i].rule < t->n_rules);
		assert_true(!i || (t->rows[i].pc > t->rows[i - 1].pc && t->rows[i].rule != t->rows[i - 1].rule));
	}
	unwind_table_free(t);
}

static void full(struct image *im)
{
	uint8_t hdr[12] = { 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_omit, DW_EH_PE_omit };
	struct buf b = { 0 }, debug = { 0 };
	size_t cie = put_cie(&b, true, "zPLR", BYTES(DW_EH_PE_udata2, 0, 0, DW_EH_PE_udata4, DW_EH_PE_absptr), CIE_USUAL), begin;

	begin = entry_begin(&b);
	put32(&b, begin - cie);
	put64(&b, TEXT);
	put64(&b, 0x100);
	buf_append(&b, BYTES(4, 0, 0, 0, 0, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref,
			     DW_CFA_advance_loc1, 9, DW_CFA_remember_state, DW_CFA_expression, RBP, 2, DW_OP_breg6, 0,
			     DW_CFA_advance_loc | 2, DW_CFA_restore_state));
	entry_end(&b, begin);
	put32(&b, 0);
	put_fde(&debug, false, put_cie(&debug, false, "", NULL, 0, CIE_USUAL), TEXT + 0x200, 0x40, push, sizeof(push));
	text_begin(im);
	frames_end(im, ".eh_frame", &b, SHF_ALLOC);
	frames_end(im, ".debug_frame", &debug, 0);
	image_section(im, ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, hdr, sizeof(hdr), 0, 0);
	image_end(im);
}

static void try_fields(const struct image *im, size_t from, size_t to, size_t width)
{
	static const uint64_t values[] = { 0, 1, 0x7f, 0x80, 0xff, 0xfff0, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX - 7, UINT64_MAX };
	uint8_t *copy = malloc(im->file.len);

	assert_non_null(copy);
	memcpy(copy, im->file.data, im->file.len);
	for (size_t field = from; field + width <= to; field += width) {
		for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
			memcpy(copy + field, &values[i], width);
			look(copy, im->file.len);
		}
		memcpy(copy + field, im->file.data + field, width);
	}
	free(copy);
}

static void survives_broken_fields(void **state)
{
	struct image im;

	full(&im);
	look(im.file.data, im.file.len);
	for (size_t width = 1; width <= 8; width *= 2) {
		try_fields(&im, 0, 240, width);
		try_fields(&im, 240 + TEXT_SIZE, im.file.len, width);
	}
	image_free(&im);
}

static void survives_every_length(void **state)
{
	struct image im;

	full(&im);
	for (size_t len = 0; len < im.file.len; len += len > 300 && len < 4000 ? 64 : 1)
		look(im.file.data, len);
	image_free(&im);
}

// Entries that refer to two CIEs in turn, which share a place in the cache, each with a long program: the work of every entry
// is bounded by the CPU time, not by luck.
static void bounds_its_time(void **state)
{
	struct unwind_limits l = { .cpu_ns = 50000000 };
	struct unwind_table *t = NULL;
	struct buf b = { 0 }, code = { 0 };
	struct error e = { "" };
	struct image im;
	size_t cies[2];
	uint64_t before;

	for (unsigned i = 0; i < 100000; i++)
		buf_byte(&code, DW_CFA_nop);
	for (int i = 0; i < 2; i++) {
		while (b.len % 4096)
			put32(&b, 0);
		cies[i] = put_cie(&b, true, "", NULL, 0, code.data, code.len);
	}
	buf_free(&code);
	for (unsigned i = 0; i < 20000; i++)
		put_fde(&b, true, cies[i % 2], TEXT + i % 1024, 1, push, 1);
	text_begin(&im);
	frames_end(&im, ".eh_frame", &b, SHF_ALLOC);
	image_end(&im);
	before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	assert_int_equal(compile_image(&im, &l, &t, &e), -EFBIG);
	assert_true(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before < 20 * l.cpu_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_is_no_file_of_this_machine),
		cmocka_unit_test(says_that_there_is_nothing),
		cmocka_unit_test(keeps_its_limits),
		cmocka_unit_test(refuses_corrupt_sections),
		cmocka_unit_test(survives_broken_fields),
		cmocka_unit_test(survives_every_length),
		cmocka_unit_test(bounds_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
