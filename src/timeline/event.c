// SPDX-License-Identifier: Apache-2.0
// The stored form of an event: its type as a byte, the length of what follows as a varint, then its fields as varints in the
// order of the table, comm as a length and its bytes, and a text as the rest. What a later version appends is skipped.
#include "timeline/event.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "timeline/varint.h"

#define VERSION 1
#define FIELDS_MAX 16

static const char magic[8] = "BLKPROFT";

struct field {
	uint8_t size;
	uint16_t offset;
};

#define F(name) { sizeof(((struct event *)0)->name), offsetof(struct event, name) }
#define WHO F(time), F(cpu), F(tid), F(tgid)

struct form {
	struct field fields[FIELDS_MAX];
	bool comm, text;
};

// Append-only.
static const struct form forms[EVENT_TYPES] = {
	[EVENT_START] = { { F(time), F(boottime), F(realtime), F(cpu) }, .text = true },
	[EVENT_STOP] = { { F(time) } },
	[EVENT_THREAD] = { { WHO, F(flags), F(state), F(syscall) }, .comm = true },
	[EVENT_PROCESS] = { { F(tgid) }, .text = true },
	[EVENT_DEVICE] = { { F(device) }, .text = true },
	[EVENT_STACK] = { { F(stack) }, .text = true },
	[EVENT_SWITCH] = { { WHO, F(other_tid), F(other_tgid), F(flags), F(state), F(syscall), F(stack) }, .comm = true },
	[EVENT_WAKING] = { { WHO, F(other_tid), F(other_tgid), F(flags) }, .comm = true },
	[EVENT_NEW] = { { WHO, F(other_tid) }, .comm = true },
	[EVENT_RENAME] = { { WHO }, .comm = true },
	[EVENT_EXEC] = { { WHO, F(other_tid) }, .comm = true },
	[EVENT_SUBMIT] = { { WHO, F(id), F(sector), F(size), F(device), F(op), F(stack) }, .comm = true },
	[EVENT_END] = { { F(time), F(cpu), F(id), F(submit), F(issue), F(flags) } },
	[EVENT_LOST] = { { F(time), F(op), F(id) } },
	[EVENT_REQUEST] = { { F(time), F(submit), F(tid), F(tgid), F(state) }, .text = true },
};

const char *lost_name(unsigned lost)
{
	static const char *const names[LOST_KINDS] = { "switches", "wake-ups", "thread events", "submissions", "completions",
						       "stacks", "requests" };

	return lost < LOST_KINDS ? names[lost] : "?";
}

static uint64_t field_get(const struct event *e, const struct field *f)
{
	const uint8_t *at = (const uint8_t *)e + f->offset;
	uint32_t v32;
	uint64_t v64;

	if (f->size == 1)
		return *at;
	if (f->size == 4) {
		memcpy(&v32, at, sizeof(v32));
		return v32;
	}
	memcpy(&v64, at, sizeof(v64));
	return v64;
}

// False when it does not fit.
static bool field_set(struct event *e, const struct field *f, uint64_t v)
{
	uint8_t *at = (uint8_t *)e + f->offset;
	uint32_t v32 = (uint32_t)v;

	if (f->size == 1 && v <= UINT8_MAX)
		*at = (uint8_t)v;
	else if (f->size == 4 && v <= UINT32_MAX)
		memcpy(at, &v32, sizeof(v32));
	else if (f->size == 8)
		memcpy(at, &v, sizeof(v));
	else
		return false;
	return true;
}

void event_file_begin(struct buf *to)
{
	uint8_t header[EVENT_FILE_HEADER] = { 0 };

	memcpy(header, magic, sizeof(magic));
	header[sizeof(magic)] = VERSION;
	buf_append(to, header, sizeof(header));
}

int event_file_check(const uint8_t *data, size_t len, size_t *ret_used, struct error *e)
{
	if (len < EVENT_FILE_HEADER || memcmp(data, magic, sizeof(magic)))
		return error_set(e, -EINVAL, "it is no recorded stream of 'blkprof timeline --raw'");
	if (data[sizeof(magic)] != VERSION)
		return error_set(e, -EINVAL, "it is of version %u, this program reads %u", data[sizeof(magic)], VERSION);
	*ret_used = EVENT_FILE_HEADER;
	return 0;
}

void event_encode(struct buf *to, const struct event *e)
{
	const struct form *form = &forms[e->type < EVENT_TYPES ? e->type : 0];
	uint8_t body[FIELDS_MAX * VARINT_MAX + EVENT_COMM + 1], head[1 + VARINT_MAX];
	size_t n = 0, text = form->text ? e->text_len : 0;

	for (unsigned i = 0; i < FIELDS_MAX && form->fields[i].size; i++)
		n += varint_put(body + n, field_get(e, &form->fields[i]));
	if (form->comm) {
		size_t len = strnlen(e->comm, EVENT_COMM - 1);

		body[n++] = (uint8_t)len;
		memcpy(body + n, e->comm, len);
		n += len;
	} else if (form->text) {
		body[n++] = 0; // where later versions may put fields: how many there are
	}
	if (text > EVENT_TEXT_MAX)
		text = EVENT_TEXT_MAX;
	head[0] = e->type;
	buf_append(to, head, 1 + varint_put(head + 1, n + text));
	buf_append(to, body, n);
	if (text)
		buf_append(to, e->text, text);
}

static int set_fields(struct event *e, const struct form *form, const uint8_t *body, size_t len, size_t *at)
{
	for (unsigned i = 0; i < FIELDS_MAX && form->fields[i].size; i++) {
		uint64_t v;
		size_t used = varint_get(body + *at, len - *at, &v);

		if (!used || !field_set(e, &form->fields[i], v))
			return -EINVAL;
		*at += used;
	}
	return 0;
}

static int set_comm(struct event *e, const uint8_t *body, size_t len, size_t at)
{
	if (at >= len || body[at] >= EVENT_COMM || body[at] > len - at - 1)
		return -EINVAL;
	text_sanitize(e->comm, sizeof(e->comm), (const char *)body + at + 1, body[at]);
	return 0;
}

static int set_text(struct event *e, const uint8_t *body, size_t len, size_t at, char *text)
{
	uint64_t later;
	size_t used;

	if (at >= len)
		return -EINVAL;
	for (unsigned n = body[at++]; n; n--) { // of a later version
		used = varint_get(body + at, len - at, &later);
		if (!used)
			return -EINVAL;
		at += used;
	}
	if (len - at > EVENT_TEXT_MAX)
		return -EINVAL;
	memcpy(text, body + at, len - at);
	text[len - at] = 0;
	e->text = text;
	e->text_len = (uint32_t)strlen(text);
	return 0;
}

static int check(const struct event *e, struct error *error)
{
	if (e->type != EVENT_START && e->cpu >= EVENT_CPUS)
		return error_set(error, -EINVAL, "CPU %u of an event is beyond %u", e->cpu, EVENT_CPUS - 1);
	if (e->tid > EVENT_TID_MAX || e->tgid > EVENT_TID_MAX || e->other_tid > EVENT_TID_MAX || e->other_tgid > EVENT_TID_MAX)
		return error_set(error, -EINVAL, "a thread id of an event is beyond %u", EVENT_TID_MAX);
	if (e->time > INT64_MAX || e->boottime > INT64_MAX || e->realtime > INT64_MAX)
		return error_set(error, -EINVAL, "a time of an event is beyond the year 2262");
	return 0;
}

long event_decode(const uint8_t *data, size_t len, struct event *ret, char *text, struct error *error)
{
	struct event e = { 0 };
	const struct form *form;
	uint64_t size;
	size_t used, at = 0;
	int err;

	if (len < 2)
		return 0;
	used = varint_get(data + 1, len - 1, &size);
	if (!used && len - 1 < VARINT_MAX)
		return 0;
	if (!used || size > EVENT_BYTES_MAX - 1 - VARINT_MAX)
		return error_set(error, -EINVAL, "an event of type %u is longer than any can be", data[0]);
	used++;
	if (size > len - used)
		return 0;
	if (!data[0] || data[0] >= EVENT_TYPES) {
		*ret = e;
		return (long)(used + size);
	}
	e.type = data[0];
	form = &forms[e.type];
	err = set_fields(&e, form, data + used, size, &at);
	if (!err && form->comm)
		err = set_comm(&e, data + used, size, at);
	else if (!err && form->text)
		err = set_text(&e, data + used, size, at, text);
	if (err)
		return error_set(error, err, "an event of type %u is malformed", e.type);
	err = check(&e, error);
	if (err)
		return err;
	*ret = e;
	return (long)(used + size);
}
