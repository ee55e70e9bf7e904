// SPDX-License-Identifier: Apache-2.0
#include "elf/usdt.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define NOTES_MAX (4u << 20)
#define NT_STAPSDT 3
#define NAME "stapsdt"

// The descriptor's beginning: the place, the base that it was written against, the semaphore; then two strings.
struct place {
	uint64_t at, base, semaphore;
};

static bool read_place(const struct elf_file *f, const uint8_t *d, size_t len, struct place *ret, size_t *ret_size)
{
	uint32_t w32[3];

	*ret_size = f->is64 ? sizeof(*ret) : sizeof(w32);
	if (len < *ret_size)
		return false;
	if (f->is64) {
		memcpy(ret, d, sizeof(*ret));
		return true;
	}
	memcpy(w32, d, sizeof(w32));
	*ret = (struct place){ w32[0], w32[1], w32[2] };
	return true;
}

// The string at *d, which goes on behind it.
static bool string_is(const uint8_t **d, size_t *len, const char *want)
{
	size_t n = strnlen((const char *)*d, *len);
	bool is = n < *len && n == strlen(want) && !memcmp(*d, want, n);

	if (n == *len)
		return false;
	*d += n + 1;
	*len -= n + 1;
	return is;
}

static bool in_code(const struct elf_file *f, uint64_t address, uint64_t *ret_offset)
{
	for (unsigned i = 0; i < f->loads_count; i++) {
		const struct elf_segment *s = &f->loads[i];

		if (!(s->flags & PF_X) || address < s->address || address - s->address >= s->file_size)
			continue;
		*ret_offset = s->offset + (address - s->address);
		return *ret_offset < f->size;
	}
	return false;
}

static bool take(const struct elf_file *f, const uint8_t *d, size_t len, const char *provider, const char *name, uint64_t *ret_offset)
{
	const struct elf_section *base = elf_file_section(f, ".stapsdt.base");
	struct place p;
	size_t size;

	if (!read_place(f, d, len, &p, &size))
		return false;
	d += size;
	len -= size;
	if (!string_is(&d, &len, provider) || !string_is(&d, &len, name) || p.semaphore)
		return false;
	// Prelinked since.
	if (base)
		p.at += base->address - p.base;
	return in_code(f, p.at, ret_offset);
}

static unsigned search(const struct elf_file *f, const uint8_t *notes, size_t len, const char *provider, const char *name, uint64_t *offsets,
		       unsigned cap)
{
	struct elf_note note;
	unsigned n = 0;

	for (size_t at = 0; n < cap && elf_note_next(notes, len, &at, &note);)
		if (note.type == NT_STAPSDT && note.name_len == sizeof(NAME) && !memcmp(note.name, NAME, sizeof(NAME)))
			n += take(f, note.desc, note.desc_len, provider, name, &offsets[n]);
	return n;
}

unsigned usdt_find(const struct elf_file *f, const char *provider, const char *name, uint64_t *offsets, unsigned cap)
{
	const struct elf_section *s = elf_file_section(f, ".note.stapsdt");
	size_t len = 0;
	uint8_t *notes = s ? elf_file_section_data(f, s, NOTES_MAX, &len) : NULL;
	unsigned n = notes ? search(f, notes, len, provider, name, offsets, cap) : 0;

	free(notes);
	return n;
}
