// SPDX-License-Identifier: Apache-2.0
#include "agent/spool_file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "common/file.h"
#include "wire/header.h"

#define VERSION 1
#define SUFFIX ".batch"

static const char magic[8] = "BLKSPOOL";

// Little-endian, as it lies in the file.
struct header {
	char magic[8];
	uint32_t version, kind;
	uint8_t instance[16];
	uint64_t sequence, start, end, gap_first, gap_bytes, size;
	char node[BATCH_NODE_MAX];
	uint8_t reserved[40];
	uint32_t payload_crc;
	uint32_t crc; // of all before
};

_Static_assert(sizeof(struct header) == SPOOL_HEADER, "layout");

static uint32_t checksum(const void *data, size_t size)
{
	return (uint32_t)crc32(crc32(0, NULL, 0), data, (uInt)size);
}

void spool_header_encode(const struct spool_file *f, const void *payload, uint8_t out[SPOOL_HEADER])
{
	struct header h = { .version = htole32(VERSION), .kind = htole32(f->kind) };

	memcpy(h.magic, magic, sizeof(h.magic));
	memcpy(h.instance, f->instance, sizeof(h.instance));
	h.sequence = htole64(f->sequence);
	h.start = htole64(f->start);
	h.end = htole64(f->end);
	h.gap_first = htole64(f->gap_first);
	h.gap_bytes = htole64(f->gap_bytes);
	h.size = htole64(f->size);
	memcpy(h.node, f->node, strnlen(f->node, sizeof(h.node)));
	h.payload_crc = htole32(checksum(payload, f->size));
	h.crc = htole32(checksum(&h, offsetof(struct header, crc)));
	memcpy(out, &h, sizeof(h));
}

static int check_header(const struct header *h, struct error *e)
{
	if (memcmp(h->magic, magic, sizeof(magic)))
		return error_set(e, -EBADMSG, "it is no file of a spool");
	if (le32toh(h->crc) != checksum(h, offsetof(struct header, crc)))
		return error_set(e, -EBADMSG, "the checksum of its header is wrong");
	if (le32toh(h->version) != VERSION)
		return error_set(e, -EPROTO, "its version is %u, this program reads %u", le32toh(h->version), VERSION);
	return 0;
}

static int check_fields(const struct spool_file *f, struct error *e)
{
	if (f->kind != BATCH_WINDOW && f->kind != BATCH_GAP && f->kind != BATCH_REQUESTS)
		return error_set(e, -EBADMSG, "there is no kind %u of batches", f->kind);
	if (!f->sequence || f->start > f->end || f->end > INT64_MAX)
		return error_set(e, -EBADMSG, "its sequence number or its times cannot be");
	if (!batch_node_valid(f->node))
		return error_set(e, -EBADMSG, "its node has a name that cannot be");
	if (f->size < MESSAGE_HEADER_SIZE || f->size > BATCH_BYTES_MAX)
		return error_set(e, -EBADMSG, "a batch of %" PRIu64 " bytes cannot be", f->size);
	if (f->kind == BATCH_GAP && (!f->gap_first || f->gap_first > f->sequence))
		return error_set(e, -EBADMSG, "a gap from %" PRIu64 " to %" PRIu64 " cannot be", f->gap_first, f->sequence);
	return 0;
}

int spool_header_decode(const void *data, size_t size, struct spool_file *ret, struct error *e)
{
	struct spool_file f = { 0 };
	struct header h;
	int err;

	if (size < sizeof(h))
		return error_set(e, -EBADMSG, "it ends in its header");
	memcpy(&h, data, sizeof(h));
	err = check_header(&h, e);
	if (err)
		return err;
	memcpy(f.instance, h.instance, sizeof(f.instance));
	memcpy(f.node, h.node, sizeof(h.node));
	f.kind = le32toh(h.kind);
	f.sequence = le64toh(h.sequence);
	f.start = le64toh(h.start);
	f.end = le64toh(h.end);
	f.gap_first = le64toh(h.gap_first);
	f.gap_bytes = le64toh(h.gap_bytes);
	f.size = le64toh(h.size);
	err = check_fields(&f, e);
	if (!err)
		*ret = f;
	return err;
}

int spool_file_decode(const void *data, size_t size, struct spool_file *ret, const uint8_t **ret_payload, struct error *e)
{
	const uint8_t *payload = (const uint8_t *)data + SPOOL_HEADER;
	struct spool_file f;
	struct header h;
	int err = spool_header_decode(data, size, &f, e);

	if (err)
		return err;
	memcpy(&h, data, sizeof(h));
	if (size - SPOOL_HEADER != f.size)
		return error_set(e, -EBADMSG, "it has %zu bytes of a batch of %" PRIu64, size - SPOOL_HEADER, f.size);
	if (le32toh(h.payload_crc) != checksum(payload, f.size))
		return error_set(e, -EBADMSG, "the checksum of its batch is wrong");
	*ret = f;
	*ret_payload = payload;
	return 0;
}

// ---- names: ORDER-INSTANCE-SEQUENCE.batch, all hexadecimal

void spool_name_format(char out[SPOOL_NAME_MAX], uint64_t order, const uint8_t instance[16], uint64_t sequence)
{
	char hex[33];

	for (int i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", instance[i]);
	snprintf(out, SPOOL_NAME_MAX, "%016" PRIx64 "-%s-%016" PRIx64 SUFFIX, order, hex, sequence);
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse_hex(const char **at, unsigned digits, uint64_t *ret)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < digits; i++, (*at)++) {
		int d = digit(**at);

		if (d < 0)
			return -EINVAL;
		n = n << 4 | (uint64_t)d;
	}
	*ret = n;
	return 0;
}

int spool_name_parse(const char *name, uint64_t *ret_order, uint8_t ret_instance[16], uint64_t *ret_sequence, int *ret_temporary)
{
	uint64_t order, sequence, byte;
	uint8_t instance[16];

	if (parse_hex(&name, 16, &order) || *name++ != '-')
		return -EINVAL;
	for (int i = 0; i < 16; i++) {
		if (parse_hex(&name, 2, &byte))
			return -EINVAL;
		instance[i] = (uint8_t)byte;
	}
	if (*name++ != '-' || parse_hex(&name, 16, &sequence) || !sequence || strncmp(name, SUFFIX, strlen(SUFFIX)))
		return -EINVAL;
	name += strlen(SUFFIX);
	if (*name && strcmp(name, SPOOL_TEMPORARY))
		return -EINVAL;
	*ret_order = order;
	memcpy(ret_instance, instance, sizeof(instance));
	*ret_sequence = sequence;
	*ret_temporary = *name != 0;
	return 0;
}

// ---- on disk

static int write_parts(int fd, const struct spool_file *f, const void *payload)
{
	uint8_t header[SPOOL_HEADER];
	int err;

	spool_header_encode(f, payload, header);
	err = file_write_fd(fd, header, sizeof(header));
	if (!err)
		err = file_write_fd(fd, payload, f->size);
	if (!err && fdatasync(fd))
		err = -errno;
	return err;
}

int spool_file_write(int folder, const char *name, const struct spool_file *f, const void *payload)
{
	char temporary[SPOOL_NAME_MAX + sizeof(SPOOL_TEMPORARY)];
	int fd, err;

	snprintf(temporary, sizeof(temporary), "%s" SPOOL_TEMPORARY, name);
	fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = write_parts(fd, f, payload);
	if (close(fd) && !err)
		err = -errno;
	if (!err && renameat(folder, temporary, folder, name))
		err = -errno;
	if (err) {
		unlinkat(folder, temporary, 0);
		return err;
	}
	return fsync(folder) ? -errno : 0;
}

// A regular file: a link or a pipe that somebody put there is damage.
static int open_regular(int folder, const char *name, struct stat *ret)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), err = 0;

	if (fd < 0)
		return errno == ELOOP ? -EBADMSG : -errno;
	if (fstat(fd, ret))
		err = -errno;
	else if (!S_ISREG(ret->st_mode) || ret->st_size < SPOOL_HEADER || ret->st_size > SPOOL_HEADER + (off_t)BATCH_BYTES_MAX)
		err = -EBADMSG;
	if (err)
		close(fd);
	return err ? err : fd;
}

static int same_identity(const struct spool_file *f, const uint8_t instance[16], uint64_t sequence)
{
	return f->sequence == sequence && !memcmp(f->instance, instance, sizeof(f->instance)) ? 0 : -EBADMSG;
}

int spool_file_peek(int folder, const char *name, const uint8_t instance[16], uint64_t sequence, struct spool_file *ret)
{
	uint8_t header[SPOOL_HEADER];
	struct spool_file f;
	struct stat st;
	int fd = open_regular(folder, name, &st), err;
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, header, sizeof(header));
	err = n < 0 ? -errno : spool_header_decode(header, (size_t)n, &f, NULL);
	close(fd);
	if (!err)
		err = (uint64_t)st.st_size == SPOOL_HEADER + f.size ? same_identity(&f, instance, sequence) : -EBADMSG;
	if (!err)
		*ret = f;
	return err;
}

int spool_file_read(int folder, const char *name, const uint8_t instance[16], uint64_t sequence, uint8_t **ret, size_t *ret_size)
{
	const uint8_t *payload;
	struct buf b = { 0 };
	struct spool_file f;
	struct stat st;
	int fd = open_regular(folder, name, &st), err;

	if (fd < 0)
		return fd;
	err = file_read_fd(fd, SPOOL_HEADER + BATCH_BYTES_MAX, &b);
	close(fd);
	if (!err)
		err = spool_file_decode(b.data, b.len, &f, &payload, NULL);
	if (!err)
		err = same_identity(&f, instance, sequence);
	if (err) {
		buf_free(&b);
		return err;
	}
	memmove(b.data, payload, f.size);
	*ret = b.data;
	*ret_size = f.size;
	return 0;
}
