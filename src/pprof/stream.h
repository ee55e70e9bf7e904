// SPDX-License-Identifier: Apache-2.0
// The bytes of a profile's message from a file or from memory, inflated where they are gzipped, through a window: what
// was read is not kept, so that the size of the file is not the size of the process. It can be read again from the start.
#ifndef BLKPROF_PPROF_STREAM_H
#define BLKPROF_PPROF_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "common/error.h"
#include "pprof/intern.h"

// fd < 0: the bytes are at data. The fd must be one that pread works on; it stays the caller's.
struct pprof_source {
	int fd;
	const void *data;
	size_t len;
};

struct stream {
	const uint8_t *p, *end; // unread bytes in the window
	bool eof;		// nothing comes behind them

	struct pprof_source source;
	struct memory_budget *budget;
	uint64_t limit;	   // bytes of the message
	uint64_t raw;	   // position in the source
	uint64_t base;	   // offset of window[0] in the message
	uint64_t produced; // bytes of the message so far
	uint8_t *window, *in;
	size_t window_cap, window_len, in_cap;
	bool gzip, z_open, between; // between two gzip members
	z_stream z;
	struct libdeflate_decompressor *whole; // for what is small enough to be inflated at once
};

// -EBADMSG (damaged), -EFBIG (more than limit), -ENOMEM, -E2BIG (budget) or what read said.
// A stream that is all zeros, or one that was opened before: its memory is used again.
int stream_open(struct stream *s, const struct pprof_source *source, uint64_t limit, struct memory_budget *budget,
		struct error *e);
void stream_close(struct stream *s);
int stream_rewind(struct stream *s, struct error *e);
// Of a stream that was opened or rewound, and has all of its message at hand: only [from, to) of it.
static inline void stream_narrow(struct stream *s, uint64_t from, uint64_t to)
{
	const uint8_t *start = s->p;

	s->p = start + from;
	s->end = start + to;
}

// Makes at least n bytes readable at s->p, or all there are when the end comes first.
int stream_need(struct stream *s, size_t n, struct error *e);
// Moves behind the next n bytes. -EBADMSG when the end comes first.
int stream_skip(struct stream *s, uint64_t n, struct error *e);

// Of s->p in the message.
static inline uint64_t stream_offset(const struct stream *s)
{
	return s->source.fd < 0 && !s->gzip ? (uint64_t)(s->p - (const uint8_t *)s->source.data) :
					      s->base + (uint64_t)(s->p - s->window);
}

#endif
