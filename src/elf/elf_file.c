// SPDX-License-Identifier: Apache-2.0
#include "elf/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS_MAX 256
#define SECTIONS_MAX 16384
#define NOTES_MAX    65536

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_DATA ELFDATA2LSB
#else
#define NATIVE_DATA ELFDATA2MSB
#endif

struct header {
	uint64_t segments, sections;
	uint16_t segment_size, segments_count, section_size, sections_count, names;
};

size_t elf_file_read(const struct elf_file *f, uint64_t offset, void *out, size_t len)
{
	size_t done = 0;

	if (offset >= f->size)
		return 0;
	if (len > f->size - offset)
		len = (size_t)(f->size - offset);
	if (f->image) {
		memcpy(out, f->image + offset, len);
		return len;
	}
	while (done < len) {
		ssize_t n = pread(f->fd, (char *)out + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

static bool read_exact(const struct elf_file *f, uint64_t offset, void *out, size_t len)
{
	return elf_file_read(f, offset, out, len) == len;
}

static int read_header(struct elf_file *f, struct header *h, struct error *e)
{
	unsigned char raw[sizeof(Elf64_Ehdr)] = { 0 };
	size_t len = elf_file_read(f, 0, raw, sizeof(raw));
	Elf64_Ehdr e64;
	Elf32_Ehdr e32;

	if (len < sizeof(e32) || memcmp(raw, ELFMAG, SELFMAG))
		return error_set(e, -ENOEXEC, "not an ELF file");
	if (raw[EI_DATA] != NATIVE_DATA)
		return error_set(e, -ENOEXEC, "ELF file of the other byte order");
	if (raw[EI_CLASS] == ELFCLASS32) {
		memcpy(&e32, raw, sizeof(e32));
		f->machine = e32.e_machine;
		f->entry = e32.e_entry;
		*h = (struct header){ e32.e_phoff,     e32.e_shoff, e32.e_phentsize, e32.e_phnum,
				      e32.e_shentsize, e32.e_shnum, e32.e_shstrndx };
		return 0;
	}
	if (raw[EI_CLASS] != ELFCLASS64 || len < sizeof(e64))
		return error_set(e, -ENOEXEC, "ELF header is cut off or of an unknown class");
	memcpy(&e64, raw, sizeof(e64));
	f->is64 = true;
	f->machine = e64.e_machine;
	f->entry = e64.e_entry;
	*h = (struct header){ e64.e_phoff,     e64.e_shoff, e64.e_phentsize, e64.e_phnum,
			      e64.e_shentsize, e64.e_shnum, e64.e_shstrndx };
	return 0;
}

static size_t padded(uint32_t size)
{
	return ((size_t)size + 3) & ~(size_t)3;
}

bool elf_note_next(const uint8_t *notes, size_t len, size_t *at, struct elf_note *ret)
{
	Elf64_Nhdr note; // the same in both classes
	size_t name, desc;

	if (len - *at < sizeof(note))
		return false;
	memcpy(&note, notes + *at, sizeof(note));
	*at += sizeof(note);
	name = padded(note.n_namesz);
	desc = padded(note.n_descsz);
	if (name > len - *at || note.n_descsz > len - *at - name)
		return false;
	*ret = (struct elf_note){ note.n_type, notes + *at, notes + *at + name, note.n_namesz, note.n_descsz };
	*at += name;
	*at += desc < len - *at ? desc : len - *at; // the last one's padding may be lacking
	return true;
}

static void find_build_id(struct elf_file *f, uint64_t offset, uint64_t size)
{
	struct elf_note note;
	uint8_t *notes;
	size_t len, at = 0;

	if (f->build_id_len || size < sizeof(Elf64_Nhdr))
		return;
	len = size < NOTES_MAX ? (size_t)size : NOTES_MAX;
	notes = malloc(len);
	if (!notes)
		return;
	len = elf_file_read(f, offset, notes, len);
	while (!f->build_id_len && elf_note_next(notes, len, &at, &note)) {
		if (note.type != NT_GNU_BUILD_ID || note.name_len != 4 || memcmp(note.name, "GNU", 4) || note.desc_len > ELF_BUILD_ID_MAX)
			continue;
		f->build_id_len = (unsigned)note.desc_len;
		memcpy(f->build_id, note.desc, note.desc_len);
	}
	free(notes);
}

// Most files have four: room for all that are allowed would be most of what an opened file takes.
static void add_load(struct elf_file *f, const struct elf_segment *s)
{
	struct elf_segment *grown = reallocarray(f->loads, f->loads_count + 1, sizeof(*grown));

	if (!grown)
		return;
	f->loads = grown;
	f->loads[f->loads_count++] = *s;
}

static void take_segment(struct elf_file *f, uint32_t type, const struct elf_segment *s)
{
	uint64_t end;

	if (type == PT_NOTE)
		find_build_id(f, s->offset, s->file_size);
	else if (type == PT_GNU_EH_FRAME)
		f->eh_frame_hdr = *s;
	else if (type == PT_LOAD && f->loads_count < ELF_LOADS_MAX && s->file_size <= s->memory_size &&
		 !__builtin_add_overflow(s->offset, s->file_size, &end) &&
		 !__builtin_add_overflow(s->address, s->memory_size, &end))
		add_load(f, s);
}

static int read_segments(struct elf_file *f, const struct header *h, struct error *e)
{
	size_t want = f->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	unsigned count = h->segments_count < SEGMENTS_MAX ? h->segments_count : SEGMENTS_MAX;

	if (count && h->segment_size != want)
		return error_set(e, -ENOEXEC, "ELF program headers have a wrong size");
	for (unsigned i = 0; i < count; i++) {
		uint64_t at = h->segments + (uint64_t)i * want;
		struct elf_segment s;
		uint32_t type;

		if (at < h->segments)
			return error_set(e, -ENOEXEC, "ELF program headers lie outside of the file");
		if (f->is64) {
			Elf64_Phdr p;

			if (!read_exact(f, at, &p, sizeof(p)))
				return error_set(e, -ENOEXEC, "ELF program headers lie outside of the file");
			type = p.p_type;
			s = (struct elf_segment){ p.p_offset, p.p_vaddr, p.p_filesz, p.p_memsz, p.p_flags };
		} else {
			Elf32_Phdr p;

			if (!read_exact(f, at, &p, sizeof(p)))
				return error_set(e, -ENOEXEC, "ELF program headers lie outside of the file");
			type = p.p_type;
			s = (struct elf_segment){ p.p_offset, p.p_vaddr, p.p_filesz, p.p_memsz, p.p_flags };
		}
		take_segment(f, type, &s);
	}
	return 0;
}

static struct elf_section section_at(const struct elf_file *f, const uint8_t *table, uint32_t i)
{
	if (f->is64) {
		Elf64_Shdr s;

		memcpy(&s, table + (size_t)i * sizeof(s), sizeof(s));
		return (struct elf_section){ s.sh_flags,   s.sh_addr, s.sh_offset, s.sh_size, s.sh_entsize,
					     s.sh_name,	   s.sh_type, s.sh_link,   s.sh_info };
	}
	Elf32_Shdr s;

	memcpy(&s, table + (size_t)i * sizeof(s), sizeof(s));
	return (struct elf_section){ s.sh_flags, s.sh_addr, s.sh_offset, s.sh_size, s.sh_entsize,
				     s.sh_name,	 s.sh_type, s.sh_link,	 s.sh_info };
}

// Section headers are optional in a file that runs: without them there are no names, but build-id and .eh_frame remain.
static int read_sections(struct elf_file *f, const struct header *h, struct error *e)
{
	size_t want = f->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	size_t len = (size_t)h->sections_count * want;
	uint8_t *table;

	if (!h->sections || !h->sections_count)
		return 0;
	if (h->section_size != want)
		return error_set(e, -ENOEXEC, "ELF section headers have a wrong size");
	if (h->sections_count > SECTIONS_MAX)
		return error_set(e, -E2BIG, "ELF file has more than %d sections", SECTIONS_MAX);
	table = malloc(len);
	f->sections = calloc(h->sections_count, sizeof(*f->sections));
	if (!table || !f->sections) {
		free(table);
		return error_set(e, -ENOMEM, "no memory for ELF section headers");
	}
	if (!read_exact(f, h->sections, table, len)) {
		free(table);
		return error_set(e, -ENOEXEC, "ELF section headers lie outside of the file");
	}
	for (uint32_t i = 0; i < h->sections_count; i++)
		f->sections[i] = section_at(f, table, i);
	free(table);
	f->sections_count = h->sections_count;
	f->names_section = h->names;
	return 0;
}

static int open_any(struct elf_file *f, struct error *e)
{
	struct header h = { 0 };
	int err = read_header(f, &h, e);

	if (!err)
		err = read_segments(f, &h, e);
	if (!err)
		err = read_sections(f, &h, e);
	if (err)
		return err;
	for (uint32_t i = 0; i < f->sections_count; i++)
		if (f->sections[i].type == SHT_NOTE)
			find_build_id(f, f->sections[i].offset, f->sections[i].size);
	return 0;
}

int elf_file_open(struct elf_file *f, int fd, struct error *e)
{
	struct stat st;

	memset(f, 0, sizeof(*f));
	f->fd = fd;
	if (fstat(fd, &st))
		return error_set(e, -errno, "cannot stat: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(e, -ENOEXEC, "not a regular file");
	f->size = (uint64_t)st.st_size;
	return open_any(f, e);
}

int elf_file_open_image(struct elf_file *f, uint8_t *image, size_t len, struct error *e)
{
	memset(f, 0, sizeof(*f));
	f->fd = -1;
	f->image = image;
	f->size = len;
	return open_any(f, e);
}

void elf_file_close(struct elf_file *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	free(f->image);
	free(f->sections);
	free(f->loads);
	memset(f, 0, sizeof(*f));
	f->fd = -1;
}

size_t elf_file_string(const struct elf_file *f, uint64_t offset, uint64_t end, char *out, size_t cap)
{
	size_t len;

	if (!cap)
		return 0;
	out[0] = 0;
	if (offset >= end)
		return 0;
	// Most names are short: a first small read spares copying a page for each.
	for (size_t want = cap < 128 ? cap : 128;; want = cap) {
		len = elf_file_read(f, offset, out, end - offset < want ? (size_t)(end - offset) : want);
		if (memchr(out, 0, len))
			return strlen(out);
		if (want == cap || len < want)
			break;
	}
	if (len == cap)
		len--;
	out[len] = 0;
	return strlen(out);
}

bool elf_file_address(const struct elf_file *f, uint64_t offset, uint64_t *ret_address)
{
	const struct elf_segment *found = NULL;

	for (unsigned i = 0; i < f->loads_count; i++) {
		const struct elf_segment *s = &f->loads[i];

		if (offset < s->offset || offset - s->offset >= s->file_size)
			continue;
		if (!found || (s->flags & PF_X && !(found->flags & PF_X)))
			found = s;
	}
	if (!found)
		return false;
	*ret_address = found->address + (offset - found->offset);
	return true;
}

bool elf_file_offset(const struct elf_file *f, uint64_t address, uint64_t *ret_offset)
{
	for (unsigned i = 0; i < f->loads_count; i++) {
		const struct elf_segment *s = &f->loads[i];

		if (address < s->address || address - s->address >= s->file_size)
			continue;
		*ret_offset = s->offset + (address - s->address);
		return true;
	}
	return false;
}

size_t elf_file_read_address(const struct elf_file *f, uint64_t address, void *out, size_t len)
{
	uint64_t offset;

	return elf_file_offset(f, address, &offset) ? elf_file_read(f, offset, out, len) : 0;
}

bool elf_file_section_is(const struct elf_file *f, const struct elf_section *s, const char *name)
{
	const struct elf_section *names;
	char text[32];
	uint64_t end;

	if (!f->sections || f->names_section >= f->sections_count)
		return false;
	names = &f->sections[f->names_section];
	if (__builtin_add_overflow(names->offset, names->size, &end) || s->name >= names->size)
		return false;
	elf_file_string(f, names->offset + s->name, end, text, sizeof(text));
	return !strcmp(text, name);
}

const struct elf_section *elf_file_section(const struct elf_file *f, const char *name)
{
	for (uint32_t i = 1; i < f->sections_count; i++)
		if (elf_file_section_is(f, &f->sections[i], name))
			return &f->sections[i];
	return NULL;
}

const struct elf_section *elf_file_section_type(const struct elf_file *f, uint32_t type)
{
	for (uint32_t i = 1; i < f->sections_count; i++)
		if (f->sections[i].type == type)
			return &f->sections[i];
	return NULL;
}

const struct elf_section *elf_file_code_section(const struct elf_file *f, uint64_t address)
{
	for (uint32_t i = 1; i < f->sections_count; i++) {
		const struct elf_section *s = &f->sections[i];

		if (s->flags & SHF_ALLOC && s->flags & SHF_EXECINSTR && address >= s->address &&
		    address - s->address < s->size)
			return s;
	}
	return NULL;
}

uint8_t *elf_file_section_data(const struct elf_file *f, const struct elf_section *s, size_t max, size_t *ret_len)
{
	uint8_t *data;

	if (s->type == SHT_NOBITS || !s->size || s->size > max || s->offset >= f->size ||
	    s->size > f->size - s->offset)
		return NULL;
	data = malloc((size_t)s->size);
	if (!data)
		return NULL;
	if (!read_exact(f, s->offset, data, (size_t)s->size)) {
		free(data);
		return NULL;
	}
	*ret_len = (size_t)s->size;
	return data;
}
