// SPDX-License-Identifier: Apache-2.0
// Requests: a slice on a track below the thread that served it. They are known when they are over, so their slices lie behind
// what happened meanwhile; those of one track follow each other.
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/text.h"
#include "timeline/timeline_internal.h"

#define NAME_MAX_BYTES 256
#define TEXT_MAX (NAME_MAX_BYTES + 4) // a character that is cut off is seen to be one
#define REQUESTS_MAX 100000 // that wait

struct request_wait {
	struct event event;
	struct request_wait *prev, *next;
	char text[];
};

// One that is free at that time; several, when one thread serves several at once.
static struct thread_lane *lane_for(struct timeline *t, struct thread *th, uint64_t start)
{
	for (unsigned i = 0; i < THREAD_LANES; i++) {
		struct thread_lane *lane = &th->lanes[i];

		if (lane->until > start)
			continue;
		if (!lane->track) {
			lane->track = timeline_track(t);
			trace_track(t->trace, t->now, lane->track, th->track, TRACE_LANE, "requests");
		}
		return lane;
	}
	return NULL;
}

static void show(struct timeline *t, struct thread_lane *lane, const struct event *e, uint64_t start)
{
	char name[NAME_MAX_BYTES];
	struct trace_arg status = { "status", NULL, e->state };
	struct trace_event begin = { .time = start, .track = lane->track, .type = TRACE_BEGIN, .category = "request", .name = name };
	struct trace_event end = { .time = e->time, .track = lane->track, .type = TRACE_END, .args = &status, .n_args = e->state > 0 };

	text_sanitize(name, sizeof(name), e->text, e->text_len);
	trace_event(t->trace, &begin);
	trace_event(t->trace, &end);
	lane->until = e->time;
}

static void lose(struct timeline *t)
{
	t->stats.lost[LOST_REQUEST]++;
	t->requests_missing++;
}

static void take(struct timeline *t, const struct event *e)
{
	uint64_t start = e->submit < t->start ? t->start : e->submit;
	struct thread *th = thread_table_find(t->threads, e->tid);
	struct thread_lane *lane;

	if (!th)
		lose(t);
	if (!th || e->time <= start)
		return;
	t->stats.requests++;
	th->requests++;
	th->request_time += e->time - start;
	if (!t->trace) {
		t->stats.left_out += t->options.sink != NULL;
		return;
	}
	lane = lane_for(t, th, start);
	if (lane)
		show(t, lane, e, start);
	else
		lose(t);
}

// It waits until what its thread did meanwhile has been taken in.
int request_event(struct timeline *t, const struct event *e)
{
	size_t len = e->text_len < TEXT_MAX ? e->text_len : TEXT_MAX;
	struct request_wait *w = t->n_requests < REQUESTS_MAX ? malloc(sizeof(*w) + len + 1) : NULL;

	if (!w) {
		lose(t);
		return 0;
	}
	memcpy(w->text, e->text, len);
	w->text[len] = 0;
	w->event = *e;
	w->event.text = w->text;
	w->event.text_len = (uint32_t)len;
	DL_APPEND(t->requests, w);
	t->n_requests++;
	return 0;
}

void requests_due(struct timeline *t, bool all)
{
	struct request_wait *w;

	while ((w = t->requests) && (all || w->event.time <= t->now)) {
		DL_DELETE(t->requests, w);
		t->n_requests--;
		take(t, &w->event);
		free(w);
	}
}

void requests_forget(struct timeline *t)
{
	struct request_wait *w, *next;

	DL_FOREACH_SAFE(t->requests, w, next)
		free(w);
	t->requests = NULL;
}
