// SPDX-License-Identifier: Apache-2.0
// Threads on some CPUs, of whose events a part is lost: a reader of the trace finds nothing that cannot be, and each
// thread's states add up to its life.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "timeline/timeline_internal.h"
#include "timeline/trace_fields.h"
#include "unit/timeline/decode.h"

#define CPUS 3
#define THREADS 8 // numbers from 1
#define STEPS 3000
#define START 1000

static uint64_t seed;

static unsigned any(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

static int keep(void *context, const void *data, size_t len)
{
	buf_append(context, data, len);
	return 0;
}

// ---- what happens

enum what { GONE, RUNS, READY, SLEEPS };

struct world {
	struct timeline *t;
	unsigned lost_percent;
	uint64_t time;
	enum what threads[THREADS + 1];
	unsigned on[CPUS]; // 0 = nobody
};

static void tell(struct world *w, struct event e)
{
	e.time = w->time;
	if (any(100) >= w->lost_percent)
		assert_int_equal(timeline_add(w->t, &e, NULL), 0);
}

static unsigned one_that(const struct world *w, enum what what)
{
	unsigned first = any(THREADS);

	for (unsigned i = 0; i < THREADS; i++)
		if (w->threads[1 + (first + i) % THREADS] == what)
			return 1 + (first + i) % THREADS;
	return 0;
}

static void reschedule(struct world *w, unsigned cpu)
{
	static const uint32_t states[] = { 0, 1, 2, 2, 4, 0x80, 0x402 };
	unsigned how = any(sizeof(states) / sizeof(*states)), from = w->on[cpu], to = one_that(w, READY);
	struct event e = { .type = EVENT_SWITCH, .cpu = cpu, .tid = from, .tgid = 1, .other_tid = to, .other_tgid = 1 };

	if (from == to)
		return;
	if (from) {
		e.state = states[how];
		e.flags |= EVENT_LEAVES | (how == 3 ? EVENT_IO_WAIT : 0);
		w->threads[from] = !e.state ? READY : e.state == 0x80 ? GONE : SLEEPS;
	}
	if (to) {
		e.flags |= EVENT_COMES;
		w->threads[to] = RUNS;
		snprintf(e.comm, sizeof(e.comm), "t%u", to);
	}
	w->on[cpu] = to;
	tell(w, e);
}

static void wake(struct world *w)
{
	unsigned tid = one_that(w, SLEEPS);

	if (!tid)
		return;
	w->threads[tid] = READY;
	tell(w, (struct event){ .type = EVENT_WAKING, .cpu = any(CPUS), .tid = tid, .tgid = 1, .flags = EVENT_OFF_QUEUE });
}

static void make(struct world *w)
{
	unsigned tid = one_that(w, GONE);

	if (!tid)
		return;
	w->threads[tid] = READY;
	tell(w, (struct event){ .type = EVENT_NEW, .cpu = any(CPUS), .tid = tid, .tgid = 1, .comm = "new" });
}

static void step(struct world *w)
{
	unsigned what = any(8);

	w->time += any(1000);
	if (what < 5)
		reschedule(w, any(CPUS));
	else if (what < 7)
		wake(w);
	else
		make(w);
}

// ---- what a reader sees

struct reader {
	uint64_t on[CPUS], time;
	enum what threads[THREADS + 1];
};

static uint64_t number_in(const struct field *message, unsigned number)
{
	struct field f;

	return field_get(message->data, message->len, number, 0, &f) ? f.value : 0;
}

static void read_switch(struct reader *r, uint64_t cpu, const struct field *s)
{
	uint64_t prev = number_in(s, SWITCH_PREV_PID), next = number_in(s, SWITCH_NEXT_PID), state = number_in(s, SWITCH_PREV_STATE);

	assert_in_range(cpu, 0, CPUS - 1);
	assert_in_range(next, 0, THREADS);
	assert_int_equal(prev, r->on[cpu]);
	if (prev)
		r->threads[prev] = state == TRACE_DEAD ? GONE : state == TRACE_RUNNABLE || state == TRACE_PREEMPTED ? READY : SLEEPS;
	if (next)
		assert_int_not_equal(r->threads[next], RUNS);
	r->threads[next] = RUNS;
	r->on[cpu] = next;
}

static void read_event(struct reader *r, uint64_t cpu, const struct field *event)
{
	uint64_t time = number_in(event, FTRACE_TIME), tid;
	struct field body;

	assert_true(time >= r->time);
	r->time = time;
	if (field_get(event->data, event->len, FTRACE_SWITCH, 0, &body))
		read_switch(r, cpu, &body);
	if (!field_get(event->data, event->len, FTRACE_WAKING, 0, &body))
		return;
	tid = number_in(&body, WAKING_PID);
	assert_in_range(tid, 1, THREADS);
	assert_true(r->threads[tid] == SLEEPS || r->threads[tid] == GONE);
	r->threads[tid] = READY;
}

static void read_trace(const struct buf *out)
{
	struct field packet, bundle, event;
	const uint8_t *at = out->data;
	struct reader r = { 0 };
	bool bad = false;

	while (field_next(&at, out->data + out->len, &packet, &bad)) {
		const uint8_t *in;

		if (!field_get(packet.data, packet.len, PACKET_FTRACE, 0, &bundle))
			continue;
		in = bundle.data;
		while (field_next(&in, bundle.data + bundle.len, &event, &bad))
			if (event.number == BUNDLE_EVENT)
				read_event(&r, number_in(&bundle, BUNDLE_CPU), &event);
	}
	assert_false(bad);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		assert_int_equal(r.on[cpu], 0);
}

static void check_lives(struct timeline *t, uint64_t end)
{
	for (size_t i = 0; i < thread_table_count(t->threads); i++) {
		const struct thread *th = thread_table_get(t->threads, i);
		uint64_t sum = 0;

		for (unsigned s = 0; s < THREAD_STATES; s++)
			sum += th->time[s];
		assert_int_equal(sum, (th->state == THREAD_DEAD ? th->since : end) - th->first);
	}
}

static void happens(unsigned lost_percent)
{
	struct buf out = { 0 };
	struct timeline_options o = { .sink = keep, .context = &out };
	struct event start = { .type = EVENT_START, .time = START, .boottime = START, .text = "6.1.0", .text_len = 5 };
	struct event stop = { .type = EVENT_STOP };
	struct world w = { .t = timeline_new(&o), .lost_percent = lost_percent, .time = START };

	assert_int_equal(timeline_add(w.t, &start, NULL), 0);
	for (unsigned i = 0; i < STEPS; i++)
		step(&w);
	stop.time = w.time;
	assert_int_equal(timeline_add(w.t, &stop, NULL), 0);
	assert_int_equal(timeline_end(w.t, NULL), 0);
	read_trace(&out);
	check_lives(w.t, w.time);
	timeline_free(w.t);
	buf_free(&out);
}

static void whatever_is_lost_the_trace_can_be(void **state)
{
	static const unsigned lost[] = { 0, 1, 5, 20, 50, 90 };

	for (unsigned i = 0; i < sizeof(lost) / sizeof(*lost); i++)
		for (unsigned round = 1; round <= 5; round++) {
			seed = round;
			happens(lost[i]);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_is_lost_the_trace_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
