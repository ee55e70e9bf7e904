// SPDX-License-Identifier: Apache-2.0
#include "symbolize/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECKSUM_MAX   (256u << 20) // a larger debug file must have the module's build-id instead
#define PACKED_MAX     (16u << 20)
#define UNPACKED_MAX   (64u << 20)
#define UNPACK_MEMORY  (80u << 20)
#define HOST_DEBUG_DIR "/usr/lib/debug"

struct file_id file_id_of(const struct stat *st)
{
	struct file_id id;

	memset(&id, 0, sizeof(id));
	id.device = st->st_dev;
	id.inode = st->st_ino;
	id.size = (uint64_t)st->st_size;
	id.modified = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
	return id;
}

bool file_id_equal(const struct file_id *a, const struct file_id *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static bool host_root(const char *root)
{
	struct stat theirs, ours;

	if (!root)
		return true;
	return !stat(root, &theirs) && !stat("/", &ours) && theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

bool file_trusted(const struct stat *st, const char *root)
{
	return (!st->st_uid || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH)) && host_root(root);
}

int file_open_below(const char *root, const char *path)
{
	// Not blocking: a FIFO or a device may lie there.
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, .resolve = RESOLVE_IN_ROOT };
	int folder, fd, err;

	if (!root)
		return (fd = open(path, (int)how.flags)) < 0 ? -errno : fd;
	folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
	err = fd < 0 ? -errno : fd;
	close(folder);
	return err;
}

void debug_file_close(struct debug_file *d)
{
	elf_file_close(&d->elf);
	free(d->root);
	free(d->path);
	memset(d, 0, sizeof(*d));
	d->elf.fd = -1;
}

static bool open_at(struct debug_file *d, const char *root, const char *path)
{
	int fd = file_open_below(root, path);
	struct stat st;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return false;
	}
	d->id = file_id_of(&st);
	d->trusted = file_trusted(&st, root);
	d->root = root ? strdup(root) : NULL;
	d->path = strdup(path);
	if (!elf_file_open(&d->elf, fd, NULL) && d->path && (!root || d->root))
		return true;
	debug_file_close(d);
	return false;
}

static bool same_build_id(const struct elf_file *a, const struct elf_file *b)
{
	return a->build_id_len && a->build_id_len == b->build_id_len && !memcmp(a->build_id, b->build_id, a->build_id_len);
}

static bool by_build_id(struct debug_file *d, const struct elf_file *main, const char *root, const char *folder)
{
	char path[PATH_MAX];
	size_t len;

	if (main->build_id_len < 2)
		return false;
	len = (size_t)snprintf(path, sizeof(path), "%s/.build-id/%02x/", folder, main->build_id[0]);
	if (len + 2 * main->build_id_len + sizeof(".debug") > sizeof(path))
		return false;
	for (unsigned i = 1; i < main->build_id_len; i++)
		len += (size_t)snprintf(path + len, sizeof(path) - len, "%02x", main->build_id[i]);
	snprintf(path + len, sizeof(path) - len, ".debug");
	if (!open_at(d, root, path))
		return false;
	if (same_build_id(main, &d->elf))
		return true;
	debug_file_close(d);
	return false;
}

struct link {
	char name[256];
	uint32_t checksum;
};

// A file name, padding to 4 bytes, a CRC32 of the file.
static bool read_link(const struct elf_file *main, struct link *ret)
{
	const struct elf_section *section = elf_file_section(main, ".gnu_debuglink");
	size_t len, name;
	uint8_t *data = section ? elf_file_section_data(main, section, sizeof(ret->name) + 8, &len) : NULL;
	bool ok;

	if (!data)
		return false;
	name = strnlen((char *)data, len);
	ok = name && name < sizeof(ret->name) && ((name + 4) & ~(size_t)3) + 4 <= len && !memchr(data, '/', name) &&
	     strcmp((char *)data, "..") && strcmp((char *)data, ".");
	if (ok) {
		memcpy(ret->name, data, name + 1);
		memcpy(&ret->checksum, data + ((name + 4) & ~(size_t)3), 4);
	}
	free(data);
	return ok;
}

static bool checksum_matches(const struct elf_file *f, uint32_t want)
{
	size_t cap = 256 << 10, n;
	uint8_t *data = malloc(cap);
	uint32_t crc = 0;

	if (!data)
		return false;
	for (uint64_t at = 0; (n = elf_file_read(f, at, data, cap)); at += n)
		crc = lzma_crc32(data, n, crc);
	free(data);
	return crc == want;
}

static bool link_at(struct debug_file *d, const struct elf_file *main, const struct link *link, const char *root,
		    const char *path)
{
	if (!open_at(d, root, path))
		return false;
	if (main->build_id_len && d->elf.build_id_len && !same_build_id(main, &d->elf))
		goto other;
	if (d->elf.size > CHECKSUM_MAX ? same_build_id(main, &d->elf) : checksum_matches(&d->elf, link->checksum))
		return true;
other:
	debug_file_close(d);
	return false;
}

static bool by_link(struct debug_file *d, const struct elf_file *main, const char *path, const char *root,
		    const char *debug_root)
{
	char at[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash - path) : 0;
	const struct {
		const char *root, *prefix, *middle;
	} places[] = {
		{ root, "", "" },
		{ root, "", "/.debug" },
		{ root, HOST_DEBUG_DIR, "" },
		{ NULL, debug_root, "" },
	};
	struct link link;

	if (!slash || *path != '/' || !read_link(main, &link))
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		int len = snprintf(at, sizeof(at), "%s%.*s%s/%s", places[i].prefix, folder, path, places[i].middle, link.name);

		if (len < (int)sizeof(at) && strcmp(at, path) && link_at(d, main, &link, places[i].root, at))
			return true;
	}
	return false;
}

bool debug_file_find(struct debug_file *d, const struct elf_file *main, const char *path, const char *root,
		     const char *debug_root)
{
	memset(d, 0, sizeof(*d));
	d->elf.fd = -1;
	d->found = (root && by_build_id(d, main, root, HOST_DEBUG_DIR)) || by_build_id(d, main, NULL, debug_root) ||
		   by_link(d, main, path, root, debug_root);
	return d->found;
}

static uint8_t *unpack(const uint8_t *packed, size_t packed_len, size_t *ret_len)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	size_t cap = packed_len * 4 + 4096;
	uint8_t *data = malloc(cap), *larger;
	lzma_ret ret = LZMA_OK;

	if (!data || lzma_stream_decoder(&stream, UNPACK_MEMORY, 0) != LZMA_OK) {
		free(data);
		return NULL;
	}
	stream.next_in = packed;
	stream.avail_in = packed_len;
	stream.next_out = data;
	stream.avail_out = cap;
	while ((ret = lzma_code(&stream, LZMA_FINISH)) == LZMA_OK && !stream.avail_out) {
		if (cap >= UNPACKED_MAX || !(larger = realloc(data, cap * 2)))
			break;
		data = larger;
		stream.next_out = data + cap;
		stream.avail_out = cap;
		cap *= 2;
	}
	*ret_len = (size_t)stream.total_out;
	lzma_end(&stream);
	if (ret == LZMA_STREAM_END)
		return data;
	free(data);
	return NULL;
}

bool debug_data_open(struct elf_file *mini, const struct elf_file *main)
{
	const struct elf_section *section = elf_file_section(main, ".gnu_debugdata");
	size_t packed_len, len;
	uint8_t *packed = section ? elf_file_section_data(main, section, PACKED_MAX, &packed_len) : NULL, *data;

	memset(mini, 0, sizeof(*mini));
	mini->fd = -1;
	if (!packed)
		return false;
	data = unpack(packed, packed_len, &len);
	free(packed);
	if (!data)
		return false;
	if (!elf_file_open_image(mini, data, len, NULL))
		return true;
	elf_file_close(mini);
	return false;
}
