// SPDX-License-Identifier: Apache-2.0
#include "collector/store_notes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/intern.h"
#include "pprof/wire.h"

#define NUMBER '\1'

static const char *const summed[] = { "lost", "kept_out", "recovered", "sampled", "truncated" };
static const char *const known_otherwise[] = { "total", "window" };

static int first_word(const char *comment, const char *const *words, size_t n)
{
	size_t len = strcspn(comment, " ");

	for (size_t i = 0; i < n; i++)
		if (len == strlen(words[i]) && !memcmp(comment, words[i], len))
			return 1;
	return 0;
}

// "KEY=DIGITS" up to a blank or the end: the length of the digits, or 0.
static size_t number_at(const char *p, uint64_t *ret)
{
	size_t len = strspn(p, "0123456789");
	uint64_t v = 0;

	if (!len || len > 19 || (p[len] && p[len] != ' '))
		return 0;
	for (size_t i = 0; i < len; i++)
		v = v * 10 + (uint64_t)(p[i] - '0');
	*ret = v;
	return v <= INT64_MAX ? len : 0;
}

int note_parse(const char *comment, char *pattern, struct note *ret)
{
	int sums = first_word(comment, summed, sizeof(summed) / sizeof(*summed));
	const char *p = comment, *begin = pattern;

	if (first_word(comment, known_otherwise, 2))
		return 0;
	memset(ret, 0, sizeof(*ret));
	while (*p) {
		size_t word = strcspn(p, " "), key = strcspn(p, "= "), len;

		// Of one window; what is added up is of several.
		if (sums && pattern > begin && !strncmp(p, "window=", 7)) {
			p += word;
			pattern -= !*p;
			p += *p == ' ';
			continue;
		}
		len = 0;
		if (sums && key < word && ret->n < NOTE_NUMBERS && strncmp(p, "node=", 5))
			len = number_at(p + key + 1, &ret->number[ret->n]);
		if (len) {
			memcpy(pattern, p, key + 1);
			pattern += key + 1;
			*pattern++ = NUMBER;
			ret->n++;
		} else {
			memcpy(pattern, p, word);
			pattern += word;
		}
		p += word;
		if (*p)
			*pattern++ = *p++;
	}
	*pattern = 0;
	return 1;
}

void note_print(const char *pattern, size_t len, const struct note *n, struct buf *out)
{
	unsigned used = 0;

	for (size_t i = 0; i < len; i++) {
		if (pattern[i] == NUMBER)
			buf_printf(out, "%" PRIu64, used < n->n ? n->number[used] : 0);
		else
			buf_byte(out, (uint8_t)pattern[i]);
		used += pattern[i] == NUMBER;
	}
}

static uint64_t combine(uint64_t a, uint64_t b, int most)
{
	if (most)
		return a > b ? a : b;
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

int notes_add(struct notes *s, const struct note *n, int most)
{
	uint32_t *at = idmap_find(&s->at, n->text);

	if (at) {
		struct note *to = &s->note[*at - 1];

		for (uint32_t k = 0; k < n->n; k++)
			to->number[k] = combine(to->number[k], n->number[k], most);
		return 0;
	}
	if (memory_grow(NULL, &s->note, &s->cap, s->n + 1, sizeof(*s->note)) || idmap_put(&s->at, n->text, (uint32_t)s->n + 1))
		return -ENOMEM;
	s->note[s->n++] = *n;
	return 0;
}

void notes_clear(struct notes *s)
{
	s->n = 0;
	idmap_clear(&s->at);
}

static int compare(const void *a, const void *b)
{
	const struct note *x = a, *y = b;

	return x->text < y->text ? -1 : x->text > y->text;
}

int notes_pack(struct notes *s, struct buf *out)
{
	uint32_t before = 0;

	if (s->n)
		qsort(s->note, s->n, sizeof(*s->note), compare);
	idmap_clear(&s->at);
	for (size_t i = 0; i < s->n; i++) {
		uint8_t *o = buf_reserve(out, (2 + NOTE_NUMBERS) * WIRE_VARINT_MAX), *start = o;

		if (!o)
			return -ENOMEM;
		o = wire_put_varint(o, s->note[i].text - before);
		o = wire_put_varint(o, s->note[i].n);
		for (uint32_t k = 0; k < s->note[i].n; k++)
			o = wire_put_varint(o, s->note[i].number[k]);
		out->len += (size_t)(o - start);
		before = s->note[i].text;
	}
	return out->error;
}

int notes_unpack(const void *data, size_t len, struct notes *s, int most)
{
	const uint8_t *p = data, *end = p + len;
	uint64_t text = 0, v, n;

	while (p < end) {
		struct note note = { 0 };
		int err;

		if (wire_get_varint(&p, end, &v) || wire_get_varint(&p, end, &n) || n > NOTE_NUMBERS || v > UINT32_MAX)
			return -EBADMSG;
		text += v;
		if (!text || text > UINT32_MAX)
			return -EBADMSG;
		note.text = (uint32_t)text;
		for (note.n = 0; note.n < n; note.n++)
			if (wire_get_varint(&p, end, &note.number[note.n]) || note.number[note.n] > INT64_MAX)
				return -EBADMSG;
		err = notes_add(s, &note, most);
		if (err)
			return err;
	}
	return 0;
}

void notes_free(struct notes *s)
{
	free(s->note);
	idmap_free(&s->at);
	memset(s, 0, sizeof(*s));
}
