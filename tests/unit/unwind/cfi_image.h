// SPDX-License-Identifier: Apache-2.0
// Small ELF files with call frame information, byte by byte, and tables as text, so that tests read as what they expect.
#ifndef BLKPROF_TESTS_UNWIND_CFI_IMAGE_H
#define BLKPROF_TESTS_UNWIND_CFI_IMAGE_H

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>

#include "unit/symbolize/elf_image.h"
#include "unwind/unwind.h"

// .text comes first and is followed by the section that a test is about.
#define TEXT	  (IMAGE_BASE + 240u)
#define TEXT_SIZE 4096u
#define FRAMES	  (TEXT + TEXT_SIZE)

#define BYTES(...) ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })

enum {
	RAX = 0,
	RBX = 3,
	RBP = 6,
	RSP = 7,
	R10 = 10,
	RIP = 16
};

// What every compiler begins with: the CFA is rsp + 8, the return address is saved at CFA - 8.
#define CIE_USUAL BYTES(DW_CFA_def_cfa, RSP, 8, DW_CFA_offset | RIP, 1)

static inline void put32(struct buf *b, uint64_t v)
{
	uint32_t v32 = (uint32_t)v;

	buf_append(b, &v32, 4);
}

static inline void put64(struct buf *b, uint64_t v)
{
	buf_append(b, &v, 8);
}

// A length is written when its entry is complete.
static inline size_t entry_begin(struct buf *b)
{
	put32(b, 0);
	return b->len;
}

static inline void entry_end(struct buf *b, size_t begin)
{
	uint32_t len;

	while ((b->len - begin) % 4)
		buf_byte(b, DW_CFA_nop);
	len = (uint32_t)(b->len - begin);
	memcpy(b->data + begin - 4, &len, 4);
}

// A CIE of version 1; `data` are the bytes that belong to the letters behind z.
static inline size_t put_cie(struct buf *b, bool eh_frame, const char *augmentation, const uint8_t *data, size_t data_len,
			     const uint8_t *code, size_t len)
{
	size_t at = b->len, begin = entry_begin(b);

	put32(b, eh_frame ? 0 : UINT32_MAX);
	buf_byte(b, 1);
	buf_append(b, augmentation, strlen(augmentation) + 1);
	buf_byte(b, 1);	   // code alignment factor
	buf_byte(b, 0x78); // data alignment factor -8
	buf_byte(b, RIP);
	if (*augmentation == 'z') {
		buf_byte(b, (uint8_t)data_len);
		buf_append(b, data, data_len);
	}
	buf_append(b, code, len);
	entry_end(b, begin);
	return at;
}

// Of a CIE without augmentation: absolute pointers of 8 bytes.
static inline size_t put_fde(struct buf *b, bool eh_frame, size_t cie, uint64_t start, uint64_t size, const uint8_t *code, size_t len)
{
	size_t at = b->len, begin = entry_begin(b);

	put32(b, eh_frame ? begin - cie : cie);
	put64(b, start);
	put64(b, size);
	buf_append(b, code, len);
	entry_end(b, begin);
	return at;
}

static inline void text_begin(struct image *im)
{
	static const uint8_t text[TEXT_SIZE];

	image_begin(im);
	image_section(im, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text, sizeof(text), 0, 0);
}

static inline void frames_end(struct image *im, const char *name, struct buf *frames, uint64_t flags)
{
	image_section(im, name, SHT_PROGBITS, flags, frames->data, frames->len, 0, 0);
	buf_free(frames);
}

static inline int compile_bytes(const void *data, size_t len, const struct unwind_limits *limits, struct unwind_table **ret,
				struct error *e)
{
	int fd = image_fd(data, len), err = unwind_compile(fd, limits, ret, e);

	close(fd);
	return err;
}

static inline int compile_image(struct image *im, const struct unwind_limits *limits, struct unwind_table **ret, struct error *e)
{
	int err = compile_bytes(im->file.data, im->file.len, limits, ret, e);

	image_free(im);
	return err;
}

static inline void rule_text(struct buf *b, const struct unwind_rule *r)
{
	switch (r->cfa) {
	case UNWIND_CFA_NONE:
		buf_printf(b, "none");
		return;
	case UNWIND_CFA_END:
		buf_printf(b, "end");
		return;
	case UNWIND_CFA_SIGNAL:
		buf_printf(b, "signal%+d", r->cfa_offset);
		return;
	case UNWIND_CFA_PLT:
		buf_printf(b, "plt %d", r->cfa_offset);
		break;
	case UNWIND_CFA_RSP:
	case UNWIND_CFA_RBP:
		buf_printf(b, "%s%+d", r->cfa == UNWIND_CFA_RSP ? "rsp" : "rbp", r->cfa_offset);
		break;
	default:
		buf_printf(b, "*(%s%+d)%+d", r->cfa == UNWIND_CFA_DEREF_RSP ? "rsp" : "rbp", r->cfa_offset, r->cfa_add);
	}
	if (r->rbp == UNWIND_RBP_CFA)
		buf_printf(b, " rbp=*(cfa%+d)", r->rbp_offset);
	else if (r->rbp == UNWIND_RBP_FRAME)
		buf_printf(b, " rbp=*(rbp%+d)", r->rbp_offset);
	else if (r->rbp == UNWIND_RBP_UNKNOWN)
		buf_printf(b, " rbp=?");
}

// "0 rsp+8; 1 rsp+16 rbp=*(cfa-16)": addresses in hexadecimal, relative to .text. Without any rule it is empty.
static inline void table_text(struct buf *b, const struct unwind_table *t)
{
	for (unsigned i = 0; i < t->n_rows; i++) {
		uint64_t at = t->base + t->rows[i].pc - TEXT;

		buf_printf(b, "%s%llx ", i ? "; " : "", (unsigned long long)at);
		rule_text(b, &t->rules[t->rows[i].rule]);
	}
}

static inline void assert_table(const struct unwind_table *t, const char *want)
{
	struct buf b = { 0 };

	table_text(&b, t);
	buf_byte(&b, 0);
	assert_string_equal((char *)b.data, want);
	buf_free(&b);
}

// The table of a section of one CIE and one function at .text, of 0x100 bytes.
static inline void assert_program(const uint8_t *code, size_t len, const char *want)
{
	struct unwind_table *t = NULL;
	struct buf b = { 0 };
	struct error e = { "" };
	struct image im;

	text_begin(&im);
	put_fde(&b, true, put_cie(&b, true, "", NULL, 0, CIE_USUAL), TEXT, 0x100, code, len);
	frames_end(&im, ".eh_frame", &b, SHF_ALLOC);
	image_end(&im);
	if (compile_image(&im, NULL, &t, &e))
		fail_msg("%s", e.text);
	assert_table(t, want);
	unwind_table_free(t);
}

#endif
