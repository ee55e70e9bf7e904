// SPDX-License-Identifier: Apache-2.0
// Builds small ELF files in memory, so that tests need no compiler. Everything is one loaded segment, whose addresses
// are the file offsets plus IMAGE_BASE.
#ifndef BLKPROF_TESTS_SYMBOLIZE_ELF_IMAGE_H
#define BLKPROF_TESTS_SYMBOLIZE_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/buf.h"

#define IMAGE_BASE     0x10000u
#define IMAGE_SECTIONS 24
#define IMAGE_SEGMENTS 3

struct image {
	struct buf file, names;
	Elf64_Shdr sections[IMAGE_SECTIONS];
	unsigned count;
	struct buf symbols, strings; // of image_symbol, until image_symbols puts them into the file
};

static inline void image_align(struct buf *b, size_t to)
{
	while (b->len % to)
		buf_byte(b, 0);
}

static inline void image_begin(struct image *im)
{
	static const Elf64_Ehdr empty;
	static const Elf64_Phdr segments[IMAGE_SEGMENTS];

	memset(im, 0, sizeof(*im));
	buf_append(&im->file, &empty, sizeof(empty));
	buf_append(&im->file, segments, sizeof(segments));
	buf_byte(&im->names, 0);
	im->count = 1;
}

static inline unsigned image_section(struct image *im, const char *name, uint32_t type, uint64_t flags, const void *data,
				     size_t len, uint32_t link, uint64_t entry_size)
{
	Elf64_Shdr *s = &im->sections[im->count];

	image_align(&im->file, 16);
	s->sh_name = (uint32_t)im->names.len;
	s->sh_type = type;
	s->sh_flags = flags;
	s->sh_offset = im->file.len;
	s->sh_addr = flags & SHF_ALLOC ? IMAGE_BASE + im->file.len : 0;
	s->sh_size = len;
	s->sh_link = link;
	s->sh_entsize = entry_size;
	buf_append(&im->names, name, strlen(name) + 1);
	buf_append(&im->file, data, len);
	return im->count++;
}

static inline uint64_t image_offset(const struct image *im, unsigned section)
{
	return im->sections[section].sh_offset;
}

// Replaces bytes of a section whose content depends on addresses.
static inline void image_patch(struct image *im, unsigned section, size_t at, const void *data, size_t len)
{
	memcpy(im->file.data + im->sections[section].sh_offset + at, data, len);
}

static inline void image_symbol(struct image *im, const char *name, unsigned bind, unsigned type, unsigned section,
				uint64_t address, uint64_t size)
{
	Elf64_Sym s = { .st_info = (unsigned char)ELF64_ST_INFO(bind, type), .st_shndx = (uint16_t)section };
	static const Elf64_Sym null;

	if (!im->symbols.len) {
		buf_append(&im->symbols, &null, sizeof(null));
		buf_byte(&im->strings, 0);
	}
	s.st_name = (uint32_t)im->strings.len;
	s.st_value = address;
	s.st_size = size;
	buf_append(&im->strings, name, strlen(name) + 1);
	buf_append(&im->symbols, &s, sizeof(s));
}

static inline unsigned image_symbols(struct image *im, uint32_t type)
{
	bool dynamic = type == SHT_DYNSYM;
	unsigned strings = image_section(im, dynamic ? ".dynstr" : ".strtab", SHT_STRTAB, 0, im->strings.data,
					 im->strings.len, 0, 0);
	unsigned symbols = image_section(im, dynamic ? ".dynsym" : ".symtab", type, 0, im->symbols.data, im->symbols.len,
					 strings, sizeof(Elf64_Sym));

	buf_free(&im->symbols);
	buf_free(&im->strings);
	return symbols;
}

static inline void image_build_id(struct image *im, uint8_t fill)
{
	uint8_t note[16 + 20] = { 4, 0, 0, 0, 20, 0, 0, 0, NT_GNU_BUILD_ID, 0, 0, 0, 'G', 'N', 'U', 0 };

	memset(note + 16, fill, 20);
	image_section(im, ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, note, sizeof(note), 0, 0);
}

static inline const Elf64_Shdr *image_find(const struct image *im, const char *name)
{
	for (unsigned i = 1; i < im->count; i++)
		if (!strcmp((char *)im->names.data + im->sections[i].sh_name, name))
			return &im->sections[i];
	return NULL;
}

static inline Elf64_Phdr image_segment(const Elf64_Shdr *s, uint32_t type)
{
	return (Elf64_Phdr){ .p_type = type, .p_flags = PF_R, .p_offset = s->sh_offset, .p_vaddr = s->sh_addr,
			     .p_filesz = s->sh_size, .p_memsz = s->sh_size };
}

static inline void image_end(struct image *im)
{
	Elf64_Phdr segments[IMAGE_SEGMENTS] = { 0 };
	const Elf64_Shdr *hdr = image_find(im, ".eh_frame_hdr"), *note = image_find(im, ".note.gnu.build-id");
	Elf64_Ehdr e = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT } };
	size_t end;

	// Its own name is among the names: the content follows when it is complete.
	image_section(im, ".shstrtab", SHT_STRTAB, 0, NULL, 0, 0, 0);
	im->sections[im->count - 1].sh_size = im->names.len;
	buf_append(&im->file, im->names.data, im->names.len);
	image_align(&im->file, 16);
	end = im->file.len;
	buf_append(&im->file, im->sections, im->count * sizeof(*im->sections));

	segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = IMAGE_BASE, .p_filesz = end,
				    .p_memsz = end };
	if (hdr)
		segments[1] = image_segment(hdr, PT_GNU_EH_FRAME);
	if (note)
		segments[2] = image_segment(note, PT_NOTE);
	e.e_type = ET_DYN;
	e.e_machine = EM_X86_64;
	e.e_version = EV_CURRENT;
	e.e_phoff = sizeof(e);
	e.e_shoff = end;
	e.e_ehsize = sizeof(e);
	e.e_phentsize = sizeof(Elf64_Phdr);
	e.e_phnum = IMAGE_SEGMENTS;
	e.e_shentsize = sizeof(Elf64_Shdr);
	e.e_shnum = (uint16_t)im->count;
	e.e_shstrndx = (uint16_t)(im->count - 1);
	memcpy(im->file.data, &e, sizeof(e));
	memcpy(im->file.data + sizeof(e), segments, sizeof(segments));
}

static inline void image_free(struct image *im)
{
	buf_free(&im->file);
	buf_free(&im->names);
	buf_free(&im->symbols);
	buf_free(&im->strings);
}

static inline int image_fd(const void *data, size_t len)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, data, len) != (ssize_t)len) {
		close(fd);
		return -1;
	}
	return fd;
}

// One frame description per function, and the sorted table that finds it.
struct image_function {
	uint64_t address;
	uint32_t size;
};

static inline void image_frames(struct image *im, const struct image_function *functions, unsigned count, bool table)
{
	static const uint8_t cie[20] = { 16, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0, 0, 0 };
	uint8_t frame[20 + 16 * 32 + 4] = { 0 }, hdr[12 + 8 * 32] = { 1, 0x1b, 0x03, 0x3b };
	size_t len = sizeof(cie);
	unsigned section;
	uint64_t address;

	section = image_section(im, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, frame, 20 + 16 * count + 4, 0, 0);
	address = im->sections[section].sh_addr;
	memcpy(frame, cie, sizeof(cie));
	for (unsigned i = 0; i < count; i++, len += 16) {
		uint32_t fde[4] = { 12, (uint32_t)len + 4, (uint32_t)(functions[i].address - (address + len + 8)),
				    functions[i].size };

		memcpy(frame + len, fde, sizeof(fde));
	}
	image_patch(im, section, 0, frame, 20 + 16 * count + 4);
	if (!table)
		return;
	section = image_section(im, ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, hdr, 12 + 8 * count, 0, 0);
	memcpy(hdr + 8, &count, 4);
	for (unsigned i = 0; i < count; i++) {
		uint32_t pair[2] = { (uint32_t)(functions[i].address - im->sections[section].sh_addr),
				     (uint32_t)(address + 20 + 16 * i - im->sections[section].sh_addr) };

		memcpy(hdr + 12 + 8 * i, pair, 8);
	}
	address -= im->sections[section].sh_addr + 4;
	memcpy(hdr + 4, &address, 4);
	image_patch(im, section, 0, hdr, 12 + 8 * count);
}

struct image_go {
	uint64_t text, text_size, entry; // addresses; entry is of the ELF header
	uint32_t magic;
	bool says_text; // the table says where code starts
};

// A Go program of two functions, _rt0_amd64_linux and main.(*T).destroy, each half of the text. The ELF header's entry
// is set by image_go_end.
static inline void image_go_table(struct image *im, const struct image_go *go)
{
	static const char names[] = "_rt0_amd64_linux\0main.(*T).destroy";
	bool old = go->magic == 0xfffffffa;
	uint64_t words[8] = { 2, 0 };
	unsigned skip = old ? 2 : 3, header = 8 + (skip + 5) * 8, functions = header + 48;
	uint8_t table[256] = { 0 };
	uint32_t half = (uint32_t)go->text_size / 2, at = 0;

	memcpy(table, &go->magic, 4);
	table[6] = 1;
	table[7] = 8;
	if (!old)
		words[2] = go->says_text ? go->text : 0;
	words[skip] = header;
	words[skip + 4] = functions;
	memcpy(table + 8, words, (skip + 5) * 8);
	memcpy(table + header, names, sizeof(names));
	for (uint32_t i = 0; i < 3; i++, at += half) {
		uint64_t wide[2] = { go->text + at, 64 + i * 16 };
		uint32_t narrow[2] = { at, 64 + i * 16 };
		uint32_t name = i ? 17 : 0;
		unsigned width = old ? 16 : 8;

		memcpy(table + functions + i * width, old ? (void *)wide : (void *)narrow, i < 2 ? width : width / 2);
		if (i < 2)
			memcpy(table + functions + 64 + i * 16 + (old ? 8 : 4), &name, 4);
	}
	image_section(im, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, table, functions + 128 > sizeof(table) ? sizeof(table)
		      : functions + 128, 0, 0);
	image_section(im, ".go.buildinfo", SHT_PROGBITS, SHF_ALLOC, names, 16, 0, 0);
}

static inline void image_go_end(struct image *im, const struct image_go *go)
{
	image_end(im);
	memcpy(im->file.data + offsetof(Elf64_Ehdr, e_entry), &go->entry, 8);
}

// A module with everything that is read: two named functions, one without a name, a label, aliases, a linkage table,
// two functions of Go at 0x100.
struct image_layout {
	uint64_t text, plt; // file offsets
};

static inline struct image_layout image_full(struct image *im)
{
	uint8_t code[0x400];
	uint8_t stub[32] = { 0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0, 0x90, 0x90, 0x90, 0x90, 0xff, 0x25 };
	uint8_t got[32] = { 0 };
	unsigned text, plt, got_section, dynsym;
	uint64_t at, slot;
	int32_t displacement;

	memset(code, 0x90, sizeof(code));
	image_begin(im);
	image_build_id(im, 0xab);
	text = image_section(im, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, code, sizeof(code), 0, 0);
	plt = image_section(im, ".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, stub, sizeof(stub), 0, 16);
	got_section = image_section(im, ".got.plt", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, got, sizeof(got), 0, 8);
	at = im->sections[text].sh_addr;
	slot = im->sections[got_section].sh_addr + 24;
	displacement = (int32_t)(slot - (im->sections[plt].sh_addr + 16 + 6));
	image_patch(im, plt, 18, &displacement, 4);

	image_symbol(im, "pwrite64", STB_GLOBAL, STT_FUNC, 0, 0, 0);
	image_symbol(im, "__pread64", STB_GLOBAL, STT_FUNC, text, at + 0x10, 0x40);
	image_symbol(im, "pread64", STB_WEAK, STT_FUNC, text, at + 0x10, 0x40);
	image_symbol(im, "_ZN7rocksdb2DB3GetERKNS_5SliceE", STB_GLOBAL, STT_FUNC, text, at + 0x80, 0x80);
	image_symbol(im, "in_assembler", STB_GLOBAL, STT_NOTYPE, text, at + 0x300, 0);
	image_symbol(im, "data_of_no_interest", STB_GLOBAL, STT_OBJECT, text, at + 0x200, 0x40);
	dynsym = image_symbols(im, SHT_DYNSYM);
	Elf64_Rela relocation = { .r_offset = slot, .r_info = ELF64_R_INFO(1, R_X86_64_JUMP_SLOT) };

	image_section(im, ".rela.plt", SHT_RELA, SHF_ALLOC, &relocation, sizeof(relocation), dynsym, sizeof(relocation));
	const struct image_function functions[] = { { at + 0x10, 0x40 }, { at + 0x80, 0x80 }, { at + 0x200, 0x60 },
						    { at + 0x3f0, 0x10 } };

	const struct image_go go = { .text = at + 0x100, .text_size = 0x40, .magic = 0xfffffff1, .says_text = true };

	image_frames(im, functions, 4, true);
	image_go_table(im, &go);
	image_end(im);
	return (struct image_layout){ image_offset(im, text), image_offset(im, plt) };
}

#endif
