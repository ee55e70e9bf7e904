// SPDX-License-Identifier: Apache-2.0
#include "pprof/stream.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"

#define CHUNK ((size_t)256 << 10)
// A message up to this size is kept in the window, so that reading it again needs no second inflation.
#define KEEP ((size_t)32 << 20)
// Gzipped bytes in memory up to this many are inflated at once, to at most so many times as many.
#define WHOLE ((size_t)1 << 20)
#define WHOLE_RATIO 32

static int no_memory(struct stream *s, int err, struct error *e)
{
	char limit[32];

	if (err != -E2BIG)
		return error_set(e, err, "out of memory");
	return error_set(e, err, "reading it takes more than the limit of %s of memory",
			 text_bytes(limit, sizeof(limit), (double)s->budget->limit));
}

static int read_source(struct stream *s, void *to, size_t len, size_t *ret, struct error *e)
{
	ssize_t n;

	if (s->source.fd < 0) {
		*ret = s->source.len - s->raw < len ? s->source.len - s->raw : len;
		if (*ret)
			memcpy(to, (const uint8_t *)s->source.data + s->raw, *ret);
		s->raw += *ret;
		return 0;
	}
	do
		n = pread(s->source.fd, to, len, (off_t)s->raw);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set(e, -errno, "cannot read: %s", strerror(errno));
	*ret = (size_t)n;
	s->raw += (uint64_t)n;
	return 0;
}

static int refill_input(struct stream *s, struct error *e)
{
	size_t n;
	int err;

	if (s->z.avail_in)
		return 0;
	err = read_source(s, s->in, s->in_cap, &n, e);
	if (err)
		return err;
	s->z.next_in = s->in;
	s->z.avail_in = (unsigned)n;
	return 0;
}

// Behind a member: the end, padding of zeros, or another member.
static int next_member(struct stream *s, struct error *e)
{
	int err;

	for (;;) {
		err = refill_input(s, e);
		if (err)
			return err;
		if (!s->z.avail_in) {
			s->eof = true;
			return 0;
		}
		if (*s->z.next_in)
			break;
		s->z.next_in++;
		s->z.avail_in--;
	}
	if (*s->z.next_in != 0x1f)
		return error_set(e, -EBADMSG, "bytes that are not gzip follow the gzip data, at byte %llu of the file",
				 (unsigned long long)(s->raw - s->z.avail_in));
	s->between = false;
	if (inflateReset(&s->z) != Z_OK)
		return error_set(e, -ENOMEM, "out of memory");
	return 0;
}

static int inflate_some(struct stream *s, uint8_t *to, size_t len, size_t *ret, struct error *e)
{
	int z, err;

	s->z.next_out = to;
	s->z.avail_out = (unsigned)len;
	while (s->z.avail_out == len && !s->eof) {
		err = s->between ? next_member(s, e) : refill_input(s, e);
		if (err)
			return err;
		if (s->eof)
			break;
		if (!s->z.avail_in)
			return error_set(e, -EBADMSG, "the file is cut off: it ends at byte %llu, within the gzip data",
					 (unsigned long long)s->raw);
		z = inflate(&s->z, Z_NO_FLUSH);
		if (z == Z_STREAM_END)
			s->between = true;
		else if (z == Z_MEM_ERROR)
			return error_set(e, -ENOMEM, "out of memory");
		else if (z != Z_OK && z != Z_BUF_ERROR)
			return error_set(e, -EBADMSG, "the gzip data is damaged near byte %llu of the file (%s)",
					 (unsigned long long)(s->raw - s->z.avail_in), s->z.msg ? s->z.msg : "zlib");
	}
	*ret = len - s->z.avail_out;
	return 0;
}

// Room for n unread bytes and a chunk behind what is there.
static int make_room(struct stream *s, size_t n, struct error *e)
{
	size_t used = s->window_len, unread = (size_t)(s->end - s->p), start = used - unread, want;
	bool keep = s->gzip && !s->base && used + CHUNK <= KEEP;
	int err;

	if (!keep && start) {
		memmove(s->window, s->p, unread);
		s->base += start;
		s->window_len = used = unread;
		start = 0;
	}
	want = used + (n > unread + CHUNK ? n - unread : CHUNK);
	err = memory_grow(s->budget, &s->window, &s->window_cap, want, 1);
	s->p = s->window + start;
	s->end = s->window + used;
	return err ? no_memory(s, err, e) : 0;
}

int stream_need(struct stream *s, size_t n, struct error *e)
{
	char limit[32];
	size_t got;
	int err;

	while ((size_t)(s->end - s->p) < n && !s->eof) {
		err = make_room(s, n, e);
		if (err)
			return err;
		if (s->gzip)
			err = inflate_some(s, s->window + s->window_len, s->window_cap - s->window_len, &got, e);
		else
			err = read_source(s, s->window + s->window_len, s->window_cap - s->window_len, &got, e);
		if (err)
			return err;
		if (!s->gzip && !got)
			s->eof = true;
		s->produced += got;
		if (s->produced > s->limit)
			return error_set(e, -EFBIG, "it %s more than the limit of %s", s->gzip ? "inflates to" : "has",
					 text_bytes(limit, sizeof(limit), (double)s->limit));
		s->window_len += got;
		s->end = s->window + s->window_len;
	}
	return 0;
}

int stream_skip(struct stream *s, uint64_t n, struct error *e)
{
	uint64_t at = stream_offset(s);
	int err;

	while (n > (uint64_t)(s->end - s->p)) {
		n -= (uint64_t)(s->end - s->p);
		s->p = s->end;
		err = stream_need(s, 1, e);
		if (err)
			return err;
		if (s->p == s->end)
			return error_set(e, -EBADMSG, "byte %llu: a field reaches past the end, at byte %llu (cut off?)",
					 (unsigned long long)at, (unsigned long long)stream_offset(s));
	}
	s->p += n;
	return 0;
}

// The size that the gzip trailer claims bounds the room; whatever is not as it says is left to zlib, which also finds the words
// for what is wrong.
static bool inflate_whole(struct stream *s)
{
	const uint8_t *data = s->source.data, *tail;
	size_t in, out, room;

	if (s->source.fd >= 0 || s->source.len < 18 || s->source.len > WHOLE)
		return false;
	tail = data + s->source.len - 4;
	room = (size_t)tail[0] | (size_t)tail[1] << 8 | (size_t)tail[2] << 16 | (size_t)tail[3] << 24;
	if (!room || room > s->limit || room > s->source.len * WHOLE_RATIO)
		return false;
	if (!s->whole)
		s->whole = libdeflate_alloc_decompressor();
	if (!s->whole || memory_grow(s->budget, &s->window, &s->window_cap, room, 1))
		return false;
	if (libdeflate_gzip_decompress_ex(s->whole, data, s->source.len, s->window, room, &in, &out) || in != s->source.len)
		return false;
	s->raw = s->source.len;
	s->produced = s->window_len = out;
	s->p = s->window;
	s->end = s->window + out;
	s->eof = true;
	return true;
}

static int start_zlib(struct stream *s, struct error *e)
{
	int err = memory_grow(s->budget, &s->in, &s->in_cap, 64 << 10, 1);

	if (err)
		return no_memory(s, err, e);
	s->p = s->end = s->window;
	s->z.avail_in = 0;
	if (s->z_open)
		return inflateReset(&s->z) == Z_OK ? 0 : error_set(e, -ENOMEM, "out of memory");
	if (inflateInit2(&s->z, 15 + 16) != Z_OK)
		return error_set(e, -ENOMEM, "out of memory");
	s->z_open = true;
	return 0;
}

static int start(struct stream *s, struct error *e)
{
	if (!s->gzip && s->source.fd < 0) {
		s->p = s->source.data;
		s->end = s->p + s->source.len;
		s->eof = true;
		if (s->source.len > s->limit)
			return error_set(e, -EFBIG, "it has more than the limit of %llu bytes", (unsigned long long)s->limit);
		return 0;
	}
	s->raw = s->base = s->produced = 0;
	s->window_len = 0;
	s->p = s->end = s->window;
	s->eof = s->between = false;
	if (!s->gzip)
		return 0;
	return inflate_whole(s) ? 0 : start_zlib(s, e);
}

int stream_open(struct stream *s, const struct pprof_source *source, uint64_t limit, struct memory_budget *budget,
		struct error *e)
{
	uint8_t magic[2];
	size_t n;
	int err;

	s->source = *source;
	s->raw = s->base = s->produced = 0;
	s->window_len = 0;
	s->limit = limit;
	s->budget = budget;
	err = read_source(s, magic, sizeof(magic), &n, e);
	if (err)
		return err;
	s->gzip = n == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
	// The window exists also for an empty file: offsets are taken from it.
	err = memory_grow(budget, &s->window, &s->window_cap, 64, 1);
	return err ? no_memory(s, err, e) : start(s, e);
}

int stream_rewind(struct stream *s, struct error *e)
{
	if (s->gzip && !s->base && s->eof) {
		s->p = s->window;
		return 0;
	}
	return start(s, e);
}

void stream_close(struct stream *s)
{
	if (s->z_open)
		inflateEnd(&s->z);
	if (s->whole)
		libdeflate_free_decompressor(s->whole);
	memory_give(s->budget, s->window_cap + s->in_cap);
	free(s->window);
	free(s->in);
	memset(s, 0, sizeof(*s));
}
