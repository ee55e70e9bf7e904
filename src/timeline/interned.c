// SPDX-License-Identifier: Apache-2.0
#include "timeline/interned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/text.h"
#include "timeline/proto.h"
#include "timeline/trace_fields.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes(key, len, 0))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define KINDS (INTERNED_STACK + 1)
#define OVERHEAD 96
#define FUNCTION_MAX 512

struct entry {
	uint64_t iid;
	UT_hash_handle hh;
	char key[]; // kind, then the text or the number
};

struct interned {
	struct entry *entries;
	uint64_t next[KINDS];
	size_t bytes, memory;
};

struct interned *interned_new(size_t memory)
{
	struct interned *in = calloc(1, sizeof(*in));

	if (in)
		in->memory = memory;
	return in;
}

void interned_clear(struct interned *in)
{
	struct entry *e, *next;

	HASH_ITER(hh, in->entries, e, next) {
		HASH_DEL(in->entries, e);
		free(e);
	}
	in->bytes = 0;
	memset(in->next, 0, sizeof(in->next));
}

void interned_free(struct interned *in)
{
	if (!in)
		return;
	interned_clear(in);
	free(in);
}

bool interned_is_full(const struct interned *in)
{
	return in->bytes > in->memory;
}

// The entry of a key, made when it is not there: then *ret_new. NULL without memory.
static struct entry *entry_of(struct interned *in, unsigned kind, const void *data, size_t len, bool *ret_new)
{
	struct entry *e = malloc(sizeof(*e) + len + 1), *known;

	*ret_new = false;
	if (!e)
		return NULL;
	e->key[0] = (char)kind;
	memcpy(e->key + 1, data, len);
	HASH_FIND(hh, in->entries, e->key, len + 1, known);
	if (known) {
		free(e);
		return known;
	}
	e->iid = ++in->next[kind];
	HASH_ADD_KEYPTR(hh, in->entries, e->key, len + 1, e);
	if (!e->hh.tbl) {
		free(e);
		return NULL;
	}
	in->bytes += sizeof(*e) + len + OVERHEAD;
	*ret_new = true;
	return e;
}

uint64_t interned_text(struct interned *in, unsigned kind, const char *text, struct buf *said)
{
	bool is_new;
	struct entry *e = entry_of(in, kind, text, strlen(text), &is_new);
	size_t mark;

	if (!e)
		said->error = -ENOMEM;
	if (!e || !is_new)
		return e ? e->iid : 0;
	mark = proto_begin(said, kind);
	proto_number(said, INTERNED_IID, e->iid);
	proto_text(said, INTERNED_TEXT, text);
	proto_end(said, mark);
	return e->iid;
}

static uint64_t interned_frame(struct interned *in, const char *function, struct buf *said)
{
	uint64_t name = interned_text(in, INTERNED_FUNCTION, function, said);
	bool is_new;
	struct entry *e = entry_of(in, INTERNED_FRAME, function, strlen(function), &is_new);
	size_t mark;

	if (!e)
		said->error = -ENOMEM;
	if (!e || !is_new)
		return e ? e->iid : 0;
	mark = proto_begin(said, INTERNED_FRAME);
	proto_number(said, INTERNED_IID, e->iid);
	proto_number(said, FRAME_FUNCTION, name);
	proto_end(said, mark);
	return e->iid;
}

uint64_t interned_stack(struct interned *in, uint64_t number, const char *text, struct buf *said)
{
	bool is_new;
	struct entry *e = entry_of(in, INTERNED_STACK, &number, sizeof(number), &is_new);
	struct buf stack = { 0 };
	char function[FUNCTION_MAX];

	if (!e)
		said->error = -ENOMEM;
	if (!e || !is_new)
		return e ? e->iid : 0;
	proto_number(&stack, INTERNED_IID, e->iid);
	while (*text) {
		size_t len = strcspn(text, "\n");

		text_sanitize(function, sizeof(function), text, len);
		proto_number(&stack, STACK_FRAME, interned_frame(in, function, said));
		text += len + (text[len] == '\n');
	}
	if (stack.error)
		said->error = stack.error;
	else
		proto_bytes(said, INTERNED_STACK, stack.data, stack.len);
	buf_free(&stack);
	return e->iid;
}
