// SPDX-License-Identifier: Apache-2.0
#include "collector/store_records.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>

#include "common/when.h"
#include "pprof/wire.h"
#include "request/document.h"

#define LEVEL 5
#define BODY_MAX (BATCH_BYTES_MAX + BATCH_REQUESTS_MAX * WIRE_VARINT_MAX)

struct records_packer {
	struct libdeflate_compressor *compressor;
	struct buf plain, packed;
	struct document document;
};

struct records_packer *records_packer_new(void)
{
	struct records_packer *p = calloc(1, sizeof(*p));

	if (p)
		p->compressor = libdeflate_alloc_compressor(LEVEL);
	if (p && !p->compressor) {
		free(p);
		p = NULL;
	}
	return p;
}

void records_packer_free(struct records_packer *p)
{
	if (!p)
		return;
	libdeflate_free_compressor(p->compressor);
	buf_free(&p->plain);
	buf_free(&p->packed);
	free(p);
}

uint64_t record_time(const struct document_field *f)
{
	char text[48];
	uint64_t ns;

	if (!f || document_text(f, text, sizeof(text)) >= sizeof(text) || when_parse(text, 0, "time", &ns, NULL))
		return 0;
	return ns;
}

static void note_document(struct records_packer *p, const struct batch_profile *record, struct packed_records *row)
{
	const struct document_field *f;
	uint64_t time;
	double v;

	if (document_read(record->data, record->size, &p->document, NULL))
		return;
	time = record_time(document_find(&p->document, "event_timestamp_dt"));
	if (time && time < row->first)
		row->first = time;
	if (time > row->last)
		row->last = time;
	f = document_find(&p->document, "total_io_duration_ms_f");
	v = f ? document_double(f) : 0;
	if (v > row->slowest)
		row->slowest = v;
	f = document_find(&p->document, "duration_ms_f");
	v = f ? document_double(f) : 0;
	if (v > row->longest)
		row->longest = v;
}

static int compress(struct records_packer *p, struct packed_records *row)
{
	size_t bound = libdeflate_deflate_compress_bound(p->compressor, p->plain.len), n;
	uint8_t *to;

	p->packed.len = 0;
	to = buf_reserve(&p->packed, bound);
	if (!to)
		return -ENOMEM;
	n = libdeflate_deflate_compress(p->compressor, p->plain.data, p->plain.len, to, bound);
	if (n && n < p->plain.len) {
		row->size = p->plain.len;
		row->body = to;
		row->body_size = n;
	}
	return 0;
}

int records_pack(struct records_packer *p, const struct batch *b, struct packed_records *ret)
{
	*ret = (struct packed_records){ .first = b->start, .last = b->end };
	p->plain.len = 0;
	p->plain.error = p->packed.error = 0;
	for (unsigned i = 0; i < b->n_requests; i++) {
		uint8_t *o = buf_reserve(&p->plain, WIRE_VARINT_MAX);

		if (o)
			p->plain.len += (size_t)(wire_put_varint(o, b->requests[i].size) - o);
		buf_append(&p->plain, b->requests[i].data, b->requests[i].size);
		note_document(p, &b->requests[i], ret);
	}
	if (p->plain.error)
		return p->plain.error;
	ret->body = p->plain.len ? (const void *)p->plain.data : "";
	ret->body_size = p->plain.len;
	return p->plain.len ? compress(p, ret) : 0;
}

int records_open(struct records_reader *r, const void *body, size_t body_size, size_t size, struct error *e)
{
	uint8_t *to;

	r->at = body;
	r->end = r->at + body_size;
	if (!size)
		return 0;
	if (size > BODY_MAX)
		return error_set(e, -EBADMSG, "the store is damaged: requests of %zu bytes", size);
	if (!r->decompressor)
		r->decompressor = libdeflate_alloc_decompressor();
	r->own.len = 0;
	to = r->decompressor ? buf_reserve(&r->own, size) : NULL;
	if (!to)
		return error_set(e, -ENOMEM, "out of memory");
	if (libdeflate_deflate_decompress(r->decompressor, body, body_size, to, size, NULL) != LIBDEFLATE_SUCCESS)
		return error_set(e, -EBADMSG, "the store is damaged: requests that cannot be decompressed");
	r->at = to;
	r->end = to + size;
	return 0;
}

int records_next(struct records_reader *r, const void **ret, size_t *ret_size, struct error *e)
{
	uint64_t size;

	if (r->at == r->end)
		return 0;
	if (wire_get_varint(&r->at, r->end, &size) != WIRE_OK || size > (size_t)(r->end - r->at)) {
		r->at = r->end;
		return error_set(e, -EBADMSG, "the store is damaged: a request that is cut");
	}
	*ret = r->at;
	*ret_size = size;
	r->at += size;
	return 1;
}

void records_free(struct records_reader *r)
{
	buf_free(&r->own);
	libdeflate_free_decompressor(r->decompressor);
	*r = (struct records_reader){ 0 };
}
