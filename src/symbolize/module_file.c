// SPDX-License-Identifier: Apache-2.0
// The file of a module, for those who read more of it than its names.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/module.h"

#define PAGE_MASK 4095ull

static int copy_image(const struct elf_file *f)
{
	int fd = memfd_create("vdso", MFD_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, f->image, f->size);
	if (n >= 0 && (uint64_t)n == f->size)
		return fd;
	close(fd);
	return -EIO;
}

int sym_module_open(struct sym_module *m)
{
	int fd;

	if (!m->elf_ok)
		return -ENOEXEC;
	if (m->elf.image)
		return copy_image(&m->elf);
	symbolizer_touch(m->owner, m);
	module_reopen_files(m);
	fd = m->elf.fd < 0 ? -ENOENT : fcntl(m->elf.fd, F_DUPFD_CLOEXEC, 3);
	if (fd == -1)
		fd = -errno;
	symbolizer_settle(m->owner, m);
	return fd;
}

bool sym_module_code_address(const struct sym_module *m, uint64_t file_offset, uint64_t *ret_address)
{
	for (unsigned i = 0; m->elf_ok && i < m->elf.loads_count; i++) {
		const struct elf_segment *s = &m->elf.loads[i];
		uint64_t first = s->offset & ~PAGE_MASK;

		if (!(s->flags & PF_X) || file_offset < first || file_offset - first >= s->offset - first + s->file_size)
			continue;
		*ret_address = s->address - s->offset + file_offset;
		return true;
	}
	return false;
}

bool sym_module_identity(const struct sym_module *m, char *out, size_t cap)
{
	if (!m->elf_ok)
		return false;
	if (m->build_id[0] && (m->trusted || m->elf.image))
		snprintf(out, cap, "%s %llu", m->build_id, (unsigned long long)m->elf.size);
	else
		snprintf(out, cap, "%llx:%llu:%llu:%lld", (unsigned long long)m->id.device, (unsigned long long)m->id.inode,
			 (unsigned long long)m->id.size, (long long)m->id.modified);
	return true;
}
