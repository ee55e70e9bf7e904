// SPDX-License-Identifier: Apache-2.0
#include "symbolize/eh_frame.h"

#include <stdlib.h>
#include <string.h>

#include "elf/dw_cursor.h"

#define PE_OMIT	    0xff
#define PE_DATAREL  0x30
#define PE_SDATA4   0x0b
#define HDR_TABLE   (PE_DATAREL | PE_SDATA4) // what every linker writes
#define CIE_MAX	    256			     // of a CIE its augmentation is read; it is at the start
#define WALK_MAX    50000		     // entries of an .eh_frame without a table

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

static struct dw_cursor cursor_at(const struct elf_file *f, uint64_t address, uint8_t *raw, size_t cap)
{
	return dw_cursor_at(raw, raw + elf_file_read_address(f, address, raw, cap));
}

// The encoding of code pointers in FDEs of this CIE.
static bool cie_encoding(const struct elf_file *f, uint64_t address, uint8_t *ret_encoding)
{
	uint8_t raw[CIE_MAX];
	struct dw_cursor c;
	char augmentation[16];
	uint64_t len;
	unsigned header, version, n = 0;

	if (!entry_length(f, address, &len, &header))
		return false;
	c = cursor_at(f, address + header, raw, len < sizeof(raw) ? (size_t)len : sizeof(raw));
	if (dw_take(&c, 4) != 0)
		return false;
	version = dw_byte(&c);
	while (n < sizeof(augmentation) - 1 && (augmentation[n] = (char)dw_byte(&c)))
		n++;
	augmentation[n] = 0;
	*ret_encoding = 0;
	if (augmentation[0] != 'z')
		return !c.bad && !augmentation[0];
	if (version >= 4)
		dw_take(&c, 2); // sizes of an address and of a segment
	dw_uleb(&c);
	dw_sleb(&c);
	if (version == 1)
		dw_take(&c, 1);
	else
		dw_uleb(&c);
	dw_uleb(&c);
	for (const char *a = augmentation + 1; *a && !c.bad; a++) {
		if (*a == 'R') {
			*ret_encoding = dw_byte(&c);
			break;
		}
		if (*a == 'L')
			dw_take(&c, 1);
		else if (*a == 'P')
			dw_value(&c, dw_byte(&c), f->is64);
		else if (*a != 'S' && *a != 'B')
			return false;
	}
	return !c.bad;
}

static bool read_fde(const struct elf_file *f, uint64_t address, uint64_t *ret_start, uint64_t *ret_size)
{
	uint8_t raw[40], encoding;
	struct dw_cursor c;
	uint64_t len, start, size;
	unsigned header;
	uint32_t back;

	if (!entry_length(f, address, &len, &header))
		return false;
	address += header;
	c = cursor_at(f, address, raw, len < sizeof(raw) ? (size_t)len : sizeof(raw));
	back = (uint32_t)dw_take(&c, 4);
	if (c.bad || !back || !cie_encoding(f, address - back, &encoding) || encoding == PE_OMIT)
		return false;
	start = dw_pointer(&c, encoding, address + (uint64_t)(c.at - raw), f->is64);
	size = dw_value(&c, encoding, f->is64);
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
	struct dw_cursor c;
	uint64_t room, at = f->eh_frame_hdr.address, used;

	if (!f->eh_frame_hdr.memory_size)
		return false;
	c = cursor_at(f, at, raw, sizeof(raw));
	if (dw_take(&c, 1) != 1)
		return false;
	frame_encoding = dw_byte(&c);
	count_encoding = dw_byte(&c);
	table_encoding = dw_byte(&c);
	dw_pointer(&c, frame_encoding, at + (uint64_t)(c.at - raw), f->is64);
	if (c.bad || table_encoding != HDR_TABLE || count_encoding == PE_OMIT)
		return false;
	ret->count = dw_pointer(&c, count_encoding, at + (uint64_t)(c.at - raw), f->is64);
	ret->hdr = at;
	used = (uint64_t)(c.at - raw);
	ret->entries = at + used;
	room = f->eh_frame_hdr.memory_size < used ? 0 : (f->eh_frame_hdr.memory_size - used) / 8;
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
