// SPDX-License-Identifier: Apache-2.0
// Records of the ring made events. What they name (stacks, devices, processes) is said before, once.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tracer_internal.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/clock.h"
#include "common/text.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes(key, len, 0))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define KNOWN_MAX 500000

enum known_kind {
	KNOWN_STACK,
	KNOWN_DEVICE,
	KNOWN_PROCESS,
};

struct tracer_known {
	struct known_key {
		uint64_t number;
		uint64_t kind; // enum known_kind; without padding
	} key;
	UT_hash_handle hh;
};

void tracer_forget(struct tracer *t)
{
	struct tracer_known *k, *next;

	HASH_ITER(hh, t->known, k, next) {
		HASH_DEL(t->known, k);
		free(k);
	}
}

// True the first time.
static bool is_new(struct tracer *t, enum known_kind kind, uint64_t number)
{
	struct known_key key = { number, kind };
	struct tracer_known *k;

	HASH_FIND(hh, t->known, &key, sizeof(key), k);
	if (k)
		return false;
	if (HASH_COUNT(t->known) >= KNOWN_MAX)
		tracer_forget(t); // all is said again
	k = calloc(1, sizeof(*k));
	if (!k)
		return true;
	k->key = key;
	HASH_ADD(hh, t->known, key, sizeof(k->key), k);
	if (!k->hh.tbl)
		free(k);
	return true;
}

static void say_text(struct tracer *t, struct event *e, const char *text)
{
	size_t len = strlen(text);

	e->text = text;
	e->text_len = len < EVENT_TEXT_MAX ? (uint32_t)len : EVENT_TEXT_MAX;
	tracer_say(t, e);
}

void tracer_say_process(struct tracer *t, uint32_t tgid)
{
	struct event e = { .type = EVENT_PROCESS, .tgid = tgid };
	char path[64], name[64];

	if (!is_new(t, KNOWN_PROCESS, tgid))
		return;
	snprintf(path, sizeof(path), "/proc/%u/comm", tgid);
	if (!file_read_line(path, name, sizeof(name)))
		say_text(t, &e, name);
}

static uint32_t device_of(struct tracer *t, uint32_t slot)
{
	uint32_t dev = 0;
	const char *name = recorder_slot_disk(t->recorder, slot, &dev);
	struct event e = { .type = EVENT_DEVICE, .device = dev };

	if (is_new(t, KNOWN_DEVICE, dev))
		say_text(t, &e, name);
	return dev;
}

// The number of a stack in a process, its frames said when they are new.
static uint64_t stack_of(struct tracer *t, const struct in_flight *who)
{
	struct event e = { .type = EVENT_STACK };
	struct buf text = { 0 };

	if (!who->stack || !t->options.stacks)
		return 0;
	e.stack = hash_mix(who->stack, who->kind & TASK_KTHREAD ? 0 : who->tgid);
	e.stack += !e.stack;
	if (!is_new(t, KNOWN_STACK, e.stack))
		return e.stack;
	if (!recorder_stack_text(t->recorder, who, &text) && text.data) {
		buf_byte(&text, 0);
		if (!text.error)
			say_text(t, &e, (const char *)text.data);
	}
	buf_free(&text);
	return e.stack;
}

static void switched(struct tracer *t, const struct switch_rec *r)
{
	struct event e = { .type = EVENT_SWITCH, .time = r->time, .cpu = r->cpu, .tid = r->prev_tid, .tgid = r->prev_tgid,
			   .other_tid = r->next_tid, .other_tgid = r->next_tgid, .state = r->prev_state,
			   .syscall = (uint32_t)r->syscall };
	struct in_flight who = { .tgid = r->prev_tgid, .tid = r->prev_tid, .submit = r->time, .stack = r->stack };

	e.flags |= r->flags & SWITCH_PREEMPTED ? EVENT_PREEMPTED : 0;
	e.flags |= r->flags & SWITCH_IO_WAIT ? EVENT_IO_WAIT : 0;
	e.flags |= r->flags & SWITCH_PREV ? EVENT_LEAVES : 0;
	e.flags |= r->flags & SWITCH_NEXT ? EVENT_COMES : 0;
	e.flags |= r->flags & SWITCH_SYSCALL ? EVENT_SYSCALL : 0;
	e.flags |= r->flags & SWITCH_KTHREAD ? EVENT_KERNEL : 0;
	if (r->flags & SWITCH_NEXT)
		tracer_say_process(t, r->next_tgid);
	e.stack = stack_of(t, &who);
	text_sanitize(e.comm, sizeof(e.comm), r->next_comm, sizeof(r->next_comm));
	tracer_say(t, &e);
}

static void waking(struct tracer *t, const struct waking_rec *r)
{
	struct event e = { .type = EVENT_WAKING, .time = r->time, .cpu = r->cpu, .tid = r->tid, .tgid = r->tgid,
			   .other_tid = r->waker_tid, .other_tgid = r->waker_tgid,
			   .flags = r->flags & WAKING_OFF_QUEUE ? EVENT_OFF_QUEUE : 0 };

	text_sanitize(e.comm, sizeof(e.comm), r->waker_comm, sizeof(r->waker_comm));
	tracer_say(t, &e);
}

static void thread_event(struct tracer *t, const struct thread_rec *r)
{
	struct event e = { .time = r->time, .cpu = r->cpu, .tid = r->tid, .tgid = r->tgid, .other_tid = r->other };

	e.type = r->type == TIMELINE_NEW ? EVENT_NEW : r->type == TIMELINE_EXEC ? EVENT_EXEC : EVENT_RENAME;
	tracer_say_process(t, r->tgid);
	text_sanitize(e.comm, sizeof(e.comm), r->comm, sizeof(r->comm));
	tracer_say(t, &e);
}

static void submitted(struct tracer *t, const struct submit_rec *r)
{
	struct event e = { .type = EVENT_SUBMIT, .time = r->time, .cpu = r->cpu, .tid = r->tid, .tgid = r->tgid, .id = r->address,
			   .sector = r->sector, .size = r->size, .op = r->op, .device = device_of(t, r->slot) };
	struct in_flight who = { .tgid = r->tgid, .tid = r->tid, .submit = r->time, .stack = r->stack, .kind = r->kind };

	memcpy(who.comm, r->comm, sizeof(who.comm));
	tracer_say_process(t, r->tgid);
	e.stack = stack_of(t, &who);
	text_sanitize(e.comm, sizeof(e.comm), r->comm, sizeof(r->comm));
	tracer_say(t, &e);
}

static void ended(struct tracer *t, const struct end_rec *r)
{
	struct event e = { .type = EVENT_END, .time = r->time, .cpu = r->cpu, .id = r->address, .submit = r->submit,
			   .issue = r->issue };

	if (r->reason == END_AGAIN)
		e.flags = EVENT_AGAIN;
	if (r->reason == END_UNSEEN && !r->time) {
		e.flags = EVENT_UNSEEN;
		e.time = t->stop ? t->stop : clock_monotonic();
	}
	tracer_say(t, &e);
}

void tracer_record(void *context, const void *record, size_t size)
{
	struct tracer *t = context;
	uint32_t type;

	memcpy(&type, record, sizeof(type));
	if (type == TIMELINE_SWITCH && size >= sizeof(struct switch_rec))
		switched(t, record);
	else if (type == TIMELINE_WAKING && size >= sizeof(struct waking_rec))
		waking(t, record);
	else if (type >= TIMELINE_NEW && type <= TIMELINE_EXEC && size >= sizeof(struct thread_rec))
		thread_event(t, record);
	else if (type == TIMELINE_SUBMIT && size >= sizeof(struct submit_rec))
		submitted(t, record);
	else if (type == TIMELINE_END && size >= sizeof(struct end_rec))
		ended(t, record);
}
