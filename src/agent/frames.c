// SPDX-License-Identifier: Apache-2.0
#include "agent/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes(key, len, 0))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define OVERHEAD 32 // of malloc and of uthash's buckets, for each element

// Things by their small numbers; number 0 is nothing.
struct ids {
	void **at;
	uint32_t n, cap; // numbers below n were given
	uint32_t *spare;
	uint32_t n_spare, cap_spare;
};

struct text {
	UT_hash_handle hh;
	uint32_t id;
	bool marked;
	char text[];
};

// By what it was made from: a mapping and an offset in it, or a name.
struct known_frame {
	struct {
		const void *owner; // struct frame_mapping, the store for the kernel's, or NULL
		uint64_t value;	   // offset; pointer of an interned name
	} key;
	struct frame frame;
	UT_hash_handle hh;
	bool marked;
};

struct known_mapping {
	struct {
		struct sym_module_key module;
		uint64_t offset, size;
	} key;
	struct frame_mapping mapping;
	UT_hash_handle hh;
	bool marked;
};

struct known_stack {
	UT_hash_handle hh;
	uint32_t id;
	bool marked;
	struct frame_stack stack;
	const struct frame *frames[];
};

struct frames {
	struct text *texts;
	struct known_frame *frames;
	struct known_mapping *mappings;
	struct known_stack *stacks;
	struct ids text_ids, stack_ids;
	size_t memory;
	bool no_memory;
};

static uint32_t ids_take(struct ids *ids, void *thing)
{
	void **at;

	if (ids->n_spare) {
		ids->at[ids->spare[--ids->n_spare]] = thing;
		return ids->spare[ids->n_spare];
	}
	if (ids->n + 1 >= ids->cap) {
		uint32_t cap = ids->cap ? ids->cap * 2 : 256;

		at = realloc(ids->at, cap * sizeof(*at));
		if (!at)
			return 0;
		ids->at = at;
		ids->cap = cap;
	}
	ids->at[++ids->n] = thing;
	return ids->n;
}

// Without memory for it the number is not given again.
static void ids_give(struct ids *ids, uint32_t id)
{
	uint32_t *spare;

	ids->at[id] = NULL;
	if (ids->n_spare == ids->cap_spare) {
		uint32_t cap = ids->cap_spare ? ids->cap_spare * 2 : 256;

		spare = realloc(ids->spare, cap * sizeof(*spare));
		if (!spare)
			return;
		ids->spare = spare;
		ids->cap_spare = cap;
	}
	ids->spare[ids->n_spare++] = id;
}

static void *ids_get(const struct ids *ids, uint32_t id)
{
	return id && id <= ids->n ? ids->at[id] : NULL;
}

static void ids_free(struct ids *ids)
{
	free(ids->at);
	free(ids->spare);
}

struct frames *frames_new(void)
{
	return calloc(1, sizeof(struct frames));
}

size_t frames_memory(const struct frames *f)
{
	return f->memory;
}

bool frames_no_memory(const struct frames *f)
{
	return f->no_memory;
}

static size_t text_size(const struct text *t)
{
	return sizeof(*t) + t->hh.keylen + OVERHEAD;
}

static void text_drop(struct frames *f, struct text *t)
{
	f->memory -= text_size(t);
	HASH_DEL(f->texts, t);
	if (t->id)
		ids_give(&f->text_ids, t->id);
	free(t);
}

static size_t frame_size(const struct known_frame *k)
{
	return sizeof(*k) + k->frame.n_lines * sizeof(*k->frame.lines) + 2 * OVERHEAD;
}

static void frame_drop(struct frames *f, struct known_frame *k)
{
	f->memory -= frame_size(k);
	HASH_DEL(f->frames, k);
	free(k->frame.lines);
	free(k);
}

static void mapping_drop(struct frames *f, struct known_mapping *m)
{
	f->memory -= sizeof(*m) + OVERHEAD;
	HASH_DEL(f->mappings, m);
	free(m);
}

static size_t stack_size(const struct known_stack *s)
{
	return sizeof(*s) + s->stack.n * sizeof(s->frames[0]) + OVERHEAD;
}

static void stack_drop(struct frames *f, struct known_stack *s)
{
	f->memory -= stack_size(s);
	HASH_DEL(f->stacks, s);
	ids_give(&f->stack_ids, s->id);
	free(s);
}

void frames_free(struct frames *f)
{
	if (!f)
		return;
	while (f->stacks)
		stack_drop(f, f->stacks);
	while (f->frames)
		frame_drop(f, f->frames);
	while (f->mappings)
		mapping_drop(f, f->mappings);
	while (f->texts)
		text_drop(f, f->texts);
	ids_free(&f->text_ids);
	ids_free(&f->stack_ids);
	free(f);
}

static struct text *intern(struct frames *f, const char *text)
{
	size_t len = strlen(text);
	struct text *t;

	HASH_FIND(hh, f->texts, text, len, t);
	if (t)
		return t;
	t = calloc(1, sizeof(*t) + len + 1);
	if (!t)
		goto no_memory;
	memcpy(t->text, text, len + 1);
	HASH_ADD_KEYPTR(hh, f->texts, t->text, len, t);
	if (t->hh.tbl) {
		f->memory += text_size(t);
		return t;
	}
	free(t);
no_memory:
	f->no_memory = true;
	return NULL;
}

// The one copy of a text; "" without memory.
static const char *intern_text(struct frames *f, const char *text)
{
	struct text *t = text && *text ? intern(f, text) : NULL;

	return t ? t->text : text ? "" : NULL;
}

uint32_t frames_text(struct frames *f, const char *text)
{
	struct text *t = *text ? intern(f, text) : NULL;

	if (t && !t->id) {
		t->id = ids_take(&f->text_ids, t);
		f->no_memory |= !t->id;
	}
	return t ? t->id : 0;
}

const char *frames_text_get(const struct frames *f, uint32_t id)
{
	const struct text *t = ids_get(&f->text_ids, id);

	return t ? t->text : "";
}

static struct known_frame *frame_find(struct frames *f, const void *owner, uint64_t value)
{
	struct known_frame key, *k;

	memset(&key, 0, sizeof(key));
	key.key.owner = owner;
	key.key.value = value;
	HASH_FIND(hh, f->frames, &key.key, sizeof(key.key), k);
	return k;
}

static struct known_frame *frame_add(struct frames *f, const void *owner, uint64_t value, const struct sym_line *lines,
				     unsigned n)
{
	struct known_frame *k = calloc(1, sizeof(*k));

	if (!k)
		goto no_memory;
	k->frame.lines = calloc(n, sizeof(*lines));
	if (!k->frame.lines)
		goto no_memory;
	k->frame.n_lines = n;
	for (unsigned i = 0; i < n; i++) {
		k->frame.lines[i].name = intern_text(f, lines[i].name);
		k->frame.lines[i].system_name = intern_text(f, lines[i].system_name);
		k->frame.lines[i].file = intern_text(f, lines[i].file);
		k->frame.lines[i].line = lines[i].line;
	}
	k->key.owner = owner;
	k->key.value = value;
	HASH_ADD(hh, f->frames, key, sizeof(k->key), k);
	if (k->hh.tbl) {
		f->memory += frame_size(k);
		return k;
	}
	free(k->frame.lines);
no_memory:
	free(k);
	f->no_memory = true;
	return NULL;
}

static const struct frame *named(struct frames *f, const void *owner, enum frame_kind kind, const char *name)
{
	struct sym_line line = { .name = intern_text(f, name) };
	struct known_frame *k = frame_find(f, owner, (uint64_t)(uintptr_t)line.name);

	if (k)
		return &k->frame;
	k = frame_add(f, owner, (uint64_t)(uintptr_t)line.name, &line, 1);
	if (!k)
		return NULL;
	k->frame.kind = kind;
	return &k->frame;
}

const struct frame *frames_synthetic(struct frames *f, const char *name)
{
	return named(f, NULL, FRAME_SYNTHETIC, name);
}

const struct frame *frames_kernel(struct frames *f, const char *name)
{
	return named(f, f, FRAME_KERNEL, name);
}

const struct frame *frames_generated(struct frames *f, const char *name, const char *raw)
{
	struct sym_line line = { .name = name, .system_name = intern_text(f, raw) };
	struct known_frame *k;

	if (!line.system_name)
		return frames_synthetic(f, name);
	k = frame_find(f, &f->texts, (uint64_t)(uintptr_t)line.system_name);
	if (!k)
		k = frame_add(f, &f->texts, (uint64_t)(uintptr_t)line.system_name, &line, 1);
	return k ? &k->frame : NULL;
}

const struct frame_mapping *frames_mapping(struct frames *f, const struct sym_module *module, uint64_t offset, uint64_t size,
					   uint64_t start, const char *path)
{
	struct known_mapping key, *m;

	memset(&key, 0, sizeof(key));
	sym_module_key(module, &key.key.module);
	key.key.offset = offset;
	key.key.size = size;
	HASH_FIND(hh, f->mappings, &key.key, sizeof(key.key), m);
	if (m)
		return &m->mapping;
	m = calloc(1, sizeof(*m));
	if (!m)
		goto no_memory;
	m->key = key.key;
	m->mapping.start = start;
	m->mapping.limit = start + size;
	m->mapping.offset = offset;
	m->mapping.file = intern_text(f, path);
	m->mapping.build_id = intern_text(f, sym_module_build_id(module));
	HASH_ADD(hh, f->mappings, key, sizeof(m->key), m);
	if (!m->hh.tbl)
		goto no_memory;
	f->memory += sizeof(*m) + OVERHEAD;
	return &m->mapping;
no_memory:
	free(m);
	f->no_memory = true;
	return NULL;
}

const struct frame *frames_user(struct frames *f, const struct frame_mapping *mapping, uint64_t offset)
{
	struct known_frame *k = frame_find(f, mapping, offset);

	return k ? &k->frame : NULL;
}

static struct known_mapping *mapping_of(const struct frame_mapping *mapping)
{
	return (struct known_mapping *)((char *)(uintptr_t)mapping - offsetof(struct known_mapping, mapping));
}

const struct frame *frames_user_add(struct frames *f, const struct frame_mapping *mapping, uint64_t offset,
				    const struct sym_module *module, const struct sym_line *lines, unsigned n)
{
	struct known_frame *k = frame_add(f, mapping, offset, lines, n);
	struct frame_mapping *m = &mapping_of(mapping)->mapping;
	bool files, numbers, inlines;

	if (!k)
		return NULL;
	// What a file has is known once something was looked up in it.
	sym_module_has(module, &files, &numbers, &inlines);
	m->has_filenames |= files;
	m->has_line_numbers |= numbers;
	m->has_inline_frames |= inlines;
	k->frame.kind = FRAME_USER;
	k->frame.mapping = mapping;
	k->frame.address = mapping->start + offset;
	return &k->frame;
}

static struct known_stack *stack_find(struct frames *f, const struct frame *const *frames, unsigned n)
{
	struct known_stack *s;

	HASH_FIND(hh, f->stacks, frames, n * sizeof(*frames), s);
	return s;
}

uint32_t frames_stack(struct frames *f, const struct frame *const *frames, unsigned n, bool recovered)
{
	struct known_stack *s = stack_find(f, frames, n);

	if (s)
		return s->id;
	s = calloc(1, sizeof(*s) + n * sizeof(*frames));
	if (!s)
		goto no_memory;
	if (n)
		memcpy(s->frames, frames, n * sizeof(*frames));
	s->stack = (struct frame_stack){ .n = n, .recovered = recovered, .frames = s->frames };
	s->id = ids_take(&f->stack_ids, s);
	if (!s->id)
		goto no_memory;
	HASH_ADD_KEYPTR(hh, f->stacks, s->frames, n * sizeof(*frames), s);
	if (!s->hh.tbl) {
		ids_give(&f->stack_ids, s->id);
		goto no_memory;
	}
	f->memory += stack_size(s);
	return s->id;
no_memory:
	free(s);
	f->no_memory = true;
	return 0;
}

const struct frame_stack *frames_stack_get(const struct frames *f, uint32_t id)
{
	const struct known_stack *s = ids_get(&f->stack_ids, id);

	return s ? &s->stack : NULL;
}

void frames_sweep_begin(struct frames *f)
{
	for (struct text *t = f->texts; t; t = t->hh.next)
		t->marked = false;
	for (struct known_frame *k = f->frames; k; k = k->hh.next)
		k->marked = false;
	for (struct known_mapping *m = f->mappings; m; m = m->hh.next)
		m->marked = false;
	for (struct known_stack *s = f->stacks; s; s = s->hh.next)
		s->marked = false;
}

static void mark_pointer(const char *text)
{
	// Without memory a text is a constant that is nobody's.
	if (text && *text)
		((struct text *)((char *)(uintptr_t)text - offsetof(struct text, text)))->marked = true;
}

static void mark_mapping(const struct frame_mapping *mapping)
{
	struct known_mapping *m = mapping_of(mapping);

	if (m->marked)
		return;
	m->marked = true;
	mark_pointer(mapping->file);
	mark_pointer(mapping->build_id);
}

static void mark_frame(const struct frame *frame)
{
	struct known_frame *k = (struct known_frame *)((char *)(uintptr_t)frame - offsetof(struct known_frame, frame));

	if (k->marked)
		return;
	k->marked = true;
	for (unsigned i = 0; i < frame->n_lines; i++) {
		mark_pointer(frame->lines[i].name);
		mark_pointer(frame->lines[i].system_name);
		mark_pointer(frame->lines[i].file);
	}
	if (frame->mapping)
		mark_mapping(frame->mapping);
}

void frames_mark_stack(struct frames *f, uint32_t id)
{
	struct known_stack *s = ids_get(&f->stack_ids, id);

	if (!s || s->marked)
		return;
	s->marked = true;
	for (unsigned i = 0; i < s->stack.n; i++)
		mark_frame(s->frames[i]);
}

void frames_mark_text(struct frames *f, uint32_t id)
{
	struct text *t = ids_get(&f->text_ids, id);

	if (t)
		t->marked = true;
}

void frames_sweep_end(struct frames *f)
{
	struct known_mapping *m, *next_mapping;
	struct known_frame *k, *next_frame;
	struct known_stack *s, *next_stack;
	struct text *t, *next_text;

	HASH_ITER(hh, f->stacks, s, next_stack)
		if (!s->marked)
			stack_drop(f, s);
	HASH_ITER(hh, f->frames, k, next_frame)
		if (!k->marked)
			frame_drop(f, k);
	HASH_ITER(hh, f->mappings, m, next_mapping)
		if (!m->marked)
			mapping_drop(f, m);
	HASH_ITER(hh, f->texts, t, next_text)
		if (!t->marked)
			text_drop(f, t);
}
