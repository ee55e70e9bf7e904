// SPDX-License-Identifier: Apache-2.0
// Where call frame information is found, how its entries are encoded, and how functions become one table.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>
#include <cmocka.h>

#include "cfi_image.h"

static const uint8_t push[] = { DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16 };

static void assert_image(struct image *im, const char *want, unsigned unsupported)
{
	struct unwind_table *t = NULL;
	struct error e = { "" };

	image_end(im);
	if (compile_image(im, NULL, &t, &e))
		fail_msg("%s", e.text);
	assert_table(t, want);
	assert_int_equal(t->n_unsupported, unsupported);
	unwind_table_free(t);
}

static void assert_frames(struct buf *frames, const char *want)
{
	struct image im;

	text_begin(&im);
	frames_end(&im, ".eh_frame", frames, SHF_ALLOC);
	assert_image(&im, want, 0);
}

static void assert_fails(struct image *im, const struct unwind_limits *limits, int code, const char *part)
{
	struct unwind_table *t = NULL;
	struct error e = { "" };

	image_end(im);
	assert_int_equal(compile_image(im, limits, &t, &e), code);
	assert_null(t);
	if (!strstr(e.text, part))
		fail_msg("%s", e.text);
}

static void sorts_functions(void **state)
{
	struct buf b = { 0 };
	size_t cie = put_cie(&b, true, "", NULL, 0, CIE_USUAL);

	put_fde(&b, true, cie, TEXT + 0x200, 0x40, push, sizeof(push));
	put_fde(&b, true, cie, TEXT, 0x40, push, sizeof(push));
	put_fde(&b, true, cie, TEXT + 0x100, 0x40, push, sizeof(push));
	assert_frames(&b, "0 rsp+8; 1 rsp+16; 40 none; 100 rsp+8; 101 rsp+16; 140 none; 200 rsp+8; 201 rsp+16; 240 none");
}

// Of functions that overlap, the one that begins last counts; of those at one address the longest; empty ones never.
static void orders_functions_that_overlap(void **state)
{
	struct buf b = { 0 };
	size_t cie = put_cie(&b, true, "", NULL, 0, CIE_USUAL);

	put_fde(&b, true, cie, TEXT, 0x100, push, sizeof(push));
	put_fde(&b, true, cie, TEXT + 0x40, 0x40, BYTES(DW_CFA_def_cfa_offset, 32));
	put_fde(&b, true, cie, TEXT + 0x10, 0, BYTES(DW_CFA_def_cfa_offset, 24));
	put_fde(&b, true, cie, TEXT + 0x200, 0x20, BYTES(DW_CFA_def_cfa_offset, 40));
	put_fde(&b, true, cie, TEXT + 0x200, 0x80, BYTES(DW_CFA_def_cfa_offset, 48));
	assert_frames(&b, "0 rsp+8; 1 rsp+16; 40 rsp+32; 80 none; 200 rsp+48; 280 none");
}

static void takes_padding_for_the_function_before(void **state)
{
	struct buf b = { 0 };
	size_t cie = put_cie(&b, true, "", NULL, 0, CIE_USUAL);

	put_fde(&b, true, cie, TEXT, 0x31, BYTES(DW_CFA_nop));
	put_fde(&b, true, cie, TEXT + 0x40, 0x20, push, sizeof(push));
	put_fde(&b, true, cie, TEXT + 0x70, 0x20, BYTES(DW_CFA_nop));
	assert_frames(&b, "0 rsp+8; 41 rsp+16; 60 none; 70 rsp+8; 90 none");
}

static void leaves_out_what_is_not_code(void **state)
{
	struct buf b = { 0 };
	size_t cie = put_cie(&b, true, "", NULL, 0, CIE_USUAL);

	put_fde(&b, true, cie, 0, 0x40, push, sizeof(push)); // discarded by the linker
	put_fde(&b, true, cie, TEXT, 0x40, push, sizeof(push));
	put_fde(&b, true, cie, IMAGE_BASE + (1 << 30), 0x40, push, sizeof(push));
	assert_frames(&b, "0 rsp+8; 1 rsp+16; 40 none");
}

static void goes_on_behind_terminators(void **state)
{
	struct buf b = { 0 };
	size_t cie = put_cie(&b, true, "", NULL, 0, CIE_USUAL);

	put_fde(&b, true, cie, TEXT, 0x40, push, sizeof(push));
	put32(&b, 0);
	cie = put_cie(&b, true, "", NULL, 0, CIE_USUAL);
	put_fde(&b, true, cie, TEXT + 0x80, 0x40, push, sizeof(push));
	put32(&b, 0);
	assert_frames(&b, "0 rsp+8; 1 rsp+16; 40 none; 80 rsp+8; 81 rsp+16; c0 none");
}

// An FDE whose pointers have 4 bytes, relative to themselves, with the bytes of an augmentation.
static void put_relative(struct buf *b, size_t cie, uint64_t start, uint32_t size, const uint8_t *data, size_t len)
{
	size_t begin = entry_begin(b);

	put32(b, begin - cie);
	put32(b, start - (FRAMES + b->len));
	put32(b, size);
	buf_byte(b, (uint8_t)len);
	buf_append(b, data, len);
	buf_append(b, push, sizeof(push));
	entry_end(b, begin);
}

static void reads_augmentations(void **state)
{
	struct buf b = { 0 };
	size_t cie = put_cie(&b, true, "zR", BYTES(DW_EH_PE_pcrel | DW_EH_PE_sdata4), CIE_USUAL);

	put_relative(&b, cie, TEXT + 0x100, 0x40, NULL, 0);
	cie = put_cie(&b, true, "zPLR",
		      BYTES(DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4, 1, 2, 3, 4, DW_EH_PE_pcrel | DW_EH_PE_sdata4,
			    DW_EH_PE_pcrel | DW_EH_PE_sdata4),
		      CIE_USUAL);
	put_relative(&b, cie, TEXT, 0x40, BYTES(1, 2, 3, 4));
	cie = put_cie(&b, true, "zRS", BYTES(DW_EH_PE_pcrel | DW_EH_PE_sdata4), CIE_USUAL);
	put_relative(&b, cie, TEXT + 0x200, 0x40, NULL, 0);
	// more bytes than its letters take
	cie = put_cie(&b, true, "zR", BYTES(DW_EH_PE_pcrel | DW_EH_PE_sdata4, 0xff, 0xff), CIE_USUAL);
	put_relative(&b, cie, TEXT + 0x300, 0x40, NULL, 0);
	assert_frames(&b, "0 rsp+8; 1 rsp+16; 40 none; 100 rsp+8; 101 rsp+16; 140 none; 200 rsp+8; 201 rsp+16; 240 none; "
			  "300 rsp+8; 301 rsp+16; 340 none");
}

static void counts_what_it_cannot_read(void **state)
{
	static const uint8_t bad[][3] = { { DW_EH_PE_omit }, { DW_EH_PE_datarel | DW_EH_PE_sdata4 },
					  { DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4 },
					  { DW_EH_PE_pcrel | 0x07 } };
	struct buf b = { 0 };
	struct image im;
	size_t cie = put_cie(&b, true, "zR", BYTES(DW_EH_PE_pcrel | DW_EH_PE_sdata4), CIE_USUAL);

	put_relative(&b, cie, TEXT, 0x40, NULL, 0);
	for (size_t i = 0; i < 4; i++) {
		cie = put_cie(&b, true, "zR", bad[i], 1, CIE_USUAL);
		put_relative(&b, cie, TEXT + 0x100, 0x40, NULL, 0);
	}
	cie = put_cie(&b, true, "zRQ", BYTES(DW_EH_PE_pcrel | DW_EH_PE_sdata4), CIE_USUAL);
	put_relative(&b, cie, TEXT + 0x100, 0x40, NULL, 0);
	cie = put_cie(&b, true, "Q", NULL, 0, CIE_USUAL);
	put_relative(&b, cie, TEXT + 0x100, 0x40, NULL, 0);
	put_relative(&b, cie + 4, TEXT + 0x100, 0x40, NULL, 0); // its CIE is none
	cie = put_cie(&b, true, "", NULL, 0, CIE_USUAL);
	put_fde(&b, true, cie, TEXT + 0x100, UINT64_MAX - TEXT, push, sizeof(push)); // beyond all addresses
	text_begin(&im);
	frames_end(&im, ".eh_frame", &b, SHF_ALLOC);
	assert_image(&im, "0 rsp+8; 1 rsp+16; 40 none", 8);
}

static void finds_frames_without_section_headers(void **state)
{
	struct buf b = { 0 };
	uint8_t hdr[12] = { 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_omit, DW_EH_PE_omit };
	struct unwind_table *t = NULL;
	struct error e = { "" };
	struct image im;
	Elf64_Ehdr header;
	int32_t distance;
	unsigned section;

	put_fde(&b, true, put_cie(&b, true, "", NULL, 0, CIE_USUAL), TEXT, 0x40, push, sizeof(push));
	put32(&b, 0);
	text_begin(&im);
	frames_end(&im, ".eh_frame", &b, SHF_ALLOC);
	section = image_section(&im, ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, hdr, sizeof(hdr), 0, 0);
	distance = (int32_t)(FRAMES - (im.sections[section].sh_addr + 4));
	image_patch(&im, section, 4, &distance, 4);
	image_end(&im);
	memcpy(&header, im.file.data, sizeof(header));
	header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
	memcpy(im.file.data, &header, sizeof(header));
	if (compile_image(&im, NULL, &t, &e))
		fail_msg("%s", e.text);
	assert_table(t, "0 rsp+8; 1 rsp+16; 40 none");
	unwind_table_free(t);
}

static void put_debug_frame(struct buf *b)
{
	put_fde(b, false, put_cie(b, false, "", NULL, 0, CIE_USUAL), TEXT, 0x40, push, sizeof(push));
}

static void reads_debug_frame(void **state)
{
	struct buf b = { 0 };
	struct image im;

	put_debug_frame(&b);
	text_begin(&im);
	frames_end(&im, ".debug_frame", &b, 0);
	assert_image(&im, "0 rsp+8; 1 rsp+16; 40 none", 0);
}

static void reads_compressed_debug_frame(void **state)
{
	Elf64_Chdr header = { .ch_type = ELFCOMPRESS_ZLIB, .ch_addralign = 8 };
	struct buf b = { 0 }, packed = { 0 };
	uint8_t bytes[512];
	uLongf len = sizeof(bytes);
	struct image im;

	put_debug_frame(&b);
	header.ch_size = b.len;
	assert_int_equal(compress(bytes, &len, b.data, b.len), Z_OK);
	buf_free(&b);
	buf_append(&packed, &header, sizeof(header));
	buf_append(&packed, bytes, len);
	text_begin(&im);
	frames_end(&im, ".debug_frame", &packed, SHF_COMPRESSED);
	assert_image(&im, "0 rsp+8; 1 rsp+16; 40 none", 0);
}

// The form with lengths of 8 bytes, and version 4 with the sizes of an address and a segment.
static void reads_wide_debug_frame(void **state)
{
	static const uint8_t cie[] = { 4, 0, 8, 0, 1, 0x78, RIP, DW_CFA_def_cfa, RSP, 8, DW_CFA_offset | RIP, 1 };
	struct buf b = { 0 };
	struct image im;

	put32(&b, UINT32_MAX);
	put64(&b, 8 + sizeof(cie));
	put64(&b, UINT64_MAX);
	buf_append(&b, cie, sizeof(cie));
	put32(&b, UINT32_MAX);
	put64(&b, 8 + 16 + sizeof(push));
	put64(&b, 0);
	put64(&b, TEXT);
	put64(&b, 0x40);
	buf_append(&b, push, sizeof(push));
	text_begin(&im);
	frames_end(&im, ".debug_frame", &b, 0);
	assert_image(&im, "0 rsp+8; 1 rsp+16; 40 none", 0);
}

// What the program unwinds with itself goes before what is for debuggers.
static void merges_both_sections(void **state)
{
	struct buf eh = { 0 }, debug = { 0 };
	struct image im;
	size_t cie;

	put_fde(&eh, true, put_cie(&eh, true, "", NULL, 0, CIE_USUAL), TEXT, 0x20, push, sizeof(push));
	cie = put_cie(&debug, false, "", NULL, 0, CIE_USUAL);
	put_fde(&debug, false, cie, TEXT, 0x40, BYTES(DW_CFA_def_cfa_offset, 64));
	put_fde(&debug, false, cie, TEXT + 0x80, 0x40, BYTES(DW_CFA_def_cfa_offset, 32));
	text_begin(&im);
	frames_end(&im, ".eh_frame", &eh, SHF_ALLOC);
	frames_end(&im, ".debug_frame", &debug, 0);
	assert_image(&im, "0 rsp+8; 1 rsp+16; 20 none; 80 rsp+32; c0 none", 0);
}

static void leaves_go_to_frame_pointers(void **state)
{
	static const uint8_t pclntab[16];
	struct buf b = { 0 };
	struct image im;

	put_debug_frame(&b);
	text_begin(&im);
	image_section(&im, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, pclntab, sizeof(pclntab), 0, 0);
	frames_end(&im, ".debug_frame", &b, 0);
	assert_fails(&im, NULL, -ENODATA, "Go");
	// with C code in it
	put_fde(&b, true, put_cie(&b, true, "", NULL, 0, CIE_USUAL), TEXT + 0x80, 0x40, push, sizeof(push));
	put_fde(&b, true, 0, TEXT + 0x200, 0x40, push, sizeof(push));
	text_begin(&im);
	frames_end(&im, ".eh_frame", &b, SHF_ALLOC);
	image_section(&im, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, pclntab, sizeof(pclntab), 0, 0);
	assert_image(&im, "80 rsp+8; 81 rsp+16; c0 rbp+16 rbp=*(cfa-16); 200 rsp+8; 201 rsp+16; 240 rbp+16 rbp=*(cfa-16)", 0);
}

// The address where a context's function returns to was never called: the byte before it ends the walk.
static void ends_at_the_start_of_a_context(void **state)
{
	static const uint8_t mov_rbx_rsp[] = { 0x48, 0x89, 0xdc };
	static const char *const names[] = { "\0makecontext", "\0makecontext2" };

	for (int i = 0; i < 2; i++) {
		struct buf b = { 0 };
		struct image im;
		size_t cie = put_cie(&b, true, "", NULL, 0, CIE_USUAL);

		put_fde(&b, true, cie, TEXT, 0x3f, push, sizeof(push));
		put_fde(&b, true, cie, TEXT + 0x40, 0x20, push, sizeof(push));
		text_begin(&im);
		image_patch(&im, 1, 0x40, mov_rbx_rsp, sizeof(mov_rbx_rsp));
		frames_end(&im, ".eh_frame", &b, SHF_ALLOC);
		image_section(&im, ".dynstr", SHT_STRTAB, SHF_ALLOC, names[i], strlen(names[i] + 1) + 2, 0, 0);
		assert_image(&im, i ? "0 rsp+8; 1 rsp+16; 40 rsp+8; 41 rsp+16; 60 none"
				    : "0 rsp+8; 1 rsp+16; 3f end; 40 rsp+8; 41 rsp+16; 60 none", 0);
	}
}

static void finds_rules(void **state)
{
	struct buf b = { 0 };
	struct unwind_table *t = NULL;
	struct image im;

	put_fde(&b, true, put_cie(&b, true, "", NULL, 0, CIE_USUAL), TEXT + 0x10, 0x40, push, sizeof(push));
	text_begin(&im);
	frames_end(&im, ".eh_frame", &b, SHF_ALLOC);
	image_end(&im);
	assert_int_equal(compile_image(&im, NULL, &t, NULL), 0);
	assert_int_equal(t->base, IMAGE_BASE);
	assert_int_equal(unwind_find(t, 0)->cfa, UNWIND_CFA_NONE);
	assert_int_equal(unwind_find(t, TEXT + 0xf)->cfa, UNWIND_CFA_NONE);
	assert_int_equal(unwind_find(t, TEXT + 0x10)->cfa_offset, 8);
	assert_int_equal(unwind_find(t, TEXT + 0x11)->cfa_offset, 16);
	assert_int_equal(unwind_find(t, TEXT + 0x4f)->cfa_offset, 16);
	assert_int_equal(unwind_find(t, TEXT + 0x50)->cfa, UNWIND_CFA_NONE);
	assert_int_equal(unwind_find(t, UINT64_MAX)->cfa, UNWIND_CFA_NONE);
	assert_int_equal(unwind_find(t, TEXT + (UINT64_C(1) << 32))->cfa, UNWIND_CFA_NONE);
	unwind_table_free(t);
	unwind_table_free(NULL);
}

// More different rules than an index holds: those beyond are no rules, and counted.
static void bounds_the_number_of_rules(void **state)
{
	struct buf b = { 0 }, code = { 0 };
	struct unwind_table *t = NULL;
	struct image im;
	unsigned n = 70000;

	for (unsigned i = 0; i < n; i++) {
		uint8_t op[] = { DW_CFA_def_cfa_offset, 0x80 | (i & 0x7f), 0x80 | (i >> 7 & 0x7f), i >> 14, DW_CFA_advance_loc | 1 };

		buf_append(&code, op, sizeof(op));
	}
	put_fde(&b, true, put_cie(&b, true, "", NULL, 0, CIE_USUAL), TEXT, n, code.data, code.len);
	buf_free(&code);
	text_begin(&im);
	frames_end(&im, ".eh_frame", &b, SHF_ALLOC);
	image_end(&im);
	assert_int_equal(compile_image(&im, NULL, &t, NULL), 0);
	assert_int_equal(t->n_rules, UINT16_MAX);
	assert_int_equal(t->n_unsupported, n - (UINT16_MAX - 1));
	assert_int_equal(unwind_find(t, TEXT + 65533)->cfa_offset, 65533);
	assert_int_equal(unwind_find(t, TEXT + 65534)->cfa, UNWIND_CFA_NONE);
	unwind_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorts_functions),
		cmocka_unit_test(orders_functions_that_overlap),
		cmocka_unit_test(takes_padding_for_the_function_before),
		cmocka_unit_test(leaves_out_what_is_not_code),
		cmocka_unit_test(goes_on_behind_terminators),
		cmocka_unit_test(reads_augmentations),
		cmocka_unit_test(counts_what_it_cannot_read),
		cmocka_unit_test(finds_frames_without_section_headers),
		cmocka_unit_test(reads_debug_frame),
		cmocka_unit_test(reads_compressed_debug_frame),
		cmocka_unit_test(reads_wide_debug_frame),
		cmocka_unit_test(merges_both_sections),
		cmocka_unit_test(leaves_go_to_frame_pointers),
		cmocka_unit_test(ends_at_the_start_of_a_context),
		cmocka_unit_test(finds_rules),
		cmocka_unit_test(bounds_the_number_of_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
