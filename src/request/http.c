// SPDX-License-Identifier: Apache-2.0
#include "request/http.h"

#include <string.h>
#include <strings.h>

static const char *const methods[] = { "GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT" };
#define N_METHODS (sizeof(methods) / sizeof(*methods))
static const char h2_preface[] = "PRI * HTTP/2.0\r\n";

// How the bytes agree with a word: whole, a part of it, or not.
static enum http_result agree(const char *data, size_t size, const char *word, size_t len)
{
	if (memcmp(data, word, size < len ? size : len))
		return HTTP_OTHER;
	return size < len ? HTTP_MORE : HTTP_HEAD;
}

static enum http_result find_method(const char *data, size_t size, struct http_text *ret)
{
	char word[16];

	for (size_t i = 0; i < N_METHODS; i++) {
		size_t len = strlen(methods[i]);
		enum http_result how;

		memcpy(word, methods[i], len);
		word[len] = ' ';
		how = agree(data, size, word, len + 1);
		if (how == HTTP_OTHER)
			continue;
		*ret = (struct http_text){ data, len };
		return how;
	}
	return HTTP_OTHER;
}

static bool target_valid(const struct http_text *t)
{
	for (size_t i = 0; i < t->len; i++)
		if ((unsigned char)t->at[i] <= ' ' || t->at[i] == 0x7f)
			return false;
	return t->len > 0;
}

// "METHOD TARGET HTTP/1.x", without its line's end.
static bool parse_line(const char *line, size_t len, struct http_head *ret)
{
	const char *space;

	if (find_method(line, len, &ret->method) != HTTP_HEAD)
		return false;
	ret->target.at = line + ret->method.len + 1;
	space = memchr(ret->target.at, ' ', len - ret->method.len - 1);
	if (!space)
		return false;
	ret->target.len = (size_t)(space - ret->target.at);
	ret->proto.at = space + 1;
	ret->proto.len = (size_t)(line + len - ret->proto.at);
	return target_valid(&ret->target) && ret->proto.len == 8 && !memcmp(ret->proto.at, "HTTP/1.", 7) && ret->proto.at[7] >= '0' &&
	       ret->proto.at[7] <= '9';
}

static struct http_text trim(const char *at, size_t len)
{
	while (len && (*at == ' ' || *at == '\t')) {
		at++;
		len--;
	}
	while (len && (at[len - 1] == ' ' || at[len - 1] == '\t'))
		len--;
	return (struct http_text){ at, len };
}

static bool is_name(const char *at, size_t len, const char *name)
{
	return strlen(name) == len && !strncasecmp(at, name, len);
}

static bool text_has(struct http_text t, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= t.len; i++)
		if (!strncasecmp(t.at + i, word, len))
			return true;
	return false;
}

static void set_length(struct http_head *h, struct http_text value)
{
	uint64_t n = 0;

	if (!value.len || value.len > 18) {
		h->bad_header = true;
		return;
	}
	for (size_t i = 0; i < value.len; i++) {
		if (value.at[i] < '0' || value.at[i] > '9') {
			h->bad_header = true;
			return;
		}
		n = n * 10 + (uint64_t)(value.at[i] - '0');
	}
	// Two lengths that differ are somebody's attempt to have two readers see two requests.
	if (h->has_length && h->content_length != n)
		h->bad_header = true;
	h->has_length = true;
	h->content_length = n;
}

static void take_header(struct http_head *h, const char *line, size_t len, const char *trace_header)
{
	const char *colon = memchr(line, ':', len);
	size_t name = colon ? (size_t)(colon - line) : 0;
	struct http_text value;

	if (!name) {
		h->bad_header = true;
		return;
	}
	value = trim(colon + 1, len - name - 1);
	if (is_name(line, name, "content-length"))
		set_length(h, value);
	else if (is_name(line, name, "transfer-encoding"))
		h->chunked |= text_has(value, "chunked");
	else if (is_name(line, name, "upgrade"))
		h->upgrade_h2c |= text_has(value, "h2c");
	else if (is_name(line, name, "expect"))
		h->expects_continue |= text_has(value, "100-continue");
	else if (is_name(line, name, "traceparent"))
		h->traceparent = value;
	else if (is_name(line, name, trace_header))
		h->trace_id = value;
}

// Up to the line's end, which is "\n" with or without "\r". NULL when it is not there.
static const char *line_end(const char *at, const char *end, size_t *ret_len)
{
	const char *nl = memchr(at, '\n', (size_t)(end - at));

	if (!nl)
		return NULL;
	*ret_len = (size_t)(nl - at) - (nl > at && nl[-1] == '\r');
	return nl + 1;
}

// What begins here, before the first line is whole.
static enum http_result kind_of(const char *data, size_t size)
{
	static const char tls[] = { 0x16, 0x03 };
	struct http_text method;
	enum http_result how;

	if (!size)
		return HTTP_MORE;
	if (agree(data, size, tls, sizeof(tls)) != HTTP_OTHER)
		return size < sizeof(tls) ? HTTP_MORE : HTTP_TLS;
	how = agree(data, size, h2_preface, sizeof(h2_preface) - 1);
	if (how != HTTP_OTHER)
		return how == HTTP_HEAD ? HTTP_H2 : HTTP_MORE;
	return find_method(data, size, &method);
}

enum http_result http_parse_head(const void *data, size_t size, const char *trace_header, struct http_head *ret)
{
	const char *at = data, *end = at + size, *next;
	struct http_head h = { 0 };
	enum http_result kind;
	size_t skipped = 0, len;

	// Empty lines in front of a request are to be let be; more than a few are none.
	while (at < end && skipped < 8 && (*at == '\r' || *at == '\n')) {
		at++;
		skipped++;
	}
	kind = kind_of(at, (size_t)(end - at));
	if (kind != HTTP_HEAD)
		return kind;
	next = line_end(at, end, &len);
	if (!next)
		return size > HTTP_HEAD_MAX ? HTTP_OTHER : HTTP_MORE;
	if (!parse_line(at, len, &h))
		return HTTP_OTHER;
	for (at = next; (next = line_end(at, end, &len)); at = next) {
		if (!len) {
			h.size = (size_t)(next - (const char *)data);
			*ret = h;
			return HTTP_HEAD;
		}
		take_header(&h, at, len, trace_header ? trace_header : "x-trace-id");
	}
	return size > HTTP_HEAD_MAX ? HTTP_OTHER : HTTP_MORE;
}

bool http_parse_answer(const void *data, size_t size, struct http_answer *ret)
{
	const char *at = data, *end = at + size, *next;
	int status = http_parse_status(data, size);
	struct http_head h = { 0 };
	size_t len;

	if (status <= 0)
		return false;
	at = line_end(at, end, &len);
	for (; at && (next = line_end(at, end, &len)); at = next) {
		if (!len) {
			*ret = (struct http_answer){ status, h.content_length, h.has_length, h.chunked, h.bad_header,
						     (size_t)(next - (const char *)data) };
			return true;
		}
		take_header(&h, at, len, "x-trace-id");
	}
	return false;
}

bool http_first_line(const void *data, size_t size, struct http_head *ret)
{
	const char *at = data, *end = at + size;
	struct http_head h = { 0 };
	size_t len;

	while (at < end && (*at == '\r' || *at == '\n'))
		at++;
	if (!line_end(at, end, &len) || !parse_line(at, len, &h))
		return false;
	*ret = h;
	return true;
}

int http_parse_status(const void *data, size_t size)
{
	static const char start[] = "HTTP/1.";
	const char *at = data;
	int status = 0;

	if (agree(at, size, start, 7) == HTTP_OTHER)
		return 0;
	if (size < 12)
		return -1;
	if (at[7] < '0' || at[7] > '9' || at[8] != ' ')
		return 0;
	for (unsigned i = 9; i < 12; i++) {
		if (at[i] < '0' || at[i] > '9')
			return 0;
		status = status * 10 + (at[i] - '0');
	}
	return status >= 100 ? status : 0;
}
