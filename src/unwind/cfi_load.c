// SPDX-License-Identifier: Apache-2.0
// Where the sections with call frame information are, and their bytes.
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "elf/dw_cursor.h"
#include "unwind/cfi_section.h"

// libdw of some versions reads the fields of an entry before it looks where the section ends.
#define SLACK 64

static int no_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "no memory for call frame information");
}

static int too_large(const char *name, uint64_t size, size_t max, struct error *e)
{
	return error_set(e, -EFBIG, "%s has %llu bytes, more than the limit of %zu", name, (unsigned long long)size, max);
}

static int section_new(size_t len, uint64_t address, bool eh_frame, struct cfi_section **ret, struct error *e)
{
	struct cfi_section *s = calloc(1, sizeof(*s));

	if (!s)
		return no_memory(e);
	s->data = malloc(len + SLACK);
	if (!s->data) {
		free(s);
		return no_memory(e);
	}
	memset(s->data + len, 0, SLACK);
	s->len = len;
	s->address = address;
	s->eh_frame = eh_frame;
	*ret = s;
	return 0;
}

static int load(const struct elf_file *f, const char *name, uint64_t offset, uint64_t size, uint64_t address, size_t max,
		struct cfi_section **ret, struct error *e)
{
	struct cfi_section *s;
	int err;

	if (offset > f->size || size > f->size - offset)
		return error_set(e, -EBADMSG, "%s lies outside of the file", name);
	if (size > max)
		return too_large(name, size, max, e);
	err = section_new((size_t)size, address, !strcmp(name, ".eh_frame"), &s, e);
	if (err)
		return err;
	if (elf_file_read(f, offset, s->data, s->len) != s->len) {
		cfi_section_free(s);
		return error_set(e, -EBADMSG, "%s cannot be read to its end", name);
	}
	*ret = s;
	return 0;
}

// Without section headers: .eh_frame_hdr points to .eh_frame, which ends with a word of zero or with its segment.
static bool find_by_header(const struct elf_file *f, struct elf_segment *ret)
{
	uint8_t raw[16];
	size_t len = elf_file_read_address(f, f->eh_frame_hdr.address, raw, sizeof(raw));
	struct dw_cursor c = dw_cursor_at(raw, raw + len);
	uint8_t encoding;
	uint64_t address;

	if (!f->eh_frame_hdr.memory_size || dw_byte(&c) != 1)
		return false;
	encoding = dw_byte(&c);
	dw_skip(&c, 2);
	address = dw_pointer(&c, encoding, f->eh_frame_hdr.address + 4, true);
	if (c.bad)
		return false;
	for (unsigned i = 0; i < f->loads_count; i++) {
		const struct elf_segment *s = &f->loads[i];

		if (address < s->address || address - s->address >= s->file_size)
			continue;
		ret->offset = s->offset + (address - s->address);
		ret->file_size = s->file_size - (address - s->address);
		ret->address = address;
		return true;
	}
	return false;
}

int cfi_section_eh_frame(const struct elf_file *f, size_t max, struct cfi_section **ret, struct error *e)
{
	const struct elf_section *section = elf_file_section(f, ".eh_frame");
	struct elf_segment found;
	int err;

	*ret = NULL;
	if (section && section->type != SHT_NOBITS && section->size)
		return load(f, ".eh_frame", section->offset, section->size, section->address, max, ret, e);
	// In a file of debug information alone the segments are there, their bytes are not.
	if (section || !find_by_header(f, &found))
		return 0;
	if (found.file_size > max)
		found.file_size = max;
	err = load(f, ".eh_frame", found.offset, found.file_size, found.address, max, ret, e);
	if (!err)
		(*ret)->open_end = true;
	return err;
}

static int inflate_section(const struct elf_file *f, const struct elf_section *section, size_t max,
			   struct cfi_section **ret, struct error *e)
{
	struct cfi_section *packed, *s;
	Elf64_Chdr header;
	uLongf len;
	int err = load(f, ".debug_frame", section->offset, section->size, 0, max, &packed, e);

	if (err)
		return err;
	if (packed->len < sizeof(header)) {
		cfi_section_free(packed);
		return error_set(e, -EBADMSG, ".debug_frame is compressed and has no header");
	}
	memcpy(&header, packed->data, sizeof(header));
	if (header.ch_type != ELFCOMPRESS_ZLIB)
		err = error_set(e, -EBADMSG, ".debug_frame is compressed with method %u, which is not supported",
				header.ch_type);
	else if (header.ch_size > max)
		err = too_large(".debug_frame", header.ch_size, max, e);
	else
		err = section_new((size_t)header.ch_size, 0, false, &s, e);
	if (!err) {
		len = s->len;
		if (uncompress(s->data, &len, packed->data + sizeof(header), packed->len - sizeof(header)) != Z_OK ||
		    len != s->len) {
			cfi_section_free(s);
			err = error_set(e, -EBADMSG, ".debug_frame does not decompress");
		}
	}
	cfi_section_free(packed);
	if (!err)
		*ret = s;
	return err;
}

int cfi_section_debug_frame(const struct elf_file *f, size_t max, struct cfi_section **ret, struct error *e)
{
	const struct elf_section *section = elf_file_section(f, ".debug_frame");

	*ret = NULL;
	if (!section || section->type == SHT_NOBITS || !section->size)
		return 0;
	if (section->flags & SHF_COMPRESSED)
		return inflate_section(f, section, max, ret, e);
	return load(f, ".debug_frame", section->offset, section->size, 0, max, ret, e);
}
