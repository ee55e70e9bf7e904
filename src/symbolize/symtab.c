// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symtab.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_SYMBOLS 2048
#define SIZE_BITS     27
#define SIZE_MAX_BITS ((1u << SIZE_BITS) - 1)
#define WALK_MAX      256 // symbols that are looked at before one that may hold the address
#define ALIASES_MAX   64
#define ENTRIES_MAX   8000000 // read of one table, whatever they are: a sparse file costs nothing to make

struct symbol {
	uint32_t start; // from the base address
	uint32_t size : SIZE_BITS;
	uint32_t source : 2;
	uint32_t local : 1;
	uint32_t function : 1; // STT_FUNC or STT_GNU_IFUNC, not a plain label
	uint32_t spare : 1;
	uint32_t name; // offset in the source's strings
};

_Static_assert(sizeof(struct symbol) == 12, "symbols are compact");

struct source {
	const struct elf_file *file;
	uint64_t strings, strings_end; // file offsets
};

struct symtab {
	const struct elf_file *code;
	uint64_t base; // lowest address of code
	struct symbol *symbols;
	size_t count, cap, max;
	uint32_t largest; // size of the largest symbol
	struct source sources[SYMTAB_SOURCES_MAX];
	unsigned sources_count;
};

struct symtab *symtab_new(const struct elf_file *code, size_t memory_max)
{
	struct symtab *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->code = code;
	t->max = memory_max / sizeof(struct symbol);
	if (t->max > UINT32_MAX)
		t->max = UINT32_MAX;
	t->base = UINT64_MAX;
	for (unsigned i = 0; i < code->loads_count; i++)
		if (code->loads[i].flags & PF_X && code->loads[i].address < t->base)
			t->base = code->loads[i].address;
	return t;
}

void symtab_free(struct symtab *t)
{
	if (!t)
		return;
	free(t->symbols);
	free(t);
}

size_t symtab_memory(const struct symtab *t)
{
	return t ? sizeof(*t) + t->cap * sizeof(*t->symbols) : 0;
}

static bool is_code(const struct symtab *t, uint64_t address)
{
	for (unsigned i = 0; i < t->code->loads_count; i++) {
		const struct elf_segment *s = &t->code->loads[i];

		if (s->flags & PF_X && address >= s->address && address - s->address < s->memory_size)
			return true;
	}
	return false;
}

static int append(struct symtab *t, const struct symbol *symbol)
{
	if (t->count == t->cap) {
		size_t cap = t->cap ? t->cap + t->cap / 2 : 256;
		struct symbol *symbols;

		if (t->count >= t->max)
			return -E2BIG;
		if (cap > t->max)
			cap = t->max;
		symbols = realloc(t->symbols, cap * sizeof(*symbols));
		if (!symbols)
			return -ENOMEM;
		t->symbols = symbols;
		t->cap = cap;
	}
	t->symbols[t->count++] = *symbol;
	if (symbol->size > t->largest)
		t->largest = symbol->size;
	return 0;
}

static int take(struct symtab *t, const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);
	struct symbol symbol = { 0 };
	uint64_t address = s->st_value;

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return 0;
	if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS || s->st_shndx == SHN_COMMON || !s->st_name)
		return 0;
	if (t->code->machine == EM_ARM)
		address &= ~(uint64_t)1; // the bit says Thumb
	if (!is_code(t, address) || address - t->base > UINT32_MAX)
		return 0;
	symbol.start = (uint32_t)(address - t->base);
	symbol.size = s->st_size < SIZE_MAX_BITS ? (uint32_t)s->st_size : SIZE_MAX_BITS;
	symbol.source = t->sources_count & 3;
	symbol.local = ELF64_ST_BIND(s->st_info) == STB_LOCAL;
	symbol.function = type != STT_NOTYPE;
	symbol.name = s->st_name;
	return append(t, &symbol);
}

static Elf64_Sym symbol_at(bool is64, const uint8_t *raw)
{
	Elf64_Sym s64;
	Elf32_Sym s32;

	if (is64) {
		memcpy(&s64, raw, sizeof(s64));
		return s64;
	}
	memcpy(&s32, raw, sizeof(s32));
	return (Elf64_Sym){ s32.st_name, s32.st_info, s32.st_other, s32.st_shndx, s32.st_value, s32.st_size };
}

static int take_all(struct symtab *t, const struct elf_file *f, const struct elf_section *section, uint8_t *chunk)
{
	size_t entry = f->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	uint64_t left = section->size / entry, at = section->offset;
	int err = 0;

	if (left > ENTRIES_MAX)
		left = ENTRIES_MAX;
	while (left && !err) {
		size_t want = left < CHUNK_SYMBOLS ? (size_t)left : CHUNK_SYMBOLS;
		size_t got = elf_file_read(f, at, chunk, want * entry) / entry;

		for (size_t i = 0; i < got && !err; i++) {
			Elf64_Sym s = symbol_at(f->is64, chunk + i * entry);

			err = take(t, &s);
		}
		if (got < want)
			break;
		left -= want;
		at += want * entry;
	}
	return err;
}

int symtab_add(struct symtab *t, const struct elf_file *f, const struct elf_section *section)
{
	size_t entry = f->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	const struct elf_section *strings;
	struct source *source = &t->sources[t->sources_count];
	uint8_t *chunk;
	int err;

	if (t->sources_count == SYMTAB_SOURCES_MAX)
		return -ENOSPC;
	if (section->link >= f->sections_count || section->entry_size != entry || section->type == SHT_NOBITS)
		return -EBADMSG;
	strings = &f->sections[section->link];
	if (strings->type != SHT_STRTAB || __builtin_add_overflow(strings->offset, strings->size, &source->strings_end))
		return -EBADMSG;
	source->file = f;
	source->strings = strings->offset;
	chunk = malloc(CHUNK_SYMBOLS * entry);
	if (!chunk)
		return -ENOMEM;
	err = take_all(t, f, section, chunk);
	t->sources_count++;
	free(chunk);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

void symtab_sort(struct symtab *t)
{
	struct symbol *fit;

	if (t->count)
		qsort(t->symbols, t->count, sizeof(*t->symbols), compare);
	fit = t->count ? realloc(t->symbols, t->count * sizeof(*fit)) : NULL;
	if (fit) {
		t->symbols = fit;
		t->cap = t->count;
	}
}

// Number of symbols that start at or before the offset.
static size_t upper_bound(const struct symtab *t, uint32_t offset)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->symbols[middle].start <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void fill(const struct symtab *t, size_t i, struct symtab_match *ret)
{
	size_t first = i;
	uint32_t start = t->symbols[i].start, size = 0;

	while (first && t->symbols[first - 1].start == start && i - first < ALIASES_MAX)
		first--;
	ret->count = 0;
	for (size_t n = first; n < t->count && t->symbols[n].start == start && ret->count < ALIASES_MAX; n++) {
		if (t->symbols[n].size > size)
			size = t->symbols[n].size;
		ret->count++;
	}
	ret->first = (uint32_t)first;
	ret->start = t->base + start;
	ret->size = size;
}

static bool same_section(const struct symtab *t, uint64_t a, uint64_t b)
{
	return elf_file_code_section(t->code, a) == elf_file_code_section(t->code, b);
}

bool symtab_find(const struct symtab *t, uint64_t address, struct symtab_match *ret)
{
	uint32_t offset, nearest;
	size_t i;

	if (!t->count || address < t->base || address - t->base > UINT32_MAX)
		return false;
	offset = (uint32_t)(address - t->base);
	i = upper_bound(t, offset);
	if (!i)
		return false;
	nearest = t->symbols[i - 1].start;
	for (size_t n = i; n && i - n < WALK_MAX; n--) {
		const struct symbol *s = &t->symbols[n - 1];

		if (offset - s->start >= t->largest)
			break;
		if (offset - s->start < s->size) {
			fill(t, n - 1, ret);
			return true;
		}
	}
	fill(t, i - 1, ret);
	// A symbol with a size ends there; what follows has no name.
	return !ret->size && ret->start == t->base + nearest && same_section(t, ret->start, address);
}

static unsigned underscores(const char *name)
{
	// _Z and _R begin mangled names.
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R') ? 0 : (unsigned)strspn(name, "_");
}

// Mapping symbols of ARM and RISC-V ($x, $d.12) and compilers' labels say nothing.
static bool is_noise(const char *name)
{
	return !*name || (name[0] == '$' && strchr("xdat", name[1]) && (!name[2] || name[2] == '.')) ||
	       (name[0] == '.' && name[1] == 'L');
}

static bool better(const struct symbol *a, const char *name_a, const struct symbol *b, const char *name_b)
{
	size_t len_a = strlen(name_a), len_b = strlen(name_b);

	if (a->function != b->function)
		return a->function;
	// A function that ends in unreachable code may be empty, and lies at the start of the next one.
	if (!a->size != !b->size)
		return a->size != 0;
	if (a->local != b->local)
		return b->local;
	if (underscores(name_a) != underscores(name_b))
		return underscores(name_a) < underscores(name_b);
	if (len_a != len_b)
		return len_a < len_b;
	return strcmp(name_a, name_b) < 0;
}

static size_t read_name(const struct symtab *t, const struct symbol *s, char out[SYMTAB_NAME_MAX])
{
	const struct source *source = &t->sources[s->source];
	size_t len;
	char *at;

	if (s->source >= t->sources_count)
		return 0;
	len = elf_file_string(source->file, source->strings + s->name, source->strings_end, out, SYMTAB_NAME_MAX);
	// "memcpy@@GLIBC_2.14": the version of a dynamic symbol, as .symtab writes it.
	at = memchr(out, '@', len);
	if (at && at > out)
		*at = 0;
	return is_noise(out) ? 0 : strlen(out);
}

size_t symtab_name(const struct symtab *t, const struct symtab_match *match, char out[SYMTAB_NAME_MAX])
{
	const struct symbol *best = NULL;
	char name[SYMTAB_NAME_MAX];

	for (uint32_t i = match->first; i < match->first + match->count; i++) {
		const struct symbol *s = &t->symbols[i];

		if (!read_name(t, s, name) || (best && !better(s, name, best, out)))
			continue;
		best = s;
		memcpy(out, name, strlen(name) + 1);
	}
	return best ? strlen(out) : 0;
}
