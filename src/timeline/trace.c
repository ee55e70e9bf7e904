// SPDX-License-Identifier: Apache-2.0
#include "timeline/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "timeline/interned.h"
#include "timeline/proto.h"
#include "timeline/trace_fields.h"

#define SEQUENCE 1
#define FLUSH_BYTES (256 << 10)
#define INTERNED_BYTES (8 << 20)
#define BUNDLE_BYTES (32 << 10)
#define PRIORITY 120 // readers want one; ours are not told apart by it

struct trace {
	trace_sink sink;
	void *context;
	struct buf out;	   // packets that the sink does not have yet
	struct buf bundle; // events of one CPU that lie behind them
	struct buf event, said;
	struct interned *interned;
	uint32_t bundle_cpu;
	bool cleared; // the sequence's state was said to be empty
	uint64_t to_boottime;
	uint64_t written;
	int error;
};

struct trace *trace_new(trace_sink sink, void *context)
{
	struct trace *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->sink = sink;
	t->context = context;
	t->interned = interned_new(INTERNED_BYTES);
	if (t->interned)
		return t;
	free(t);
	return NULL;
}

void trace_free(struct trace *t)
{
	if (!t)
		return;
	buf_free(&t->out);
	buf_free(&t->bundle);
	buf_free(&t->event);
	buf_free(&t->said);
	interned_free(t->interned);
	free(t);
}

uint64_t trace_size(const struct trace *t)
{
	return t->written + t->out.len + t->bundle.len;
}

int trace_error(const struct trace *t)
{
	return t->error ? t->error : t->out.error ? t->out.error : t->bundle.error ? t->bundle.error : t->event.error ? t->event.error
								: t->said.error;
}

// ---- packets

static uint64_t time_of(const struct trace *t, uint64_t time)
{
	return time + t->to_boottime;
}

static void send_out(struct trace *t)
{
	if (!t->error && !t->out.error && t->out.len)
		t->error = t->sink(t->context, t->out.data, t->out.len);
	t->written += t->out.len;
	t->out.len = 0;
}

static void end_bundle(struct trace *t)
{
	size_t packet, bundle;

	if (!t->bundle.len)
		return;
	packet = proto_begin(&t->out, TRACE_PACKET);
	proto_number(&t->out, PACKET_SEQUENCE, SEQUENCE);
	bundle = proto_begin(&t->out, PACKET_FTRACE);
	proto_number(&t->out, BUNDLE_CPU, t->bundle_cpu);
	buf_append(&t->out, t->bundle.data, t->bundle.len);
	proto_end(&t->out, bundle);
	proto_end(&t->out, packet);
	t->bundle.len = 0;
	if (t->out.len > FLUSH_BYTES)
		send_out(t);
}

static size_t begin_packet(struct trace *t, uint64_t time, unsigned flags)
{
	size_t mark;

	end_bundle(t);
	mark = proto_begin(&t->out, TRACE_PACKET);
	proto_number(&t->out, PACKET_TIMESTAMP, time_of(t, time));
	proto_number(&t->out, PACKET_SEQUENCE, SEQUENCE);
	if (!t->cleared)
		flags |= FLAG_CLEARED;
	t->cleared = true;
	if (flags)
		proto_number(&t->out, PACKET_FLAGS, flags);
	return mark;
}

static void end_packet(struct trace *t, size_t mark)
{
	proto_end(&t->out, mark);
	if (t->out.len > FLUSH_BYTES)
		send_out(t);
}

void trace_flush(struct trace *t)
{
	end_bundle(t);
	send_out(t);
}

static void clock_at(struct buf *b, unsigned id, uint64_t time)
{
	size_t mark = proto_begin(b, SNAPSHOT_CLOCK);

	proto_number(b, CLOCK_ID, id);
	proto_number(b, CLOCK_TIME, time);
	proto_end(b, mark);
}

void trace_begin(struct trace *t, const struct event *start, unsigned cpus)
{
	size_t packet, message, inner;

	t->to_boottime = start->boottime > start->time ? start->boottime - start->time : 0;
	packet = begin_packet(t, start->time, 0);
	message = proto_begin(&t->out, PACKET_CLOCK_SNAPSHOT);
	clock_at(&t->out, CLOCK_IS_BOOTTIME, time_of(t, start->time));
	clock_at(&t->out, CLOCK_IS_MONOTONIC, start->time);
	clock_at(&t->out, CLOCK_IS_REALTIME, start->realtime);
	proto_end(&t->out, message);
	end_packet(t, packet);

	packet = begin_packet(t, start->time, 0);
	message = proto_begin(&t->out, PACKET_SYSTEM_INFO);
	inner = proto_begin(&t->out, INFO_UTSNAME);
	proto_text(&t->out, UTSNAME_SYSNAME, "Linux");
	proto_text(&t->out, UTSNAME_RELEASE, start->text ? start->text : "");
	proto_end(&t->out, inner);
	if (cpus)
		proto_number(&t->out, INFO_CPUS, cpus);
	proto_end(&t->out, message);
	end_packet(t, packet);
}

// ---- threads on CPUs

static size_t begin_ftrace(struct trace *t, uint64_t time, uint32_t cpu, uint32_t pid)
{
	size_t mark;

	if (t->bundle.len && (t->bundle_cpu != cpu || t->bundle.len > BUNDLE_BYTES))
		end_bundle(t);
	t->bundle_cpu = cpu;
	mark = proto_begin(&t->bundle, BUNDLE_EVENT);
	proto_number(&t->bundle, FTRACE_TIME, time_of(t, time));
	proto_number(&t->bundle, FTRACE_PID, pid);
	return mark;
}

void trace_switch(struct trace *t, uint64_t time, uint32_t cpu, const struct trace_task *prev, unsigned prev_state,
		  const struct trace_task *next)
{
	size_t event = begin_ftrace(t, time, cpu, prev->tid), mark = proto_begin(&t->bundle, FTRACE_SWITCH);

	proto_text(&t->bundle, SWITCH_PREV_COMM, prev->comm);
	proto_number(&t->bundle, SWITCH_PREV_PID, prev->tid);
	proto_number(&t->bundle, SWITCH_PREV_PRIO, PRIORITY);
	proto_number(&t->bundle, SWITCH_PREV_STATE, prev_state);
	proto_text(&t->bundle, SWITCH_NEXT_COMM, next->comm);
	proto_number(&t->bundle, SWITCH_NEXT_PID, next->tid);
	proto_number(&t->bundle, SWITCH_NEXT_PRIO, PRIORITY);
	proto_end(&t->bundle, mark);
	proto_end(&t->bundle, event);
}

void trace_waking(struct trace *t, uint64_t time, uint32_t cpu, uint32_t waker, const struct trace_task *task)
{
	size_t event = begin_ftrace(t, time, cpu, waker), mark = proto_begin(&t->bundle, FTRACE_WAKING);

	proto_text(&t->bundle, WAKING_COMM, task->comm);
	proto_number(&t->bundle, WAKING_PID, task->tid);
	proto_number(&t->bundle, WAKING_PRIO, PRIORITY);
	proto_number(&t->bundle, WAKING_SUCCESS, 1);
	proto_number(&t->bundle, WAKING_CPU, cpu);
	proto_end(&t->bundle, mark);
	proto_end(&t->bundle, event);
}

void trace_blocked(struct trace *t, uint64_t time, uint32_t cpu, uint32_t waker, uint32_t tid, bool io_wait)
{
	size_t event = begin_ftrace(t, time, cpu, waker), mark = proto_begin(&t->bundle, FTRACE_BLOCKED);

	proto_number(&t->bundle, BLOCKED_PID, tid);
	proto_number(&t->bundle, BLOCKED_IO_WAIT, io_wait);
	proto_end(&t->bundle, mark);
	proto_end(&t->bundle, event);
}

// ---- tracks

void trace_process(struct trace *t, uint64_t time, uint64_t track, uint32_t pid, const char *name)
{
	size_t packet = begin_packet(t, time, 0), message = proto_begin(&t->out, PACKET_TRACK_DESCRIPTOR), mark;

	proto_number(&t->out, TRACK_UUID, track);
	mark = proto_begin(&t->out, TRACK_PROCESS);
	proto_number(&t->out, PROCESS_PID, pid);
	proto_text(&t->out, PROCESS_NAME, name);
	proto_end(&t->out, mark);
	proto_end(&t->out, message);
	end_packet(t, packet);
}

void trace_thread(struct trace *t, uint64_t time, uint64_t track, uint32_t pid, uint32_t tid, const char *name)
{
	size_t packet = begin_packet(t, time, 0), message = proto_begin(&t->out, PACKET_TRACK_DESCRIPTOR), mark;

	proto_number(&t->out, TRACK_UUID, track);
	mark = proto_begin(&t->out, TRACK_THREAD);
	proto_number(&t->out, THREAD_PID, pid);
	proto_number(&t->out, THREAD_TID, tid);
	proto_text(&t->out, THREAD_NAME, name);
	proto_end(&t->out, mark);
	proto_end(&t->out, message);
	end_packet(t, packet);
}

void trace_track(struct trace *t, uint64_t time, uint64_t track, uint64_t parent, enum trace_kind kind, const char *name)
{
	size_t packet = begin_packet(t, time, 0), message = proto_begin(&t->out, PACKET_TRACK_DESCRIPTOR), mark;

	proto_number(&t->out, TRACK_UUID, track);
	proto_text(&t->out, TRACK_NAME, name);
	if (parent)
		proto_number(&t->out, TRACK_PARENT, parent);
	if (kind == TRACE_COUNTER) {
		mark = proto_begin(&t->out, TRACK_IS_COUNTER);
		proto_number(&t->out, COUNTER_UNIT, UNIT_COUNT);
		proto_end(&t->out, mark);
	}
	proto_end(&t->out, message);
	end_packet(t, packet);
}

// ---- slices

static void encode_args(struct trace *t, const struct trace_event *e)
{
	for (unsigned i = 0; i < e->n_args; i++) {
		uint64_t name = interned_text(t->interned, INTERNED_ANNOTATION, e->args[i].name, &t->said);
		size_t mark = proto_begin(&t->event, TRACK_EVENT_ANNOTATION);

		proto_number(&t->event, ANNOTATION_NAME_IID, name);
		if (e->args[i].text)
			proto_text(&t->event, ANNOTATION_TEXT, e->args[i].text);
		else
			proto_number(&t->event, ANNOTATION_UINT, e->args[i].number);
		proto_end(&t->event, mark);
	}
}

static void encode_event(struct trace *t, const struct trace_event *e)
{
	struct buf *b = &t->event;

	proto_number(b, TRACK_EVENT_TYPE, e->type);
	proto_number(b, TRACK_EVENT_TRACK, e->track);
	if (e->category)
		proto_number(b, TRACK_EVENT_CATEGORY_IID, interned_text(t->interned, INTERNED_CATEGORY, e->category, &t->said));
	if (e->name)
		proto_number(b, TRACK_EVENT_NAME_IID, interned_text(t->interned, INTERNED_NAME, e->name, &t->said));
	if (e->type == TRACE_VALUE)
		proto_number(b, TRACK_EVENT_VALUE, e->value);
	encode_args(t, e);
	if (e->flow)
		proto_fixed64(b, TRACK_EVENT_FLOW, e->flow);
	if (e->flow_end)
		proto_fixed64(b, TRACK_EVENT_FLOW_END, e->flow_end);
	if (e->stack && e->stack_text)
		proto_number(b, TRACK_EVENT_STACK_IID, interned_stack(t->interned, e->stack, e->stack_text, &t->said));
}

void trace_event(struct trace *t, const struct trace_event *e)
{
	size_t packet;

	if (interned_is_full(t->interned)) {
		interned_clear(t->interned);
		t->cleared = false;
	}
	t->event.len = t->said.len = 0;
	encode_event(t, e);
	packet = begin_packet(t, e->time, FLAG_NEEDS_STATE);
	if (t->said.len)
		proto_bytes(&t->out, PACKET_INTERNED, t->said.data, t->said.len);
	proto_bytes(&t->out, PACKET_TRACK_EVENT, t->event.data, t->event.len);
	end_packet(t, packet);
}
