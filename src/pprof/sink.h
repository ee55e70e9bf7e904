// SPDX-License-Identifier: Apache-2.0
// Where an export goes: counted, or handed on in pieces. A failure is remembered and later writes do nothing.
#ifndef BLKPROF_PPROF_SINK_H
#define BLKPROF_PPROF_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

struct sink {
	int (*write)(void *context, const void *data, size_t len); // 0 or negative errno; NULL = only count
	void *context;
	uint64_t total, limit; // bytes; 0 = no limit
	struct buf pending;
	int error; // -EFBIG above the limit
};

void sink_put(struct sink *s, const void *data, size_t len);
void sink_text(struct sink *s, const char *text);
void sink_printf(struct sink *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Hands on what is pending and frees it; returns the error.
int sink_finish(struct sink *s);

// Text with what the format gives a meaning to replaced by its escape.
void sink_json(struct sink *s, const char *text);  // without the quotes
void sink_xml(struct sink *s, const char *text);   // content and attributes
void sink_frame(struct sink *s, const char *text); // of a collapsed stack: ';' and line ends would cut it

#endif
