// SPDX-License-Identifier: Apache-2.0
// A bounded reader of one ELF file. It never maps the file: a file that shrinks under a mapping kills its reader with
// SIGBUS, a pread only comes back short. 32 and 64 bits, the byte order of this machine.
#ifndef BLKPROF_ELF_ELF_FILE_H
#define BLKPROF_ELF_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define ELF_LOADS_MAX	 32
#define ELF_BUILD_ID_MAX 64

struct elf_segment {
	uint64_t offset, address, file_size, memory_size;
	uint32_t flags; // PF_X…
};

struct elf_section {
	uint64_t flags, address, offset, size, entry_size;
	uint32_t name; // offset in the section names
	uint32_t type, link, info;
};

struct elf_file {
	int fd;		// owned; -1 for an image in memory, or while the owner has closed it to save descriptors
	uint8_t *image; // owned, or NULL
	uint64_t size;
	bool is64;
	uint16_t machine;
	uint64_t entry; // virtual address
	struct elf_segment *loads; // owned; at most ELF_LOADS_MAX
	unsigned loads_count;
	struct elf_segment eh_frame_hdr; // memory_size 0 = there is none
	uint8_t build_id[ELF_BUILD_ID_MAX];
	unsigned build_id_len;
	uint32_t sections_count, names_section;
	struct elf_section *sections; // owned; NULL without section headers
};

// Takes fd (or the image, from malloc) whether it succeeds or not; elf_file_close releases it in both cases.
int elf_file_open(struct elf_file *f, int fd, struct error *e);
int elf_file_open_image(struct elf_file *f, uint8_t *image, size_t len, struct error *e);
void elf_file_close(struct elf_file *f);

// Up to len bytes at an offset of the file; the number that is there.
size_t elf_file_read(const struct elf_file *f, uint64_t offset, void *out, size_t len);
// The string at an offset, within the section that ends at `end`. Its length, or 0; truncated to cap - 1.
size_t elf_file_string(const struct elf_file *f, uint64_t offset, uint64_t end, char *out, size_t cap);
// Between file offsets and virtual addresses, through the program headers.
bool elf_file_address(const struct elf_file *f, uint64_t offset, uint64_t *ret_address);
bool elf_file_offset(const struct elf_file *f, uint64_t address, uint64_t *ret_offset);
// Up to len bytes at a virtual address.
size_t elf_file_read_address(const struct elf_file *f, uint64_t address, void *out, size_t len);

const struct elf_section *elf_file_section(const struct elf_file *f, const char *name);
const struct elf_section *elf_file_section_type(const struct elf_file *f, uint32_t type);
// The executable section at a virtual address, or NULL.
const struct elf_section *elf_file_code_section(const struct elf_file *f, uint64_t address);
bool elf_file_section_is(const struct elf_file *f, const struct elf_section *s, const char *name);
// A section's content from malloc; NULL when it is empty, larger than max or not wholly in the file.
uint8_t *elf_file_section_data(const struct elf_file *f, const struct elf_section *s, size_t max, size_t *ret_len);

struct elf_note {
	uint32_t type;
	const uint8_t *name, *desc; // in the notes
	size_t name_len, desc_len;
};
// The note at *at, which goes on behind it; false at the end, or where what follows is none.
bool elf_note_next(const uint8_t *notes, size_t len, size_t *at, struct elf_note *ret);

#endif
