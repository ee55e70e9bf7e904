// SPDX-License-Identifier: Apache-2.0
// A blob is a byte of its form, then (form 1) the raw length as a varint and deflate data of it. Raw: number of samples,
// mask of the columns that follow stack and labels, stacks as differences, labels as differences where the stack is the
// same, else as they are; each value column is a shift and its values without those bits.
#include "collector/store_columns.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/wire.h"

enum {
	FORM_PLAIN = 0,
	FORM_DEFLATE = 1,
	MASK_PID = 1 << PPROF_TYPES,
	MASK_ALL = (1 << (PPROF_TYPES + 1)) - 1,
	DEFLATE_FROM = 192, // bytes; below it nothing is won
};

struct packer {
	struct libdeflate_compressor *deflate;
	struct buf raw, out;
};

struct unpacker {
	struct libdeflate_decompressor *inflate;
	struct buf raw;
	uint32_t *ids; // 3 columns
	int64_t *values;
	size_t cap;
};

struct packer *packer_new(void)
{
	struct packer *p = calloc(1, sizeof(*p));

	if (p)
		p->deflate = libdeflate_alloc_compressor(1);
	if (p && !p->deflate) {
		free(p);
		p = NULL;
	}
	return p;
}

void packer_free(struct packer *p)
{
	if (!p)
		return;
	libdeflate_free_compressor(p->deflate);
	buf_free(&p->raw);
	buf_free(&p->out);
	free(p);
}

static uint8_t *put_ids(uint8_t *o, const struct sums *s)
{
	uint32_t before = 0;

	for (size_t i = 0; i < s->n; i++) {
		o = wire_put_varint(o, s->sum[i].id.stack - before);
		before = s->sum[i].id.stack;
	}
	for (size_t i = 0; i < s->n; i++) {
		bool same = i && s->sum[i].id.stack == s->sum[i - 1].id.stack;

		o = wire_put_varint(o, s->sum[i].id.labels - (same ? s->sum[i - 1].id.labels : 0));
	}
	return o;
}

static uint8_t *put_values(uint8_t *o, const struct sums *s, unsigned column, uint64_t any)
{
	unsigned shift = (unsigned)__builtin_ctzll(any);

	*o++ = (uint8_t)shift;
	for (size_t i = 0; i < s->n; i++)
		o = wire_put_varint(o, (uint64_t)s->sum[i].value[column] >> shift);
	return o;
}

static int pack_raw(struct packer *p, const struct sums *s)
{
	uint64_t any[PPROF_TYPES] = { 0 };
	uint32_t mask = 0;
	size_t most;
	uint8_t *o;

	for (size_t i = 0; i < s->n; i++) {
		for (unsigned c = 0; c < PPROF_TYPES; c++)
			any[c] |= (uint64_t)s->sum[i].value[c];
		mask |= s->sum[i].id.pid ? MASK_PID : 0;
	}
	for (unsigned c = 0; c < PPROF_TYPES; c++)
		mask |= any[c] ? 1u << c : 0;
	if (__builtin_mul_overflow(s->n, (size_t)(15 + PPROF_TYPES * WIRE_VARINT_MAX), &most))
		return -EFBIG;
	p->raw.len = 0;
	o = buf_reserve(&p->raw, most + 32);
	if (!o)
		return -ENOMEM;
	o = wire_put_varint(wire_put_varint(o, s->n), mask);
	o = put_ids(o, s);
	for (unsigned c = 0; c < PPROF_TYPES; c++)
		if (any[c])
			o = put_values(o, s, c, any[c]);
	for (size_t i = 0; mask & MASK_PID && i < s->n; i++)
		o = wire_put_varint(o, s->sum[i].id.pid);
	p->raw.len = (size_t)(o - p->raw.data);
	return p->raw.len > COLUMNS_RAW_MAX ? -EFBIG : 0;
}

int columns_pack(struct packer *p, const struct sums *s, const void **ret, size_t *ret_len)
{
	uint8_t *start, *o;
	size_t n = 0;
	int err = pack_raw(p, s);

	if (err)
		return err;
	p->out.len = 0;
	start = buf_reserve(&p->out, p->raw.len + 16);
	if (!start)
		return -ENOMEM;
	if (p->raw.len >= DEFLATE_FROM) {
		*start = FORM_DEFLATE;
		o = wire_put_varint(start + 1, p->raw.len);
		n = libdeflate_deflate_compress(p->deflate, p->raw.data, p->raw.len, o, p->raw.len - (p->raw.len >> 4));
		n += n ? (size_t)(o - start) : 0;
	}
	if (!n) {
		*start = FORM_PLAIN;
		memcpy(start + 1, p->raw.data, p->raw.len);
		n = p->raw.len + 1;
	}
	*ret = start;
	*ret_len = n;
	return 0;
}

struct unpacker *unpacker_new(void)
{
	struct unpacker *u = calloc(1, sizeof(*u));

	if (u)
		u->inflate = libdeflate_alloc_decompressor();
	if (u && !u->inflate) {
		free(u);
		u = NULL;
	}
	return u;
}

void unpacker_free(struct unpacker *u)
{
	if (!u)
		return;
	libdeflate_free_decompressor(u->inflate);
	buf_free(&u->raw);
	free(u->ids);
	free(u->values);
	free(u);
}

static int inflate_raw(struct unpacker *u, const uint8_t *p, const uint8_t *end)
{
	uint64_t raw;
	uint8_t *to;

	// Deflate makes at most 1032 bytes of one.
	if (wire_get_varint(&p, end, &raw) || raw > COLUMNS_RAW_MAX || raw / 1032 > (uint64_t)(end - p))
		return -EBADMSG;
	u->raw.len = 0;
	to = buf_reserve(&u->raw, raw + 1);
	if (!to)
		return -ENOMEM;
	if (libdeflate_deflate_decompress(u->inflate, p, (size_t)(end - p), to, raw, NULL) != LIBDEFLATE_SUCCESS)
		return -EBADMSG;
	u->raw.len = raw;
	return 0;
}

static int room(struct unpacker *u, size_t n)
{
	uint32_t *ids;
	int64_t *values;

	if (n <= u->cap)
		return 0;
	n += n / 2 + 64;
	ids = realloc(u->ids, n * 3 * sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	u->ids = ids;
	values = realloc(u->values, n * PPROF_TYPES * sizeof(*values));
	if (!values)
		return -ENOMEM;
	u->values = values;
	u->cap = n;
	return 0;
}

static int get_u32(const uint8_t **p, const uint8_t *end, uint32_t *to, size_t n)
{
	uint64_t v;

	for (size_t i = 0; i < n; i++) {
		if (*p < end && **p < 0x80) {
			to[i] = *(*p)++;
			continue;
		}
		if (wire_get_varint(p, end, &v) || v > UINT32_MAX)
			return -EBADMSG;
		to[i] = (uint32_t)v;
	}
	return 0;
}

static int get_values(const uint8_t **p, const uint8_t *end, int64_t *to, size_t n)
{
	unsigned shift;
	uint64_t v;

	if (*p == end || **p > 62)
		return -EBADMSG;
	shift = *(*p)++;
	for (size_t i = 0; i < n; i++) {
		if (*p < end && **p < 0x80)
			v = *(*p)++;
		else if (wire_get_varint(p, end, &v))
			return -EBADMSG;
		if (v > (uint64_t)INT64_MAX >> shift)
			return -EBADMSG;
		to[i] = (int64_t)(v << shift);
	}
	return 0;
}

static int add_up_ids(uint32_t *stack, uint32_t *labels, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		bool same = !stack[i];

		if (__builtin_add_overflow(stack[i], stack[i - 1], &stack[i]) ||
		    (same && __builtin_add_overflow(labels[i], labels[i - 1], &labels[i])))
			return -EBADMSG;
	}
	return 0;
}

static int unpack_raw(struct unpacker *u, const uint8_t *p, const uint8_t *end, struct columns *ret)
{
	uint32_t *stack, *labels, *pid;
	uint64_t n, mask;
	int err;

	if (wire_get_varint(&p, end, &n) || wire_get_varint(&p, end, &mask) || mask > MASK_ALL)
		return -EBADMSG;
	// Every column has at least a byte a sample.
	if (n > (uint64_t)(end - p) / 2)
		return -EBADMSG;
	err = room(u, n ? n : 1); // no samples: still no null pointers to reckon with
	if (err)
		return err;
	*ret = (struct columns){ .n = n, .stack = stack = u->ids, .labels = labels = u->ids + u->cap };
	if (get_u32(&p, end, stack, n) || get_u32(&p, end, labels, n) || add_up_ids(stack, labels, n))
		return -EBADMSG;
	for (unsigned c = 0; c < PPROF_TYPES; c++) {
		if (!(mask >> c & 1))
			continue;
		if (get_values(&p, end, u->values + c * u->cap, n))
			return -EBADMSG;
		ret->value[c] = u->values + c * u->cap;
	}
	if (mask & MASK_PID) {
		ret->pid = pid = u->ids + 2 * u->cap;
		if (get_u32(&p, end, pid, n))
			return -EBADMSG;
	}
	return p == end ? 0 : -EBADMSG;
}

int columns_unpack(struct unpacker *u, const void *data, size_t len, struct columns *ret)
{
	const uint8_t *p = data, *end = p + len;
	int err;

	if (!len || *p > FORM_DEFLATE)
		return -EBADMSG;
	if (*p == FORM_PLAIN)
		return unpack_raw(u, p + 1, end, ret);
	err = inflate_raw(u, p + 1, end);
	return err ? err : unpack_raw(u, u->raw.data, u->raw.data + u->raw.len, ret);
}
