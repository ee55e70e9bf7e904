// SPDX-License-Identifier: Apache-2.0
#include "request/document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

struct scan {
	const char *start, *at, *end;
	struct error *e;
};

static int bad(const struct scan *s, const char *what)
{
	return error_set(s->e, -EBADMSG, "%s at byte %zu", what, (size_t)(s->at - s->start));
}

static void skip_blanks(struct scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
		s->at++;
}

static bool take(struct scan *s, char c)
{
	skip_blanks(s);
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Behind the backslash.
static int scan_escape(struct scan *s)
{
	char c = s->at < s->end ? *s->at++ : 0;

	if (c && strchr("\"\\/bfnrt", c))
		return 0;
	if (c != 'u' || s->end - s->at < 4)
		return bad(s, "a wrong escape");
	for (unsigned i = 0; i < 4; i++)
		if (hex_digit(*s->at++) < 0)
			return bad(s, "a wrong escape");
	return 0;
}

static int scan_text(struct scan *s)
{
	const char *begin = ++s->at;

	while (s->at < s->end && *s->at != '"') {
		unsigned char c = (unsigned char)*s->at++;
		int err = c == '\\' ? scan_escape(s) : c < 0x20 ? bad(s, "a control character in a text") : 0;

		if (err)
			return err;
	}
	if (s->at == s->end)
		return bad(s, "a text without an end");
	if (!text_is_utf8(begin, (size_t)(s->at - begin)))
		return bad(s, "a text that is not UTF-8");
	s->at++;
	return 0;
}

static bool scan_digits(struct scan *s)
{
	const char *begin = s->at;

	while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
		s->at++;
	return s->at > begin;
}

static int scan_number(struct scan *s)
{
	const char *begin;

	if (*s->at == '-')
		s->at++;
	begin = s->at;
	if (!scan_digits(s) || (*begin == '0' && s->at - begin > 1))
		return bad(s, "no value that a record may have (text, number, true, false, array of texts)");
	if (s->at < s->end && *s->at == '.') {
		s->at++;
		if (!scan_digits(s))
			return bad(s, "a number that ends early");
	}
	if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
		s->at++;
		if (s->at < s->end && (*s->at == '+' || *s->at == '-'))
			s->at++;
		if (!scan_digits(s))
			return bad(s, "a number that ends early");
	}
	return 0;
}

static bool scan_word(struct scan *s, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len))
		return false;
	s->at += len;
	return true;
}

static int scan_array(struct scan *s)
{
	unsigned n = 0;
	int err;

	s->at++;
	if (take(s, ']'))
		return 0;
	do {
		skip_blanks(s);
		if (s->at == s->end || *s->at != '"')
			return bad(s, "an array of something else than texts");
		if (n++ == DOCUMENT_TEXTS_MAX)
			return bad(s, "too many texts in an array");
		err = scan_text(s);
		if (err)
			return err;
	} while (take(s, ','));
	return take(s, ']') ? 0 : bad(s, "an array without an end");
}

static int scan_value(struct scan *s, struct document_field *f)
{
	int err = 0;

	skip_blanks(s);
	if (s->at == s->end)
		return bad(s, "no value");
	f->value = s->at;
	switch (*s->at) {
	case '"':
		f->type = DOCUMENT_TEXT;
		err = scan_text(s);
		break;
	case '[':
		f->type = DOCUMENT_TEXTS;
		err = scan_array(s);
		break;
	case 't':
	case 'f':
		f->type = DOCUMENT_BOOL;
		err = scan_word(s, "true") || scan_word(s, "false") ? 0 : bad(s, "no value");
		break;
	default:
		f->type = DOCUMENT_NUMBER;
		err = scan_number(s);
	}
	f->value_len = (uint32_t)(s->at - f->value);
	return err;
}

static bool is_name(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && ((c >= '0' && c <= '9') || c == '.'));
}

static int scan_name(struct scan *s, struct document_field *f)
{
	if (!take(s, '"'))
		return bad(s, "no name of a field");
	f->name = s->at;
	while (s->at < s->end && is_name(*s->at, s->at == f->name))
		s->at++;
	f->name_len = (uint32_t)(s->at - f->name);
	if (s->at == s->end || *s->at != '"' || !f->name_len || f->name_len > DOCUMENT_NAME_MAX)
		return bad(s, "a wrong name of a field (letters, digits, '_', '.')");
	s->at++;
	return take(s, ':') ? 0 : bad(s, "no value behind a name");
}

static bool same_name(const struct document_field *a, const struct document_field *b)
{
	return a->name_len == b->name_len && !memcmp(a->name, b->name, a->name_len);
}

static int add_field(struct scan *s, struct document *d)
{
	struct document_field *f = &d->field[d->n];
	int err;

	if (d->n == DOCUMENT_FIELDS_MAX)
		return bad(s, "too many fields");
	err = scan_name(s, f);
	if (!err)
		err = scan_value(s, f);
	for (unsigned i = 0; i < d->n && !err; i++)
		if (same_name(f, &d->field[i]))
			err = bad(s, "a field twice");
	d->n += !err;
	return err;
}

int document_read(const void *data, size_t size, struct document *ret, struct error *e)
{
	struct scan s = { data, data, (const char *)data + size, e };
	int err;

	ret->n = 0;
	if (size > DOCUMENT_BYTES_MAX)
		return error_set(e, -EBADMSG, "a record of %zu bytes is larger than the limit of %u", size, DOCUMENT_BYTES_MAX);
	if (!take(&s, '{'))
		return bad(&s, "no JSON object");
	if (!take(&s, '}')) {
		do {
			err = add_field(&s, ret);
			if (err)
				return err;
		} while (take(&s, ','));
		if (!take(&s, '}'))
			return bad(&s, "an object without an end");
	}
	skip_blanks(&s);
	return s.at == s.end ? 0 : bad(&s, "something behind the object");
}

const struct document_field *document_find(const struct document *d, const char *name)
{
	size_t len = strlen(name);

	for (unsigned i = 0; i < d->n; i++)
		if (d->field[i].name_len == len && !memcmp(d->field[i].name, name, len))
			return &d->field[i];
	return NULL;
}

// ---- values ------------------------------------------------------------------------------------------------------------

static unsigned four_digits(const char *at)
{
	unsigned v = 0;

	for (unsigned i = 0; i < 4; i++)
		v = v << 4 | (unsigned)hex_digit(at[i]);
	return v;
}

// Of \uXXXX with its second half where it needs one; *at is behind the 'u'.
static unsigned code_point(const char **at, const char *end)
{
	unsigned c = four_digits(*at), low;

	*at += 4;
	if (c < 0xd800 || c > 0xdfff)
		return c;
	if (c > 0xdbff || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
		return 0xfffd;
	low = four_digits(*at + 2);
	if (low < 0xdc00 || low > 0xdfff)
		return 0xfffd;
	*at += 6;
	return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

static unsigned encode(unsigned c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

static unsigned unescape(const char **at, const char *end, char out[4])
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	char c = *(*at)++;
	const char *named;

	if (c != '\\') {
		out[0] = c;
		return 1;
	}
	c = *(*at)++;
	if (c == 'u')
		return encode(code_point(at, end), out);
	named = strchr(from, c);
	out[0] = named ? to[named - from] : c;
	return 1;
}

size_t document_text(const struct document_field *f, char *out, size_t cap)
{
	const char *at = f->value + 1, *end = f->value + f->value_len - 1;
	size_t len = 0, kept = 0;
	bool fits = true;

	if (f->type != DOCUMENT_TEXT) {
		if (cap)
			*out = 0;
		return 0;
	}
	while (at < end) {
		char bytes[4];
		unsigned n = unescape(&at, end, bytes);

		fits = fits && len + n < cap;
		if (fits) {
			memcpy(out + len, bytes, n);
			kept = len + n;
		}
		len += n;
	}
	if (cap)
		out[kept] = 0;
	return len;
}

bool document_next_text(const struct document_field *f, const char **at, struct document_field *ret)
{
	struct scan s = { f->value, *at ? *at : f->value + 1, f->value + f->value_len, NULL };

	if (f->type != DOCUMENT_TEXTS)
		return false;
	if (*at)
		take(&s, ',');
	if (take(&s, ']'))
		return false;
	skip_blanks(&s);
	*ret = (struct document_field){ .name = f->name, .name_len = f->name_len, .type = DOCUMENT_TEXT, .value = s.at };
	if (scan_text(&s))
		return false;
	ret->value_len = (uint32_t)(s.at - ret->value);
	*at = s.at;
	return true;
}

double document_double(const struct document_field *f)
{
	char few[64], *text = few;
	double v;

	if (f->type != DOCUMENT_NUMBER)
		return 0;
	if (f->value_len >= sizeof(few))
		text = malloc((size_t)f->value_len + 1);
	if (!text)
		return 0;
	memcpy(text, f->value, f->value_len);
	text[f->value_len] = 0;
	v = strtod(text, NULL);
	if (text != few)
		free(text);
	return v;
}

int document_integer(const struct document_field *f, int64_t *ret)
{
	uint64_t v = 0, limit;
	bool negative;

	if (f->type != DOCUMENT_NUMBER || memchr(f->value, '.', f->value_len) || memchr(f->value, 'e', f->value_len) ||
	    memchr(f->value, 'E', f->value_len))
		return -EINVAL;
	negative = *f->value == '-';
	limit = (uint64_t)INT64_MAX + negative;
	for (uint32_t i = negative; i < f->value_len; i++) {
		unsigned digit = (unsigned)(f->value[i] - '0');

		if (v > (limit - digit) / 10)
			return -ERANGE;
		v = v * 10 + digit;
	}
	*ret = negative ? (int64_t)(0 - v) : (int64_t)v;
	return 0;
}

bool document_is_true(const struct document_field *f)
{
	return f->type == DOCUMENT_BOOL && *f->value == 't';
}
