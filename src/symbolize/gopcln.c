// SPDX-License-Identifier: Apache-2.0
#include "symbolize/gopcln.h"

#include <string.h>

#define MAGIC_1_16    0xfffffffau
#define MAGIC_1_18    0xfffffff0u
#define MAGIC_1_20    0xfffffff1u
#define FUNCTIONS_MAX 10000000

static bool read_number(const struct elf_file *f, uint64_t offset, unsigned width, uint64_t *ret)
{
	uint32_t v32;

	if (width == 8)
		return elf_file_read(f, offset, ret, 8) == 8;
	if (elf_file_read(f, offset, &v32, 4) != 4)
		return false;
	*ret = v32;
	return true;
}

// A header of 8 bytes, then words: functions, files, [text start,] offsets of names, units, files, counters, functions.
static bool read_header(struct go_table *t, const struct elf_file *f, const struct elf_section *s)
{
	uint8_t raw[8];
	uint32_t magic;
	uint64_t words[8];
	unsigned pointer, skip;

	if (elf_file_read(f, s->offset, raw, sizeof(raw)) != sizeof(raw))
		return false;
	memcpy(&magic, raw, 4);
	pointer = raw[7];
	if ((magic != MAGIC_1_16 && magic != MAGIC_1_18 && magic != MAGIC_1_20) || raw[4] || raw[5] ||
	    (pointer != 4 && pointer != 8))
		return false;
	t->relative = magic != MAGIC_1_16;
	t->width = t->relative ? 4 : pointer;
	skip = t->relative ? 3 : 2;
	for (unsigned i = 0; i < skip + 5; i++)
		if (!read_number(f, s->offset + 8 + i * pointer, pointer, &words[i]))
			return false;
	t->text = t->relative ? words[2] : 0;
	if (words[0] > FUNCTIONS_MAX || words[skip] >= s->size || words[skip + 4] >= s->size ||
	    s->offset + s->size < s->offset)
		return false;
	t->count = words[0];
	t->names = s->offset + words[skip];
	t->names_end = t->end = s->offset + s->size;
	t->functions = s->offset + words[skip + 4];
	return t->count && t->count < (s->size - words[skip + 4]) / (2 * t->width);
}

// Where the table does not say where code starts (position-independent programs, Go 1.26), it is at the start of .text,
// unless C code was linked in front of it. The program's entry tells: it must be the function that Go enters by.
static bool starts_at_text(struct go_table *t, const struct elf_file *f)
{
	const struct elf_section *text = elf_file_section(f, ".text");
	struct go_function entry;
	char name[64];

	if (!text)
		return false;
	t->text = text->address;
	return go_table_find(t, f, f->entry, &entry) && entry.start == f->entry &&
	       go_table_name(t, f, &entry, name, sizeof(name)) && !strncmp(name, "_rt0_", 5);
}

void go_table_open(struct go_table *t, const struct elf_file *f)
{
	const struct elf_section *s = elf_file_section(f, ".gopclntab");

	memset(t, 0, sizeof(*t));
	if (!s)
		s = elf_file_section(f, ".data.rel.ro.gopclntab");
	if (!s || !read_header(t, f, s) || (t->relative && !t->text && !starts_at_text(t, f)))
		t->count = 0;
}

static bool start_of(const struct go_table *t, const struct elf_file *f, uint64_t i, uint64_t *ret)
{
	if (!read_number(f, t->functions + i * 2 * t->width, t->width, ret))
		return false;
	*ret += t->text;
	return true;
}

bool go_table_find(const struct go_table *t, const struct elf_file *f, uint64_t address, struct go_function *ret)
{
	unsigned entry_width = t->relative ? 4 : t->width;
	uint64_t low = 0, high = t->count, start, end, at;
	uint32_t name;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (!start_of(t, f, middle, &start))
			return false;
		if (start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	// One more entry than there are functions ends the last of them.
	if (!low || !start_of(t, f, low - 1, &start) || !start_of(t, f, low, &end) || address < start || address >= end)
		return false;
	if (!read_number(f, t->functions + (low - 1) * 2 * t->width + t->width, t->width, &at) || at > t->end ||
	    elf_file_read(f, t->functions + at + entry_width, &name, 4) != 4)
		return false;
	ret->start = start;
	ret->size = end - start;
	ret->name = t->names + name;
	return true;
}

size_t go_table_name(const struct go_table *t, const struct elf_file *f, const struct go_function *function, char *out,
		     size_t cap)
{
	return elf_file_string(f, function->name, t->names_end, out, cap);
}
