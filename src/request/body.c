// SPDX-License-Identifier: Apache-2.0
#include "request/body.h"

enum chunk_state {
	CHUNK_SIZE,
	CHUNK_EXTENSION, // the rest of the size's line
	CHUNK_DATA,
	CHUNK_DATA_END, // the line's end behind the data
	CHUNK_TRAILER,	// at the begin of a line
	CHUNK_TRAILER_LINE,
};

#define DIGITS_MAX 15 // of a chunk's size: no sum of them overflows

void piece_advance(struct piece *p, uint64_t by)
{
	p->total -= by;
	p->at += by < p->known ? by : p->known;
	p->known -= by < p->known ? by : p->known;
}

void body_of_length(struct body *b, uint64_t length)
{
	*b = (struct body){ .kind = length ? BODY_LENGTH : BODY_NONE, .left = length };
}

void body_in_chunks(struct body *b)
{
	*b = (struct body){ .kind = BODY_CHUNKED, .state = CHUNK_SIZE };
}

void body_open(struct body *b)
{
	*b = (struct body){ .kind = BODY_OPEN };
}

bool body_is_followed(const struct body *b)
{
	return b->kind == BODY_LENGTH || b->kind == BODY_CHUNKED;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void size_ended(struct body *b)
{
	b->state = b->left ? CHUNK_DATA : CHUNK_TRAILER;
	b->digits = 0;
}

static bool take_size(struct body *b, char c)
{
	int digit = digit_of(c);

	if (digit >= 0 && b->digits < DIGITS_MAX) {
		b->left = b->left * 16 + (unsigned)digit;
		b->digits++;
		return true;
	}
	if (!b->digits || digit >= 0)
		return false;
	if (c == '\n')
		size_ended(b);
	else if (c == '\r' || c == ';' || c == ' ' || c == '\t')
		b->state = CHUNK_EXTENSION;
	else
		return false;
	return true;
}

// One byte that is no data; false when no chunk has it there.
static bool take_byte(struct body *b, char c)
{
	switch (b->state) {
	case CHUNK_SIZE:
		return take_size(b, c);
	case CHUNK_EXTENSION:
		if (c == '\n')
			size_ended(b);
		return true;
	case CHUNK_DATA_END:
		if (c == '\n')
			b->state = CHUNK_SIZE;
		return c == '\r' || c == '\n';
	case CHUNK_TRAILER:
		if (c == '\n')
			b->kind = BODY_NONE;
		else if (c != '\r')
			b->state = CHUNK_TRAILER_LINE;
		return true;
	default:
		if (c == '\n')
			b->state = CHUNK_TRAILER;
		return true;
	}
}

static void take_data(struct body *b, struct piece *p)
{
	uint64_t part = b->left < p->total ? b->left : p->total;

	b->left -= part;
	piece_advance(p, part);
	if (b->left)
		return;
	if (b->kind == BODY_LENGTH)
		b->kind = BODY_NONE;
	else
		b->state = CHUNK_DATA_END;
}

static void take_chunks(struct body *b, struct piece *p)
{
	while (p->total && b->kind == BODY_CHUNKED) {
		if (b->state == CHUNK_DATA) {
			take_data(b, p);
		} else if (!p->known || !take_byte(b, *p->at)) {
			body_open(b);
		} else {
			piece_advance(p, 1);
		}
	}
}

uint64_t body_take(struct body *b, struct piece *p)
{
	uint64_t before = p->total;

	if (b->kind == BODY_LENGTH)
		take_data(b, p);
	else if (b->kind == BODY_CHUNKED)
		take_chunks(b, p);
	if (b->kind == BODY_OPEN)
		piece_advance(p, p->total);
	return before - p->total;
}
