// SPDX-License-Identifier: Apache-2.0
#include "symbolize/plt.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define RELOCATIONS_MAX 500000 // of one table
#define TABLES_MAX	4
#define CHUNK		2048
#define STUB_MAX	32

struct relocation {
	uint64_t offset;
	uint32_t symbol;
};

bool plt_find(const struct elf_file *f, uint64_t address, struct plt_stub *ret)
{
	static const char *const names[] = { ".plt", ".plt.sec", ".plt.got", ".plt.bnd" };
	const struct elf_section *section = elf_file_code_section(f, address);

	if (!section)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!elf_file_section_is(f, section, names[i]))
			continue;
		ret->size = section->entry_size == 8 || section->entry_size == 24 ? section->entry_size : 16;
		ret->start = address - (address - section->address) % ret->size;
		return true;
	}
	return false;
}

// jmp *disp32(%rip); on i386 jmp *abs32.
static bool slot_x86(const struct elf_file *f, uint64_t start, const uint8_t *code, size_t len, uint64_t *ret)
{
	for (size_t i = 0; i + 6 <= len; i++) {
		int32_t displacement;

		if (code[i] != 0xff || code[i + 1] != 0x25)
			continue;
		memcpy(&displacement, code + i + 2, 4);
		*ret = f->machine == EM_X86_64 ? start + i + 6 + (uint64_t)(int64_t)displacement : (uint32_t)displacement;
		return true;
	}
	return false;
}

// adrp x16, page; ldr x17, [x16, #offset].
static bool slot_arm64(uint64_t start, const uint8_t *code, size_t len, uint64_t *ret)
{
	for (size_t i = 0; i + 8 <= len; i += 4) {
		uint32_t adrp, ldr;
		int64_t page;

		memcpy(&adrp, code + i, 4);
		memcpy(&ldr, code + i + 4, 4);
		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		page = (int64_t)((uint64_t)((adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3)) << 43) >> 31;
		*ret = ((start + i) & ~UINT64_C(0xfff)) + (uint64_t)page + ((ldr >> 10 & 0xfff) << 3);
		return true;
	}
	return false;
}

static struct relocation relocation_at(bool is64, const uint8_t *raw)
{
	uint64_t w64[2];
	uint32_t w32[2];

	if (is64) {
		memcpy(w64, raw, sizeof(w64));
		return (struct relocation){ w64[0], (uint32_t)ELF64_R_SYM(w64[1]) };
	}
	memcpy(w32, raw, sizeof(w32));
	return (struct relocation){ w32[0], ELF32_R_SYM(w32[1]) };
}

static uint32_t search(const struct elf_file *f, const struct elf_section *s, uint64_t slot, uint8_t *chunk)
{
	uint64_t count = s->size / s->entry_size, at = s->offset;

	if (count > RELOCATIONS_MAX)
		count = RELOCATIONS_MAX;
	while (count) {
		size_t want = count < CHUNK ? (size_t)count : CHUNK;
		size_t got = elf_file_read(f, at, chunk, want * s->entry_size) / s->entry_size;

		for (size_t i = 0; i < got; i++) {
			struct relocation r = relocation_at(f->is64, chunk + i * s->entry_size);

			if (r.offset == slot)
				return r.symbol;
		}
		if (got < want)
			break;
		at += want * s->entry_size;
		count -= want;
	}
	return 0;
}

static size_t symbol_name(const struct elf_file *f, const struct elf_section *symbols, uint32_t index, char *out, size_t cap)
{
	size_t entry = f->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	const struct elf_section *strings;
	uint32_t name; // the first field in both classes
	uint64_t end;

	if (index >= symbols->size / entry || symbols->link >= f->sections_count ||
	    elf_file_read(f, symbols->offset + (uint64_t)index * entry, &name, sizeof(name)) != sizeof(name))
		return 0;
	strings = &f->sections[symbols->link];
	if (strings->type != SHT_STRTAB || __builtin_add_overflow(strings->offset, strings->size, &end) ||
	    name >= strings->size)
		return 0;
	return elf_file_string(f, strings->offset + name, end, out, cap);
}

static bool is_table(const struct elf_file *f, const struct elf_section *s)
{
	size_t rela = f->is64 ? sizeof(Elf64_Rela) : sizeof(Elf32_Rela), rel = f->is64 ? sizeof(Elf64_Rel) : sizeof(Elf32_Rel);

	if (!(s->type == SHT_RELA && s->entry_size == rela) && !(s->type == SHT_REL && s->entry_size == rel))
		return false;
	return s->link < f->sections_count && f->sections[s->link].type == SHT_DYNSYM;
}

// .rela.plt, which names the section it is for, before the much larger .rela.dyn.
static size_t slot_name(const struct elf_file *f, uint64_t slot, char *out, size_t cap)
{
	uint8_t *chunk = malloc(CHUNK * sizeof(Elf64_Rela));
	unsigned tables = 0;
	size_t len = 0;

	for (uint32_t i = 0; chunk && i < 2 * f->sections_count && !len && tables < TABLES_MAX; i++) {
		const struct elf_section *s = &f->sections[i % f->sections_count];
		bool first = s->flags & SHF_INFO_LINK;
		uint32_t symbol;

		if (first != (i < f->sections_count) || !is_table(f, s))
			continue;
		tables++;
		symbol = search(f, s, slot, chunk);
		if (symbol)
			len = symbol_name(f, &f->sections[s->link], symbol, out, cap);
	}
	free(chunk);
	return len;
}

size_t plt_target(const struct elf_file *f, const struct plt_stub *stub, char *out, size_t cap)
{
	uint8_t code[STUB_MAX];
	size_t len = elf_file_read_address(f, stub->start, code, (size_t)stub->size);
	uint64_t slot;
	bool found = false;

	if (f->machine == EM_X86_64 || f->machine == EM_386)
		found = slot_x86(f, stub->start, code, len, &slot);
	else if (f->machine == EM_AARCH64)
		found = slot_arm64(stub->start, code, len, &slot);
	return found ? slot_name(f, slot, out, cap) : 0;
}
