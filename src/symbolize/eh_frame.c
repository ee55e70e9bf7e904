// SPDX-License-Identifier: Apache-2.0
#include "symbolize/eh_frame.h"

#include <stdlib.h>
#include <string.h>

#define PE_OMIT	    0xff
#define PE_INDIRECT 0x80
#define PE_PCREL    0x10
#define PE_DATAREL  0x30
#define PE_SDATA4   0x0b
#define HDR_TABLE   (PE_DATAREL | PE_SDATA4) // what every linker writes
#define CIE_MAX	    256			     // of a CIE its augmentation is read; it is at the start
#define WALK_MAX    50000		     // entries of an .eh_frame without a table

struct cursor {
	const uint8_t *data;
	size_t len, at;
	uint64_t address; // of data[0]
	bool bad;
};

static uint64_t take(struct cursor *c, size_t size)
{
	uint64_t v = 0;

	if (c->bad || size > c->len - c->at) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->data + c->at, size);
	c->at += size;
	return v;
}

static uint64_t take_leb(struct cursor *c, bool is_signed)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)take(c, 1);
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !c->bad);
	if (is_signed && shift < 64 && byte & 0x40)
		v |= ~UINT64_C(0) << shift;
	return v;
}

static uint64_t take_format(struct cursor *c, uint8_t encoding, bool is64)
{
	switch (encoding & 0x0f) {
	case 0x00:
		return take(c, is64 ? 8 : 4);
	case 0x01:
		return take_leb(c, false);
	case 0x02:
		return take(c, 2);
	case 0x03:
		return take(c, 4);
	case 0x04:
	case 0x0c:
		return take(c, 8);
	case 0x09:
		return take_leb(c, true);
	case 0x0a:
		return (uint64_t)(int64_t)(int16_t)take(c, 2);
	case PE_SDATA4:
		return (uint64_t)(int64_t)(int32_t)take(c, 4);
	default:
		c->bad = true;
		return 0;
	}
}

static uint64_t take_pointer(struct cursor *c, uint8_t encoding, bool is64)
{
	uint64_t here = c->address + c->at, v = take_format(c, encoding, is64);

	switch (encoding & 0x70) {
	case 0:
		break;
	case PE_PCREL:
		v += here;
		break;
	default:
		c->bad = true;
	}
	if (encoding & PE_INDIRECT)
		c->bad = true;
	return is64 ? v : (uint32_t)v;
}

// A length of 4 bytes, or 0xffffffff and one of 8. `ret_header` is what it took.
static bool entry_length(const struct elf_file *f, uint64_t address, uint64_t *ret_len, unsigned *ret_header)
{
	uint32_t len32;
	uint64_t len64;

	if (elf_file_read_address(f, address, &len32, 4) != 4)
		return false;
	*ret_len = len32;
	*ret_header = 4;
	if (len32 == UINT32_MAX) {
		if (elf_file_read_address(f, address + 4, &len64, 8) != 8)
			return false;
		*ret_len = len64;
		*ret_header = 12;
	}
	return *ret_len > 0;
}

// The encoding of code pointers in FDEs of this CIE.
static bool cie_encoding(const struct elf_file *f, uint64_t address, uint8_t *ret_encoding)
{
	uint8_t raw[CIE_MAX];
	struct cursor c = { .data = raw };
	char augmentation[16];
	uint64_t len;
	unsigned header, version, n = 0;

	if (!entry_length(f, address, &len, &header))
		return false;
	c.address = address + header;
	c.len = elf_file_read_address(f, c.address, raw, len < sizeof(raw) ? (size_t)len : sizeof(raw));
	if (take(&c, 4) != 0)
		return false;
	version = (unsigned)take(&c, 1);
	while (n < sizeof(augmentation) - 1 && (augmentation[n] = (char)take(&c, 1)))
		n++;
	augmentation[n] = 0;
	*ret_encoding = 0;
	if (augmentation[0] != 'z')
		return !c.bad && !augmentation[0];
	if (version >= 4)
		take(&c, 2); // sizes of an address and of a segment
	take_leb(&c, false);
	take_leb(&c, true);
	if (version == 1)
		take(&c, 1);
	else
		take_leb(&c, false);
	take_leb(&c, false);
	for (const char *a = augmentation + 1; *a && !c.bad; a++) {
		if (*a == 'R') {
			*ret_encoding = (uint8_t)take(&c, 1);
			break;
		}
		if (*a == 'L')
			take(&c, 1);
		else if (*a == 'P')
			take_format(&c, (uint8_t)take(&c, 1), f->is64);
		else if (*a != 'S' && *a != 'B')
			return false;
	}
	return !c.bad;
}

static bool read_fde(const struct elf_file *f, uint64_t address, uint64_t *ret_start, uint64_t *ret_size)
{
	uint8_t raw[40], encoding;
	struct cursor c = { .data = raw };
	uint64_t len, start, size;
	unsigned header;
	uint32_t back;

	if (!entry_length(f, address, &len, &header))
		return false;
	c.address = address + header;
	c.len = elf_file_read_address(f, c.address, raw, len < sizeof(raw) ? (size_t)len : sizeof(raw));
	back = (uint32_t)take(&c, 4);
	if (c.bad || !back || !cie_encoding(f, c.address - back, &encoding) || encoding == PE_OMIT)
		return false;
	start = take_pointer(&c, encoding, f->is64);
	size = take_format(&c, encoding & 0x0f, f->is64);
	if (c.bad || !size || start + size < start)
		return false;
	*ret_start = start;
	*ret_size = size;
	return true;
}

struct table {
	uint64_t hdr;	  // address that entries are relative to
	uint64_t entries; // address of the first
	uint64_t count;
};

static bool read_table(const struct elf_file *f, struct table *ret)
{
	uint8_t raw[32], frame_encoding, count_encoding, table_encoding;
	struct cursor c = { .data = raw };
	uint64_t room;

	if (!f->eh_frame_hdr.memory_size)
		return false;
	c.address = f->eh_frame_hdr.address;
	c.len = elf_file_read_address(f, c.address, raw, sizeof(raw));
	if (take(&c, 1) != 1)
		return false;
	frame_encoding = (uint8_t)take(&c, 1);
	count_encoding = (uint8_t)take(&c, 1);
	table_encoding = (uint8_t)take(&c, 1);
	take_pointer(&c, frame_encoding, f->is64);
	if (c.bad || table_encoding != HDR_TABLE || count_encoding == PE_OMIT)
		return false;
	ret->count = take_pointer(&c, count_encoding, f->is64);
	ret->hdr = f->eh_frame_hdr.address;
	ret->entries = c.address + c.at;
	room = f->eh_frame_hdr.memory_size < c.at ? 0 : (f->eh_frame_hdr.memory_size - c.at) / 8;
	if (ret->count > room)
		ret->count = room;
	return !c.bad && ret->count;
}

static bool table_entry(const struct elf_file *f, const struct table *t, uint64_t i, uint64_t *ret_start, uint64_t *ret_fde)
{
	int32_t pair[2];

	if (elf_file_read_address(f, t->entries + i * 8, pair, sizeof(pair)) != sizeof(pair))
		return false;
	*ret_start = t->hdr + (uint64_t)(int64_t)pair[0];
	*ret_fde = t->hdr + (uint64_t)(int64_t)pair[1];
	if (!f->is64) {
		*ret_start = (uint32_t)*ret_start;
		*ret_fde = (uint32_t)*ret_fde;
	}
	return true;
}

static bool search_table(const struct elf_file *f, const struct table *t, uint64_t address, uint64_t *ret_fde)
{
	uint64_t low = 0, high = t->count, start, fde;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (!table_entry(f, t, middle, &start, &fde))
			return false;
		if (start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && table_entry(f, t, low - 1, &start, ret_fde);
}

void eh_frame_free(struct eh_frame *frame)
{
	free(frame->functions);
	memset(frame, 0, sizeof(*frame));
}

static int compare(const void *a, const void *b)
{
	const struct eh_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->size < y->size ? -1 : x->size > y->size;
}

static void collect(struct eh_frame *frame, const struct elf_file *f)
{
	const struct elf_section *section = elf_file_section(f, ".eh_frame");
	struct eh_function *fit;
	uint64_t at, end, len;
	unsigned header;

	frame->collected = true;
	if (!section || __builtin_add_overflow(section->address, section->size, &end))
		return;
	frame->functions = calloc(WALK_MAX, sizeof(*frame->functions));
	if (!frame->functions)
		return;
	at = section->address;
	for (unsigned n = 0; n < WALK_MAX && at < end && entry_length(f, at, &len, &header); n++) {
		struct eh_function *next = &frame->functions[frame->count];

		frame->count += read_fde(f, at, &next->start, &next->size);
		if (len > end - at)
			break;
		at += header + len;
	}
	if (frame->count)
		qsort(frame->functions, frame->count, sizeof(*frame->functions), compare);
	fit = realloc(frame->functions, (frame->count + 1) * sizeof(*fit));
	if (fit)
		frame->functions = fit;
}

static bool search_collected(const struct eh_frame *frame, uint64_t address, uint64_t *ret_start, uint64_t *ret_size)
{
	size_t low = 0, high = frame->count;
	const struct eh_function *found;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (frame->functions[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	found = low ? &frame->functions[low - 1] : NULL;
	if (!found || address - found->start >= found->size)
		return false;
	*ret_start = found->start;
	*ret_size = found->size;
	return true;
}

bool eh_frame_find(struct eh_frame *frame, const struct elf_file *f, uint64_t address, uint64_t *ret_start,
		   uint64_t *ret_size)
{
	uint64_t fde, start, size;
	struct table table;

	if (!frame->collected && read_table(f, &table)) {
		if (!search_table(f, &table, address, &fde) || !read_fde(f, fde, &start, &size) || address < start ||
		    address - start >= size)
			return false;
		*ret_start = start;
		*ret_size = size;
		return true;
	}
	if (!frame->collected)
		collect(frame, f);
	return search_collected(frame, address, ret_start, ret_size);
}
