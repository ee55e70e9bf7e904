// SPDX-License-Identifier: Apache-2.0
#include "pprof/sink.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PIECE ((size_t)64 << 10)

static void flush(struct sink *s)
{
	if (!s->error && s->pending.error)
		s->error = s->pending.error;
	if (!s->error && s->pending.len)
		s->error = s->write(s->context, s->pending.data, s->pending.len);
	s->pending.len = 0;
}

void sink_put(struct sink *s, const void *data, size_t len)
{
	if (s->error)
		return;
	s->total += len;
	if (s->limit && s->total > s->limit) {
		s->error = -EFBIG;
		return;
	}
	if (!s->write)
		return;
	buf_append(&s->pending, data, len);
	if (s->pending.len >= PIECE || s->pending.error)
		flush(s);
}

void sink_text(struct sink *s, const char *text)
{
	sink_put(s, text, strlen(text));
}

void sink_printf(struct sink *s, const char *format, ...)
{
	char text[512];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n > 0)
		sink_put(s, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

int sink_finish(struct sink *s)
{
	if (s->write)
		flush(s);
	buf_free(&s->pending);
	return s->error;
}

static const char *json_escape(const char *p, size_t *ret_len, char text[8])
{
	unsigned char c = (unsigned char)*p;

	*ret_len = 1;
	if (c == '"')
		return "\\\"";
	if (c == '\\')
		return "\\\\";
	if (c >= 0x20)
		return NULL;
	snprintf(text, 8, "\\u%04x", c);
	return text;
}

static const char *xml_escape(const char *p, size_t *ret_len, char text[8])
{
	*ret_len = 1;
	switch (*p) {
	case '&': return "&amp;";
	case '<': return "&lt;";
	case '>': return "&gt;";
	case '"': return "&quot;";
	case '\'': return "&#39;";
	}
	// U+FFFE and U+FFFF are valid UTF-8 and yet no characters of XML.
	if (!memcmp(p, "\xef", 1) && p[1] == '\xbf' && (p[2] == '\xbe' || p[2] == '\xbf')) {
		*ret_len = 3;
		return "?";
	}
	return (unsigned char)*p < 0x20 || *p == 0x7f ? "?" : NULL;
}

static const char *frame_escape(const char *p, size_t *ret_len, char text[8])
{
	*ret_len = 1;
	return *p == ';' ? ":" : (unsigned char)*p < 0x20 ? " " : NULL;
}

static void escaped(struct sink *s, const char *text, const char *(*escape)(const char *, size_t *, char[8]))
{
	const char *from = text, *to;
	char scratch[8];
	size_t len;

	while (*text) {
		to = escape(text, &len, scratch);
		if (!to) {
			text++;
			continue;
		}
		sink_put(s, from, (size_t)(text - from));
		sink_text(s, to);
		text += len;
		from = text;
	}
	sink_put(s, from, (size_t)(text - from));
}

void sink_json(struct sink *s, const char *text)
{
	escaped(s, text, json_escape);
}

void sink_xml(struct sink *s, const char *text)
{
	escaped(s, text, xml_escape);
}

void sink_frame(struct sink *s, const char *text)
{
	escaped(s, text, frame_escape);
}
