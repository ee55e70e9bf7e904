// SPDX-License-Identifier: Apache-2.0
// I/O: a slice in a lane of its device from submission to completion, with an arrow from the thread that submitted it.
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "timeline/timeline_internal.h"

const char *io_op_name(unsigned op)
{
	static const char *const names[] = { "read", "write", "flush", "discard", "write_zeroes", "other" };

	return op < sizeof(names) / sizeof(*names) ? names[op] : "other";
}

static void show_depth(struct timeline *t, const struct disk *disk, uint64_t time)
{
	struct trace_event value = { .time = time, .track = disk->counter, .type = TRACE_VALUE, .value = disk->in_flight };

	trace_event(t->trace, &value);
}

static void show_disk(struct timeline *t, struct disk *disk, uint64_t time)
{
	char name[96];

	if (disk->track)
		return;
	disk->track = timeline_track(t);
	disk->counter = timeline_track(t);
	snprintf(name, sizeof(name), "disk %s", disk->name);
	trace_track(t->trace, time, disk->track, 0, TRACE_GROUP, name);
	trace_track(t->trace, time, disk->counter, disk->track, TRACE_COUNTER, "in flight");
}

// In the thread: the moment of submission, where the arrow begins.
static void show_submission(struct timeline *t, const struct event *e, const struct thread *th, const struct disk *disk,
			    const char *name, uint64_t flow)
{
	struct trace_arg args[] = { { "device", disk->name, 0 }, { "sector", NULL, e->sector }, { "bytes", NULL, e->size } };
	struct trace_event event = { .time = e->time, .track = th->track, .type = TRACE_INSTANT, .category = "submit",
				     .name = name, .flow = flow, .args = args, .n_args = 3 };

	trace_event(t->trace, &event);
}

static void show_begin(struct timeline *t, const struct event *e, struct io *io, const char *name, uint64_t flow)
{
	char comm[EVENT_COMM];
	struct trace_arg args[] = {
		{ "op", io_op_name(io->op), 0 },      { "bytes", NULL, e->size }, { "sector", NULL, e->sector },
		{ "device", io->disk->name, 0 }, { "tid", NULL, e->tid },	  { "thread", comm, 0 },
	};
	struct trace_event event = { .time = e->time, .type = TRACE_BEGIN, .category = "io", .name = name, .flow_end = flow,
				     .stack = e->stack, .stack_text = timeline_stack(t, e->stack), .args = args,
				     .n_args = sizeof(args) / sizeof(*args) };

	memcpy(comm, e->comm, sizeof(comm));
	if (!io->lane->track) {
		io->lane->track = timeline_track(t);
		trace_track(t->trace, e->time, io->lane->track, io->disk->track, TRACE_LANE, "requests");
	}
	event.track = io->lane->track;
	trace_event(t->trace, &event);
	t->open++;
}

static void show_end(struct timeline *t, const struct io *io, uint64_t time, uint64_t issue, const char *how)
{
	struct trace_arg args[4];
	struct trace_event end = { .time = time, .type = TRACE_END, .args = args };

	if (!t->trace || !io->lane)
		return;
	end.track = io->lane->track;
	args[end.n_args++] = (struct trace_arg){ "latency_ns", NULL, time > io->start ? time - io->start : 0 };
	if (issue >= io->start && issue <= time) {
		args[end.n_args++] = (struct trace_arg){ "queue_ns", NULL, issue - io->start };
		args[end.n_args++] = (struct trace_arg){ "device_ns", NULL, time - issue };
	}
	if (how)
		args[end.n_args++] = (struct trace_arg){ "end", how, 0 };
	trace_event(t->trace, &end);
	t->open--;
}

static void end_unseen(struct timeline *t, struct io *io, uint64_t time)
{
	struct disk *disk = io->disk;

	show_end(t, io, time, 0, "not seen");
	disk->unseen++;
	disks_ended(t->disks, io, time, false);
	if (t->trace)
		show_depth(t, disk, time);
}

void io_submit(struct timeline *t, const struct event *e)
{
	struct io *io = disks_stale(t->disks, e->id);
	struct thread *th = sched_thread_of(t, e->tid, e->tgid, e->comm, e->time);
	char name[64], size[32];
	uint64_t flow;

	if (io)
		end_unseen(t, io, e->time);
	if (th)
		th->ops++;
	io = disks_submit(t->disks, e);
	if (!io || !t->trace)
		return;
	show_disk(t, io->disk, e->time);
	if (e->size)
		snprintf(name, sizeof(name), "%s %s", io_op_name(io->op), text_bytes(size, sizeof(size), e->size));
	else
		snprintf(name, sizeof(name), "%s", io_op_name(io->op));
	if (io->lane) {
		flow = th ? timeline_track(t) : 0; // a number like a track's: given once
		if (th)
			show_submission(t, e, th, io->disk, name, flow);
		show_begin(t, e, io, name, flow);
	}
	show_depth(t, io->disk, e->time);
}

void io_end(struct timeline *t, const struct event *e)
{
	struct io *io = disks_find(t->disks, e->id, e->submit);
	struct disk *disk;

	if (!io)
		return;
	disk = io->disk;
	if (e->flags & EVENT_UNSEEN) {
		end_unseen(t, io, e->time);
		return;
	}
	show_end(t, io, e->time, e->issue, e->flags & EVENT_AGAIN ? "again" : NULL);
	if (!(e->flags & EVENT_AGAIN))
		t->stats.ops++;
	disks_ended(t->disks, io, e->time, !(e->flags & EVENT_AGAIN));
	if (t->trace)
		show_depth(t, disk, e->time);
}

void io_close(struct timeline *t, uint64_t time)
{
	struct io *io = NULL;

	while ((io = disks_next(t->disks, io)))
		show_end(t, io, time, 0, "in flight");
}

void io_forget(struct timeline *t, uint64_t time)
{
	struct io *io;

	while ((io = disks_next(t->disks, NULL))) {
		io->disk->open++;
		disks_ended(t->disks, io, time, false);
	}
}
