// SPDX-License-Identifier: Apache-2.0
#include "collector/store_bodies.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_db.h"
#include "pprof/wire.h"

#define STACK_MAX 65536 // frames

struct bodies {
	sqlite3 *db;
	struct profile *p;
	sqlite3_stmt *st[DICT_KINDS];
	struct idmap ids[DICT_KINDS]; // stacks and label sets: where they begin in `stacks` and `labels`
	uint32_t *stacks;	      // length and locations, one behind the other
	size_t stacks_n, stacks_cap;
	struct profile_label *labels; // one whose key is the length and the labels, one behind the other
	size_t labels_n, labels_cap;
	struct buf location;
	struct profile_label with_pid[64];
	uint32_t pid_key;
};

// Numbers of a body; the first that is wrong is remembered.
struct numbers {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t get(struct numbers *n)
{
	uint64_t v = 0;

	if (n->bad || wire_get_varint(&n->p, n->end, &v)) {
		n->bad = true;
		return 0;
	}
	return v;
}

static uint32_t get_id(struct numbers *n)
{
	uint64_t v = get(n);

	n->bad |= v > UINT32_MAX;
	return (uint32_t)v;
}

static int64_t get_signed(struct numbers *n)
{
	uint64_t v = get(n);

	return (int64_t)(v >> 1 ^ -(v & 1));
}

static int damaged(enum dict_kind kind, uint32_t id, struct error *e)
{
	return error_set(e, -EBADMSG, "the store is damaged: entry %u of its %s is missing or wrong; see 'blkprof collector --check'",
			 id, dict_tables[kind]);
}

static int no_memory(int err, struct error *e)
{
	return error_set(e, err, err == -ENOMEM ? "out of memory" : "the result is too large: ask for a shorter window or one service");
}

int bodies_new(sqlite3 *db, struct profile *p, struct bodies **ret, struct error *e)
{
	struct bodies *b = calloc(1, sizeof(*b));
	char sql[64];
	int err = b ? 0 : error_set(e, -ENOMEM, "out of memory");

	for (unsigned k = 0; k < DICT_KINDS && !err; k++) {
		b->db = db;
		b->p = p;
		snprintf(sql, sizeof(sql), "SELECT body FROM %s WHERE id = ?1", dict_tables[k]);
		err = db_prepare(db, sql, &b->st[k], e);
	}
	if (!err && profile_string(p, "pid", 3, &b->pid_key))
		err = error_set(e, -ENOMEM, "out of memory");
	if (err)
		bodies_free(b);
	else
		*ret = b;
	return err;
}

void bodies_free(struct bodies *b)
{
	if (!b)
		return;
	for (unsigned k = 0; k < DICT_KINDS; k++) {
		sqlite3_finalize(b->st[k]);
		idmap_free(&b->ids[k]);
	}
	memory_give(&b->p->budget, b->stacks_cap * sizeof(*b->stacks) + b->labels_cap * sizeof(*b->labels));
	free(b->stacks);
	free(b->labels);
	buf_free(&b->location);
	free(b);
}

// The statement stays on its row until it is reset.
static int body(struct bodies *b, enum dict_kind kind, uint32_t id, struct numbers *ret, struct error *e)
{
	sqlite3_stmt *st = b->st[kind];
	int r;

	sqlite3_bind_int64(st, 1, id);
	r = db_step(st, "read", e);
	if (r > 0) {
		*ret = (struct numbers){ .p = sqlite3_column_blob(st, 0) };
		ret->end = ret->p + sqlite3_column_bytes(st, 0);
		return 0;
	}
	sqlite3_reset(st);
	return r ? r : damaged(kind, id, e);
}

static int known(struct bodies *b, enum dict_kind kind, uint32_t id, uint32_t value, int err, struct error *e)
{
	sqlite3_reset(b->st[kind]);
	if (!err)
		err = idmap_put(&b->ids[kind], id, value);
	return err == -EBADMSG ? damaged(kind, id, e) : err == -ENOMEM || err == -E2BIG || err == -EOVERFLOW ? no_memory(err, e) : err;
}

int bodies_text(struct bodies *b, uint32_t id, uint32_t *ret, struct error *e)
{
	uint32_t *found = idmap_find(&b->ids[DICT_TEXT], id);
	struct numbers n;
	int err;

	if (!id || found) {
		*ret = id ? *found : 0;
		return 0;
	}
	err = body(b, DICT_TEXT, id, &n, e);
	if (err)
		return err;
	err = profile_string(b->p, n.p, (size_t)(n.end - n.p), ret);
	return known(b, DICT_TEXT, id, *ret, err, e);
}

static int mapping(struct bodies *b, uint32_t id, uint32_t *ret, struct error *e)
{
	uint32_t *found = idmap_find(&b->ids[DICT_MAPPING], id);
	struct profile_mapping m = { 0 };
	struct numbers n;
	int err;

	if (found) {
		*ret = *found;
		return 0;
	}
	err = body(b, DICT_MAPPING, id, &n, e);
	if (err)
		return err;
	m.start = get(&n);
	m.limit = m.start + get(&n);
	m.offset = get(&n);
	m.file = get_id(&n);
	m.build_id = get_id(&n);
	m.flags = get_id(&n) & 15;
	err = n.bad ? -EBADMSG : 0;
	if (!err)
		err = bodies_text(b, m.file, &m.file, e);
	if (!err)
		err = bodies_text(b, m.build_id, &m.build_id, e);
	if (!err)
		err = profile_mapping(b->p, &m, ret);
	return known(b, DICT_MAPPING, id, *ret, err, e);
}

static int line(struct bodies *b, struct numbers *n, struct profile_line *to, struct error *e)
{
	struct profile_function f = { 0 };
	uint32_t *const texts[] = { &f.name, &f.system_name, &f.file };
	uint32_t id;
	int err = 0;

	for (unsigned i = 0; i < 3 && !err; i++) {
		id = get_id(n);
		err = n->bad ? -EBADMSG : bodies_text(b, id, texts[i], e);
	}
	f.start_line = get_signed(n);
	to->line = get_signed(n);
	to->column = get_signed(n);
	if (!err)
		err = n->bad ? -EBADMSG : profile_function(b->p, &f, &to->function);
	return err;
}

static int make_location(struct bodies *b, struct numbers *n, uint32_t *ret, struct error *e)
{
	uint64_t owner = get(n), offset = get(n), folded = get(n), lines = get(n);
	struct profile_location *l;
	uint32_t map = owner == 1;
	int err = 0;

	// A line has at least 6 bytes.
	if (n->bad || lines > (uint64_t)(n->end - n->p) / 6 || owner > (uint64_t)UINT32_MAX + 1)
		return -EBADMSG;
	if (owner > 1)
		err = mapping(b, (uint32_t)(owner - 1), &map, e);
	b->location.len = 0;
	l = (struct profile_location *)buf_reserve(&b->location, sizeof(*l) + lines * sizeof(l->lines[0]));
	if (!l)
		return -ENOMEM;
	memset(l, 0, sizeof(*l) + lines * sizeof(l->lines[0]));
	if (!err && owner > 1 && offset)
		l->address = ((const struct profile_mapping *)intern_key(&b->p->mappings, map))->start + offset;
	l->mapping = map;
	l->folded = folded != 0;
	l->n_lines = (uint32_t)lines;
	for (uint64_t i = 0; i < lines && !err; i++)
		err = line(b, n, &l->lines[i], e);
	return err ? err : profile_location(b->p, l, ret);
}

static int location(struct bodies *b, uint32_t id, uint32_t *ret, struct error *e)
{
	uint32_t *found = idmap_find(&b->ids[DICT_LOCATION], id);
	struct numbers n;
	int err;

	if (found) {
		*ret = *found;
		return 0;
	}
	err = body(b, DICT_LOCATION, id, &n, e);
	if (err)
		return err;
	err = make_location(b, &n, ret, e);
	return known(b, DICT_LOCATION, id, *ret, err, e);
}

static int make_stack(struct bodies *b, struct numbers *n, struct error *e)
{
	size_t at = b->stacks_n, most = (size_t)(n->end - n->p);
	uint32_t id = 0, count = 0;
	int err;

	if (most > STACK_MAX * 10)
		return -EBADMSG;
	err = memory_grow(&b->p->budget, &b->stacks, &b->stacks_cap, at + most + 1, sizeof(*b->stacks));
	while (!err && n->p < n->end) {
		id += (uint32_t)get_signed(n);
		err = n->bad ? -EBADMSG : location(b, id, &b->stacks[at + ++count], e);
	}
	if (err)
		return err;
	b->stacks[at] = count;
	b->stacks_n = at + count + 1;
	return 0;
}

static int stack(struct bodies *b, uint32_t id, const uint32_t **ret, uint32_t *ret_n, struct error *e)
{
	uint32_t *found = idmap_find(&b->ids[DICT_STACK], id), at = (uint32_t)b->stacks_n;
	struct numbers n;
	int err;

	if (!found) {
		if (b->stacks_n > UINT32_MAX - STACK_MAX * 10)
			return no_memory(-EOVERFLOW, e);
		err = body(b, DICT_STACK, id, &n, e);
		if (err)
			return err;
		err = known(b, DICT_STACK, id, at, make_stack(b, &n, e), e);
		if (err)
			return err;
	} else {
		at = *found;
	}
	*ret_n = b->stacks[at];
	*ret = b->stacks + at + 1;
	return 0;
}

static int make_labels(struct bodies *b, struct numbers *n, struct error *e)
{
	size_t at = b->labels_n, count = 0;
	int err = memory_grow(&b->p->budget, &b->labels, &b->labels_cap, at + (size_t)(n->end - n->p) / 3 + 1, sizeof(*b->labels));

	while (!err && n->p < n->end && !n->bad) {
		struct profile_label l = { .key = get_id(n) };
		uint64_t numeric = get(n);
		uint32_t text = get_id(n);

		if (numeric)
			l.number = get_signed(n);
		if (n->bad || numeric > 1 || count == 60)
			return -EBADMSG;
		err = bodies_text(b, l.key, &l.key, e);
		if (!err)
			err = bodies_text(b, text, numeric ? &l.unit : &l.text, e);
		b->labels[at + ++count] = l;
	}
	if (err || n->bad)
		return err ? err : -EBADMSG;
	b->labels[at] = (struct profile_label){ .key = (uint32_t)count };
	b->labels_n = at + count + 1;
	return 0;
}

int bodies_labels(struct bodies *b, uint32_t id, const struct profile_label **ret, uint32_t *ret_n, struct error *e)
{
	uint32_t *found = idmap_find(&b->ids[DICT_LABELS], id), at = (uint32_t)b->labels_n;
	struct numbers n;
	int err;

	if (!id) {
		*ret_n = 0;
		*ret = NULL;
		return 0;
	}
	if (!found) {
		err = body(b, DICT_LABELS, id, &n, e);
		if (err)
			return err;
		err = known(b, DICT_LABELS, id, at, make_labels(b, &n, e), e);
		if (err)
			return err;
	} else {
		at = *found;
	}
	*ret_n = b->labels[at].key;
	*ret = b->labels + at + 1;
	return 0;
}

// Before bytes and latency, as in the contract.
static uint32_t insert_pid(struct bodies *b, const struct profile_label *l, uint32_t n, uint32_t pid)
{
	static const char *const before[] = { "comm", "device", "op", "service" };
	uint32_t at = 0;

	for (uint32_t i = 0; i < n; i++)
		for (unsigned k = 0; k < 4; k++)
			if (!strcmp(profile_text(b->p, l[i].key), before[k]))
				at = i + 1;
	memset(b->with_pid, 0, sizeof(b->with_pid));
	if (at)
		memcpy(b->with_pid, l, at * sizeof(*l));
	b->with_pid[at] = (struct profile_label){ .key = b->pid_key, .number = pid };
	if (n > at)
		memcpy(b->with_pid + at + 1, l + at, (n - at) * sizeof(*l));
	return n + 1;
}

int bodies_sample(struct bodies *b, const struct sum *s, struct error *e)
{
	const struct profile_label *labels = NULL;
	const uint32_t *locations = NULL;
	uint32_t n = 0, n_labels = 0;
	int err = stack(b, s->id.stack, &locations, &n, e);

	if (!err)
		err = bodies_labels(b, s->id.labels, &labels, &n_labels, e);
	if (err)
		return err;
	if (s->id.pid) {
		n_labels = insert_pid(b, labels, n_labels, s->id.pid);
		labels = b->with_pid;
	}
	err = profile_sample(b->p, locations, n, labels, n_labels, s->value);
	return err ? no_memory(err, e) : 0;
}
