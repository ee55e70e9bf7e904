// SPDX-License-Identifier: Apache-2.0
#include "agent/jvm_memory.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "agent/jvm_flags.h"
#include "elf/elf_file.h"

#define TABLE_MAX (4u << 20) // a library exports some hundreds of names

static size_t read_memory(void *context, uint64_t address, void *out, size_t len)
{
	struct iovec local = { out, len }, remote = { (void *)(uintptr_t)address, len };
	ssize_t n = process_vm_readv(*(pid_t *)context, &local, 1, &remote, 1, 0);

	return n < 0 ? 0 : (size_t)n;
}

static void take_symbol(const char *name, uint64_t address, struct jvm_memory *m)
{
	for (unsigned i = 0; i < JVM_SYMBOLS; i++)
		if (!strcmp(name, jvm_symbol_name(i)))
			m->symbol[i] = address;
}

// Texts: terminated by their owner.
static void take_symbols(const uint8_t *table, size_t size, const char *texts, size_t texts_len, uint64_t bias, struct jvm_memory *m)
{
	Elf64_Sym s;

	for (size_t at = 0; at + sizeof(s) <= size; at += sizeof(s)) {
		memcpy(&s, table + at, sizeof(s));
		if (s.st_name < texts_len && s.st_shndx != SHN_UNDEF)
			take_symbol(texts + s.st_name, s.st_value + bias, m);
	}
}

static int find_symbols(const struct elf_file *f, uint64_t bias, struct jvm_memory *m)
{
	const struct elf_section *section = elf_file_section_type(f, SHT_DYNSYM);
	size_t size = 0, texts_len = 0;
	uint8_t *table, *texts;

	if (!section || section->link >= f->sections_count)
		return -ENOENT;
	table = elf_file_section_data(f, section, TABLE_MAX, &size);
	texts = elf_file_section_data(f, &f->sections[section->link], TABLE_MAX, &texts_len);
	if (table && texts) {
		texts[texts_len - 1] = 0;
		take_symbols(table, size, (const char *)texts, texts_len, bias, m);
	}
	free(table);
	free(texts);
	for (unsigned i = 0; i < JVM_SYMBOLS; i++)
		if (!m->symbol[i])
			return -ENOENT;
	return 0;
}

int jvm_memory_read(pid_t pid, int library, uint64_t start, uint64_t offset, struct jvm_options *ret)
{
	struct jvm_memory m = { .read = read_memory, .context = &pid };
	int fd = fcntl(library, F_DUPFD_CLOEXEC, 0), err;
	struct elf_file f;
	uint64_t address;

	if (fd < 0)
		return -errno;
	err = elf_file_open(&f, fd, NULL);
	if (!err && (!f.is64 || !elf_file_address(&f, offset, &address)))
		err = -EOPNOTSUPP;
	if (!err)
		err = find_symbols(&f, start - address, &m);
	elf_file_close(&f);
	return err ? err : jvm_flags_read(&m, ret);
}
