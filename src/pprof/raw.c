// SPDX-License-Identifier: Apache-2.0
#include "pprof/raw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "pprof/decode_internal.h"

struct pprof_raw {
	struct memory_budget budget;
	struct tables tables;
	struct stream stream;
	struct raw_sample sample;
	struct buf clean;
};

struct pprof_raw *pprof_raw_new(void)
{
	return calloc(1, sizeof(struct pprof_raw));
}

void pprof_raw_free(struct pprof_raw *r)
{
	if (!r)
		return;
	tables_free(&r->tables);
	stream_close(&r->stream);
	raw_sample_free(&r->sample);
	buf_free(&r->clean);
	free(r);
}

size_t pprof_raw_memory(const struct pprof_raw *r)
{
	return r->budget.used + r->clean.cap;
}

uint64_t pprof_raw_size(const struct pprof_raw *r)
{
	return r->stream.gzip ? r->stream.produced : r->stream.source.len;
}

// Eight bytes of plain ASCII: no high bit, none below a space, none that is DEL.
static bool plain(uint64_t v)
{
	const uint64_t ones = 0x0101010101010101ull, high = ones << 7;
	uint64_t del = v ^ ones * 0x7f;

	return !((v | (v - ones * 0x20) | (del - ones)) & high);
}

static bool is_clean(const uint8_t *p, size_t len)
{
	uint64_t v;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&v, p, 8);
		if (!plain(v))
			break;
	}
	if (len < 8) {
		v = 0x2020202020202020ull;
		memcpy(&v, p, len);
		if (plain(v))
			return true;
	}
	for (size_t i = 0; i < len; i++)
		if (p[i] < 0x20 || p[i] == 0x7f || (p[i] == 0xc2 && i + 1 < len && p[i + 1] < 0xa0))
			return false;
	return text_is_utf8((const char *)p, len);
}

// Names end in terminals, browsers and other readers: valid UTF-8 without control characters, also those of two bytes.
int clean_text(const uint8_t **text, size_t *len, struct buf *scratch)
{
	size_t n = *len;
	uint8_t *to;

	if (is_clean(*text, n))
		return 0;
	scratch->len = 0;
	to = buf_reserve(scratch, 2 * n + 1);
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		to[i] = (*text)[i] ? (*text)[i] : 1;
	for (size_t i = 0; i + 1 < n; i++)
		if (to[i] == 0xc2 && to[i + 1] >= 0x80 && to[i + 1] < 0xa0)
			to[i] = to[i + 1] = 1;
	*len = text_sanitize((char *)to + n, n + 1, (char *)to, n);
	*text = to + n;
	return 0;
}

// What is not clean as it stands is written anew behind all texts.
static int clean_strings(struct pprof_raw *r, struct error *e)
{
	struct tables *t = &r->tables;

	for (size_t i = 0; i < t->n_strings; i++) {
		struct raw_string *s = &t->strings[i];
		const uint8_t *text = t->text + s->offset, *before = text;
		size_t len = s->len;
		int err = clean_text(&text, &len, &r->clean);

		if (!err && text == before)
			continue;
		if (!err)
			err = memory_grow(t->budget, &t->text, &t->text_cap, t->text_len + len + 1, 1);
		if (err)
			return decode_memory(t->budget, err, e);
		memcpy(t->text + t->text_len, text, len);
		t->text[t->text_len + len] = 0;
		s->offset = t->text_len;
		s->len = (uint32_t)len;
		t->text_len += len + 1;
	}
	return 0;
}

int pprof_raw_open(struct pprof_raw *r, const struct pprof_source *source, uint64_t message, size_t memory, uint64_t frames,
		   const struct tables **ret, struct error *e)
{
	struct tables *t = &r->tables;
	int err;

	tables_clear(t);
	t->budget = &r->budget;
	r->budget.limit = memory > 1 ? memory : 1;
	r->sample.frames = 0;
	r->sample.frames_max = frames;
	err = stream_open(&r->stream, source, message, &r->budget, e);
	if (!err)
		err = decode_detect(&r->stream, e);
	if (!err)
		err = tables_read(t, &r->stream, e);
	if (!err)
		err = clean_strings(r, e);
	if (!err)
		*ret = t;
	return err;
}

int pprof_raw_samples(struct pprof_raw *r, raw_sample_fn *fn, void *context, struct error *e)
{
	int err = stream_rewind(&r->stream, e);

	return err ? err : raw_samples(&r->tables, &r->stream, &r->sample, fn, context, e);
}
