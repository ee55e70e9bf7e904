// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_lines.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNITS_MAX  200000
#define RANGES_MAX 1000000
#define LIBRARY	   (32u << 10) // what libelf and libdw keep of any file, about

struct unit_range {
	uint64_t low, high;
	Dwarf_Off unit; // of its DIE
};

struct dwarf_lines {
	int fd;
	Elf *elf;
	Dwarf *dwarf;
	struct unit_range *ranges;
	size_t count, cap;
	size_t sections; // bytes that libdw keeps, about
};

static size_t debug_size(const struct elf_file *f)
{
	size_t sum = 0;

	for (uint32_t i = 1; i < f->sections_count; i++) {
		const struct elf_section *s = &f->sections[i];
		uint64_t size = s->size;
		Elf64_Chdr header;

		if (s->type == SHT_NOBITS || s->flags & SHF_ALLOC)
			continue;
		if (s->flags & SHF_COMPRESSED && f->is64 &&
		    elf_file_read(f, s->offset, &header, sizeof(header)) == sizeof(header))
			__builtin_add_overflow(size, header.ch_size, &size);
		if (__builtin_add_overflow(sum, size, &sum))
			return SIZE_MAX;
	}
	return sum;
}

bool dwarf_lines_present(const struct elf_file *f)
{
	const struct elf_section *s = elf_file_section(f, ".debug_info");

	return s && s->type != SHT_NOBITS && s->size;
}

static int add_range(struct dwarf_lines *d, uint64_t low, uint64_t high, Dwarf_Off unit)
{
	if (low >= high || d->count >= RANGES_MAX)
		return 0;
	if (d->count == d->cap) {
		size_t cap = d->cap ? d->cap * 2 : 64;
		struct unit_range *ranges = realloc(d->ranges, cap * sizeof(*ranges));

		if (!ranges)
			return -ENOMEM;
		d->ranges = ranges;
		d->cap = cap;
	}
	d->ranges[d->count++] = (struct unit_range){ low, high, unit };
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct unit_range *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

// Compilers do not agree on writing .debug_aranges; the units' own ranges are always there.
static int read_units(struct dwarf_lines *d)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	int err = 0;

	for (unsigned n = 0; n < UNITS_MAX && !err && !dwarf_get_units(d->dwarf, cu, &cu, NULL, NULL, &die, NULL); n++) {
		Dwarf_Addr base, low, high;
		ptrdiff_t at = 0;

		while (!err && (at = dwarf_ranges(&die, at, &base, &low, &high)) > 0)
			err = add_range(d, low, high, dwarf_dieoffset(&die));
	}
	if (d->count)
		qsort(d->ranges, d->count, sizeof(*d->ranges), compare);
	return err;
}

struct dwarf_lines *dwarf_lines_new(const struct elf_file *f, size_t memory_max)
{
	struct dwarf_lines *d;
	size_t size = debug_size(f);

	// libdw keeps about as much again of what it has parsed.
	if (f->fd < 0 || !size || __builtin_mul_overflow(size, 2, &size) || size > memory_max || elf_version(EV_CURRENT) == EV_NONE)
		return NULL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->sections = size;
	d->fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 3);
	// ELF_C_READ, not the mapping kind: a file that shrinks must not kill us.
	if (d->fd >= 0)
		d->elf = elf_begin(d->fd, ELF_C_READ, NULL);
	if (d->elf)
		d->dwarf = dwarf_begin_elf(d->elf, DWARF_C_READ, NULL);
	if (d->dwarf && !read_units(d) && d->count)
		return d;
	dwarf_lines_free(d);
	return NULL;
}

void dwarf_lines_free(struct dwarf_lines *d)
{
	if (!d)
		return;
	if (d->dwarf)
		dwarf_end(d->dwarf);
	if (d->elf)
		elf_end(d->elf);
	if (d->fd >= 0)
		close(d->fd);
	free(d->ranges);
	free(d);
}

size_t dwarf_lines_memory(const struct dwarf_lines *d)
{
	return d ? sizeof(*d) + d->cap * sizeof(*d->ranges) + d->sections + LIBRARY : 0;
}

static bool find_unit(struct dwarf_lines *d, uint64_t address, Dwarf_Die *ret)
{
	size_t low = 0, high = d->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (d->ranges[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < d->ranges[low - 1].high && dwarf_offdie(d->dwarf, d->ranges[low - 1].unit, ret);
}

static const char *die_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	return name ? name : dwarf_diename(die);
}

static int64_t number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) || value > INT32_MAX)
		return 0;
	return (int64_t)value;
}

static const char *file_of(Dwarf_Die *unit, int64_t index)
{
	Dwarf_Files *files;
	size_t count;

	if (dwarf_getsrcfiles(unit, &files, &count) || index < 0 || (size_t)index >= count)
		return NULL;
	return dwarf_filesrc(files, (size_t)index, NULL, NULL);
}

static void position(Dwarf_Die *unit, uint64_t address, struct dwarf_line *ret)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, address);
	int number = 0;

	ret->file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
	if (line && !dwarf_lineno(line, &number))
		ret->line = number;
}

// Scopes from the innermost out. A function's line is where the address is, or where the call inlined into it was.
static unsigned walk_scopes(Dwarf_Die *unit, Dwarf_Die *scopes, int count, struct dwarf_line *lines, unsigned max)
{
	struct dwarf_line at = lines[0];
	unsigned n = 0;

	for (int i = 0; i < count && n < max; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		at.name = die_name(&scopes[i]);
		lines[n++] = at;
		if (tag == DW_TAG_subprogram)
			return n;
		at.file = file_of(unit, number_of(&scopes[i], DW_AT_call_file));
		at.line = number_of(&scopes[i], DW_AT_call_line);
	}
	// The containing function is named by its symbol, whatever the scopes left out.
	if (n == max)
		n--;
	at.name = NULL;
	lines[n++] = at;
	return n;
}

unsigned dwarf_lines_find(struct dwarf_lines *d, uint64_t address, struct dwarf_line *lines, unsigned max)
{
	Dwarf_Die unit, *scopes = NULL, *nest = NULL;
	unsigned n;
	int count;

	if (!max || !find_unit(d, address, &unit))
		return 0;
	memset(lines, 0, max * sizeof(*lines));
	position(&unit, address, &lines[0]);
	// From an inlined call on, these scopes are those of its definition; the callers are the scopes of the DIE itself.
	if (dwarf_getscopes(&unit, address, &scopes) > 0)
		count = dwarf_getscopes_die(&scopes[0], &nest);
	else
		count = 0;
	n = walk_scopes(&unit, nest, count > 0 ? count : 0, lines, max);
	free(scopes);
	free(nest);
	return n;
}
