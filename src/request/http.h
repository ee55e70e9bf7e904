// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP/1.x request and the first line of an answer, as they come off the wire: hostile, in pieces, cut.
#ifndef BLKPROF_REQUEST_HTTP_H
#define BLKPROF_REQUEST_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum http_result {
	HTTP_MORE,  // a good beginning; more bytes are needed
	HTTP_HEAD,  // whole
	HTTP_H2,    // the preface of HTTP/2
	HTTP_TLS,   // a TLS hello
	HTTP_OTHER, // no HTTP
};

struct http_text {
	const char *at;
	size_t len;
};

#define HTTP_HEAD_MAX 65536 // a head that is longer is none

struct http_head {
	struct http_text method, target, proto; // into the bytes that were parsed
	struct http_text trace_id, traceparent;
	uint64_t content_length;
	bool has_length, chunked, upgrade_h2c, expects_continue;
	bool bad_header; // a line that is no header
	size_t size;	 // bytes of the head, with its empty line
};

// trace_header: the name of the header that carries the request's own id, besides traceparent; NULL = X-Trace-Id.
enum http_result http_parse_head(const void *data, size_t size, const char *trace_header, struct http_head *ret);
// Of a head that was cut: what is certain of its first line; false when even that is not whole.
bool http_first_line(const void *data, size_t size, struct http_head *ret);

struct http_answer {
	int status;
	uint64_t content_length;
	bool has_length, chunked, bad_header;
	size_t size; // bytes of the head, with its empty line
};

// The head of the answer that begins here, when all of it is there.
bool http_parse_answer(const void *data, size_t size, struct http_answer *ret);
// Status of the answer that begins here; 0 = none does; -1 = it may, more bytes are needed.
int http_parse_status(const void *data, size_t size);

#endif
