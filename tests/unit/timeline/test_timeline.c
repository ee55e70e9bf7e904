// SPDX-License-Identifier: Apache-2.0
// Events in, states and packets out.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/timeline/decode.h"
#include "timeline/timeline_internal.h"
#include "timeline/trace_fields.h"

#define A 100
#define B 200

static int keep(void *context, const void *data, size_t len)
{
	buf_append(context, data, len);
	return 0;
}

struct run {
	struct timeline *t;
	struct buf out;
};

static struct run *begin(uint64_t max_size)
{
	struct run *r = calloc(1, sizeof(*r));
	struct timeline_options o = { .sink = keep, .context = &r->out, .max_size = max_size };
	struct event e = { .type = EVENT_START, .time = 1000, .boottime = 6000, .realtime = 7000, .text = "6.1.0", .text_len = 5 };

	r->t = timeline_new(&o);
	assert_non_null(r->t);
	assert_int_equal(timeline_add(r->t, &e, NULL), 0);
	return r;
}

static void add(struct run *r, struct event e)
{
	struct error error;

	assert_int_equal(timeline_add(r->t, &e, &error), 0);
}

static void switched(struct run *r, uint64_t time, uint32_t cpu, uint32_t from, uint32_t to, uint32_t state, uint32_t flags)
{
	struct event e = { .type = EVENT_SWITCH, .time = time, .cpu = cpu, .tid = from, .tgid = A, .other_tid = to, .other_tgid = A,
			   .state = state, .flags = flags };

	e.flags |= (from == A || from == B ? EVENT_LEAVES : 0) | (to == A || to == B ? EVENT_COMES : 0);
	snprintf(e.comm, sizeof(e.comm), "t%u", to);
	add(r, e);
}

static void woken(struct run *r, uint64_t time, uint32_t tid, uint32_t by, uint32_t flags)
{
	add(r, (struct event){ .type = EVENT_WAKING, .time = time, .tid = tid, .tgid = A, .other_tid = by, .flags = flags });
}

static void there(struct run *r, uint32_t tid, uint32_t state, uint32_t flags)
{
	add(r, (struct event){ .type = EVENT_THREAD, .time = 1000, .tid = tid, .tgid = A, .state = state, .flags = flags });
}

static void end(struct run *r, uint64_t time)
{
	add(r, (struct event){ .type = EVENT_STOP, .time = time });
	assert_int_equal(timeline_end(r->t, NULL), 0);
}

static uint64_t number_in(const struct field *message, unsigned number)
{
	struct field f;

	return field_get(message->data, message->len, number, 0, &f) ? f.value : 0;
}

// Who leaves a CPU was there, and nobody is on two.
static void check_cpus(struct run *r)
{
	enum { CPUS = 4 };
	const uint8_t *at = r->out.data;
	struct field packet, bundle, event, body;
	uint64_t on[CPUS] = { 0 }, next;
	bool bad = false;

	while (field_next(&at, r->out.data + r->out.len, &packet, &bad)) {
		if (!field_get(packet.data, packet.len, PACKET_FTRACE, 0, &bundle))
			continue;
		for (unsigned i = 0; field_get(bundle.data, bundle.len, BUNDLE_EVENT, i, &event); i++) {
			uint64_t cpu = number_in(&bundle, BUNDLE_CPU);

			if (!field_get(event.data, event.len, FTRACE_SWITCH, 0, &body))
				continue;
			assert_in_range(cpu, 0, CPUS - 1);
			assert_int_equal(number_in(&body, SWITCH_PREV_PID), on[cpu]);
			next = number_in(&body, SWITCH_NEXT_PID);
			for (unsigned c = 0; next && c < CPUS; c++)
				assert_int_not_equal(on[c], next);
			on[cpu] = next;
		}
	}
	assert_false(bad);
}

static void done(struct run *r)
{
	check_cpus(r);
	timeline_free(r->t);
	buf_free(&r->out);
	free(r);
}

static uint64_t time_in(struct run *r, uint32_t tid, enum thread_state state)
{
	return thread_table_find(r->t->threads, tid)->time[state];
}

static uint64_t time_in_all(struct run *r, uint32_t tid)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < THREAD_STATES; i++)
		sum += time_in(r, tid, i);
	return sum;
}

// Packets whose body has a field, from the trace that was written.
static unsigned packets_with(struct run *r, unsigned number)
{
	const uint8_t *at = r->out.data;
	struct field packet, f;
	unsigned n = 0;
	bool bad = false;

	while (field_next(&at, r->out.data + r->out.len, &packet, &bad)) {
		assert_int_equal(packet.number, TRACE_PACKET);
		n += field_get(packet.data, packet.len, number, 0, &f);
	}
	assert_false(bad);
	return n;
}

static unsigned events_of_type(struct run *r, unsigned type)
{
	const uint8_t *at = r->out.data;
	struct field packet, event, f;
	unsigned n = 0;
	bool bad = false;

	while (field_next(&at, r->out.data + r->out.len, &packet, &bad))
		if (field_get(packet.data, packet.len, PACKET_TRACK_EVENT, 0, &event) &&
		    field_get(event.data, event.len, TRACK_EVENT_TYPE, 0, &f))
			n += f.value == type;
	return n;
}

// Events of threads on CPUs that are of a kind; where `number` is one, only those whose field of that number is `value`.
static unsigned ftrace_events(struct run *r, unsigned kind, unsigned number, uint64_t value)
{
	const uint8_t *at = r->out.data;
	struct field packet, bundle, event, body, f;
	unsigned n = 0;
	bool bad = false;

	while (field_next(&at, r->out.data + r->out.len, &packet, &bad)) {
		if (!field_get(packet.data, packet.len, PACKET_FTRACE, 0, &bundle))
			continue;
		for (unsigned i = 0; field_get(bundle.data, bundle.len, BUNDLE_EVENT, i, &event); i++)
			n += field_get(event.data, event.len, kind, 0, &body) &&
			     (!number || (field_get(body.data, body.len, number, 0, &f) && f.value == value));
	}
	assert_false(bad);
	return n;
}

static void a_thread_is_in_one_state_at_a_time(void **state)
{
	struct run *r = begin(0);

	there(r, A, 1, 0);
	woken(r, 1100, A, 7, EVENT_OFF_QUEUE);
	switched(r, 1150, 0, 7, A, 0, 0);	      // runs
	switched(r, 1250, 0, A, 7, 0, 0);	      // preempted on its way to user space: the kernel says state 0
	switched(r, 1300, 1, 0, A, 0, 0);
	switched(r, 1400, 1, A, 0, 1, EVENT_PREEMPTED); // preempted in the kernel while it was about to sleep
	switched(r, 1410, 1, 0, A, 0, 0);
	switched(r, 1500, 1, A, 0, 2, EVENT_IO_WAIT);
	woken(r, 1700, A, 0, EVENT_OFF_QUEUE);
	switched(r, 1720, 0, 0, A, 0, 0);
	switched(r, 1800, 0, A, 0, 2, 0);
	end(r, 2000);
	assert_int_equal(time_in(r, A, THREAD_SLEEPING), 100);
	assert_int_equal(time_in(r, A, THREAD_RUNNABLE), 50 + 20);
	assert_int_equal(time_in(r, A, THREAD_PREEMPTED), 50 + 10);
	assert_int_equal(time_in(r, A, THREAD_RUNNING), 100 + 100 + 90 + 80);
	assert_int_equal(time_in(r, A, THREAD_DISK), 200);
	assert_int_equal(time_in(r, A, THREAD_BLOCKED), 200);
	assert_int_equal(time_in_all(r, A), 1000);
	assert_int_equal(thread_table_find(r->t->threads, A)->involuntary, 2);
	assert_int_equal(thread_table_find(r->t->threads, A)->voluntary, 2);
	assert_int_equal(thread_table_find(r->t->threads, A)->surprises, 0);
	assert_int_equal(events_of_type(r, TRACE_BEGIN), events_of_type(r, TRACE_END));
	done(r);
}

static void idle_kernel_threads_sleep(void **state)
{
	struct run *r = begin(0);

	there(r, A, 0, EVENT_RUNNING);
	switched(r, 1200, 0, A, 0, 0x402, EVENT_KERNEL); // uninterruptible, but no load
	end(r, 2000);
	assert_int_equal(time_in(r, A, THREAD_SLEEPING), 800);
	done(r);
}

static void a_waking_before_its_switch_ends_the_sleep(void **state)
{
	struct run *r = begin(0);

	there(r, A, 0, EVENT_RUNNING);
	woken(r, 1199, A, B, EVENT_OFF_QUEUE);
	switched(r, 1200, 0, A, 0, 1, 0);
	switched(r, 1300, 0, 0, A, 0, 0);
	woken(r, 1399, A, B, 0); // may have been in time, or not
	switched(r, 1400, 0, A, 0, 1, 0);
	switched(r, 1500, 0, 0, A, 0, 0);
	woken(r, 1550, A, B, 0); // was in time: it did not sleep
	end(r, 1600);
	assert_int_equal(time_in(r, A, THREAD_RUNNABLE), 200);
	assert_int_equal(time_in(r, A, THREAD_RUNNING), 400);
	assert_int_equal(time_in(r, A, THREAD_SLEEPING), 0);
	assert_int_equal(thread_table_find(r->t->threads, A)->surprises, 0);
	done(r);
}

static void lost_events_make_time_unknown(void **state)
{
	struct run *r = begin(0);

	there(r, A, 1, 0);
	switched(r, 1100, 0, 0, A, 0, 0); // its waking was lost, or it was runnable at the start
	switched(r, 1300, 0, B, 0, 1, 0); // B's coming was lost, and A's leaving
	switched(r, 1400, 1, 0, A, 0, 0);
	end(r, 1500);
	assert_int_equal(time_in(r, A, THREAD_RUNNABLE), 100);
	assert_int_equal(time_in(r, A, THREAD_UNKNOWN), 300);
	assert_int_equal(time_in(r, A, THREAD_RUNNING), 100);
	assert_int_equal(time_in_all(r, A), 500);
	done(r);
}

// For a reader it waits for a CPU since it was seen to have lost one: it cannot be woken.
static void who_waits_in_the_trace_is_not_woken_there(void **state)
{
	struct run *r = begin(0);

	there(r, A, 0, EVENT_RUNNING);
	switched(r, 1100, 0, A, 0, 1, 0);
	woken(r, 1150, A, 7, EVENT_OFF_QUEUE);
	switched(r, 1200, 0, 0, A, 0, 0);
	switched(r, 1300, 0, B, 0, 1, 0); // A's leaving was lost
	woken(r, 1400, A, 7, EVENT_OFF_QUEUE);
	switched(r, 1450, 0, 0, A, 0, 0);
	switched(r, 1500, 0, A, 0, 1, 0);
	woken(r, 1600, A, 7, EVENT_OFF_QUEUE);
	end(r, 1700);
	assert_int_equal(time_in(r, A, THREAD_UNKNOWN), 100 + 100);
	assert_int_equal(time_in(r, A, THREAD_RUNNABLE), 50 + 50 + 100);
	assert_int_equal(ftrace_events(r, FTRACE_WAKING, 0, 0), 2);
	done(r);
}

static void nobody_is_on_two_cpus_of_the_trace(void **state)
{
	struct run *r = begin(0);

	there(r, A, 0, EVENT_RUNNING);
	switched(r, 1100, 1, 0, A, 0, 0); // its leaving of CPU 0 was lost
	switched(r, 1200, 0, 0, B, 0, 0);
	end(r, 1300);
	done(r); // which looks at it
}

static void threads_come_and_go_and_numbers_come_again(void **state)
{
	struct run *r = begin(0);

	for (unsigned i = 0; i < 3; i++) {
		uint64_t time = 1100 + i * 300;

		add(r, (struct event){ .type = EVENT_NEW, .time = time, .tid = B, .tgid = A, .other_tid = A, .comm = "child" });
		switched(r, time + 50, 1, 0, B, 0, 0);
		switched(r, time + 150, 1, B, 0, 0x80, 0);
	}
	end(r, 3000);
	assert_int_equal(thread_table_count(r->t->threads), 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct thread *th = thread_table_get(r->t->threads, i);

		assert_int_equal(th->state, THREAD_DEAD);
		assert_int_equal(th->time[THREAD_RUNNABLE], 50);
		assert_int_equal(th->time[THREAD_RUNNING], 100);
		assert_int_equal(th->surprises, 0);
	}
	done(r);
}

static void exec_of_another_thread_takes_the_first_ones_number(void **state)
{
	struct run *r = begin(0);

	there(r, A, 1, 0);
	there(r, B, 0, EVENT_RUNNING);
	add(r, (struct event){ .type = EVENT_EXEC, .time = 1500, .tid = A, .tgid = A, .other_tid = B, .comm = "new" });
	switched(r, 1600, 0, A, 0, 1, 0);
	end(r, 2000);
	assert_string_equal(thread_table_find(r->t->threads, A)->comm, "new");
	assert_int_equal(time_in(r, A, THREAD_RUNNING), 600);
	assert_int_equal(time_in(r, A, THREAD_SLEEPING), 400);
	assert_null(thread_table_find(r->t->threads, B));
	done(r);
}

static void numbers_that_are_given_up_are_dead_in_the_trace(void **state)
{
	struct run *r = begin(0);

	there(r, A, 1, 0);
	there(r, B, 0, EVENT_RUNNING);
	add(r, (struct event){ .type = EVENT_EXEC, .time = 1500, .tid = A, .tgid = A, .other_tid = B, .comm = "new" });
	add(r, (struct event){ .type = EVENT_NEW, .time = 1600, .tid = A, .tgid = A, .other_tid = 7, .comm = "child" });
	end(r, 2000);
	assert_int_equal(ftrace_events(r, FTRACE_SWITCH, SWITCH_PREV_STATE, TRACE_DEAD), 2);
	done(r);
}

static void io_of_before_the_start_ends(void **state)
{
	struct run *r = begin(0);

	add(r, (struct event){ .type = EVENT_SUBMIT, .time = 900, .tid = A, .tgid = A, .id = 1, .device = 5, .op = 1 });
	add(r, (struct event){ .type = EVENT_END, .time = 1500, .id = 1, .submit = 900, .issue = 950 });
	end(r, 2000);
	assert_int_equal(r->t->stats.ops, 1);
	assert_int_equal(disks_at(r->t->disks, 0)->open, 0);
	assert_int_equal(disks_at(r->t->disks, 0)->time[1], 500); // of the recording
	done(r);
}

static void io_without_a_lane_is_counted_and_said(void **state)
{
	struct run *r = begin(0);
	struct timeline_stats stats;

	for (unsigned i = 0; i < DISK_LANES + 3; i++)
		add(r, (struct event){ .type = EVENT_SUBMIT, .time = 1100, .tid = A, .tgid = A, .id = i, .device = 5 });
	end(r, 2000);
	timeline_get_stats(r->t, &stats);
	assert_int_equal(stats.refused, 3);
	assert_int_equal(events_of_type(r, TRACE_BEGIN), DISK_LANES);
	assert_int_equal(events_of_type(r, TRACE_END), DISK_LANES);
	assert_int_equal(events_of_type(r, TRACE_INSTANT), DISK_LANES + 1);
	done(r);
}

static void io_in_flight_at_once_has_lanes_of_its_own(void **state)
{
	enum { N = 32 };
	struct run *r = begin(0);

	add(r, (struct event){ .type = EVENT_DEVICE, .device = 5, .text = "vda", .text_len = 3 });
	for (unsigned round = 0; round < 3; round++) {
		uint64_t time = 2000 + round * 10000;

		for (unsigned i = 0; i < N; i++)
			add(r, (struct event){ .type = EVENT_SUBMIT, .time = time + i, .tid = A, .tgid = A, .id = i, .device = 5,
					       .size = 4096, .op = 1 });
		for (unsigned i = 0; i < N; i++) // in another order
			add(r, (struct event){ .type = EVENT_END, .time = time + 1000 + i, .id = (i * 7) % N,
					       .submit = time + (i * 7) % N, .issue = time + 500 });
	}
	add(r, (struct event){ .type = EVENT_SUBMIT, .time = 50000, .tid = A, .tgid = A, .id = 1, .device = 5 });
	add(r, (struct event){ .type = EVENT_SUBMIT, .time = 51000, .tid = A, .tgid = A, .id = 1, .device = 5 });
	end(r, 60000);
	assert_int_equal(r->t->stats.ops, 3 * N);
	assert_int_equal(disks_at(r->t->disks, 0)->most, N);
	assert_int_equal(disks_at(r->t->disks, 0)->ops[1], 3 * N);
	assert_int_equal(disks_at(r->t->disks, 0)->unseen, 1);
	assert_int_equal(disks_at(r->t->disks, 0)->open, 1);
	assert_string_equal(disks_at(r->t->disks, 0)->name, "vda");
	assert_int_equal(events_of_type(r, TRACE_BEGIN), 3 * N + 2);
	assert_int_equal(events_of_type(r, TRACE_END), 3 * N + 2);
	// a thread, a process, the disk, its counter and N lanes
	assert_int_equal(packets_with(r, PACKET_TRACK_DESCRIPTOR), 4 + N);
	done(r);
}

static void requests_wait_for_what_their_thread_did(void **state)
{
	struct run *r = begin(0);

	there(r, A, 1, 0);
	// Four at once, a fifth behind them; told before the thread's events have been taken in
	for (unsigned i = 0; i < 5; i++)
		add(r, (struct event){ .type = EVENT_REQUEST, .time = 5000 + i + (i > 3 ? 900 : 0), .submit = i > 3 ? 5010 : 4000 + i,
				       .tid = A, .tgid = A, .state = 200, .text = "GET /x", .text_len = 6 });
	add(r, (struct event){ .type = EVENT_REQUEST, .time = 6000, .submit = 5500, .tid = 77, .tgid = A, .text = "" });
	switched(r, 4500, 0, 0, A, 0, 0);
	end(r, 9000);
	assert_int_equal(r->t->stats.requests, 5);
	assert_int_equal(r->t->stats.lost[LOST_REQUEST], 1); // of a thread that nobody knows
	assert_int_equal(thread_table_find(r->t->threads, A)->requests, 5);
	assert_int_equal(thread_table_find(r->t->threads, A)->request_time, 4 * 1000 + 894);
	// a process, a thread and its name, four lanes, what is missing
	assert_int_equal(packets_with(r, PACKET_TRACK_DESCRIPTOR), 8);
	done(r);
}

static void a_long_request_keeps_the_begin_of_its_name(void **state)
{
	static char name[EVENT_TEXT_MAX];
	struct run *r = begin(0);

	memset(name, 'x', sizeof(name));
	there(r, A, 1, 0);
	add(r, (struct event){ .type = EVENT_REQUEST, .time = 1500, .submit = 1200, .tid = A, .tgid = A, .text = name,
			       .text_len = sizeof(name) });
	end(r, 2000);
	assert_int_equal(r->t->stats.requests, 1);
	assert_true(r->out.len < 2000);
	done(r);
}

static void a_full_trace_ends_whole_and_the_summary_goes_on(void **state)
{
	const uint64_t max = 1 << 20;
	struct run *r = begin(max);
	struct timeline_stats stats;
	struct buf text = { 0 };
	uint64_t time = 2000;

	there(r, A, 1, 0);
	for (unsigned i = 0; i < 50000; i++, time += 100) {
		woken(r, time, A, 7, EVENT_OFF_QUEUE);
		switched(r, time + 10, 0, 7, A, 0, 0);
		switched(r, time + 30, 0, A, 7, 1, 0);
	}
	end(r, time);
	timeline_get_stats(r->t, &stats);
	assert_true(r->out.len <= max && r->out.len > max / 2);
	assert_int_equal(stats.size, r->out.len);
	assert_true(stats.left_out > 0);
	assert_int_equal(time_in(r, A, THREAD_RUNNING), 50000 * 20);
	assert_int_equal(events_of_type(r, TRACE_BEGIN), events_of_type(r, TRACE_END));
	assert_int_equal(events_of_type(r, TRACE_INSTANT), 1); // says so
	timeline_summary(r->t, 0, &text);
	buf_byte(&text, 0);
	assert_non_null(strstr((char *)text.data, "left out of the trace"));
	buf_free(&text);
	done(r);
}

static void losses_are_said_in_the_trace(void **state)
{
	struct run *r = begin(0);
	struct timeline_stats stats;

	add(r, (struct event){ .type = EVENT_LOST, .time = 1500, .op = LOST_SWITCH, .id = 17 });
	end(r, 2000);
	timeline_get_stats(r->t, &stats);
	assert_int_equal(stats.lost[LOST_SWITCH], 17);
	assert_int_equal(events_of_type(r, TRACE_INSTANT), 1);
	done(r);
}

static void what_is_missing_here_is_said_in_the_trace(void **state)
{
	struct run *r = begin(0);
	struct timeline_stats stats;

	add(r, (struct event){ .type = EVENT_SWITCH, .time = 1000000000 });
	add(r, (struct event){ .type = EVENT_SWITCH, .time = 3000000000 });
	add(r, (struct event){ .type = EVENT_SWITCH, .time = 500000000 }); // the first was taken
	add(r, (struct event){ .type = EVENT_REQUEST, .time = 2000000000, .submit = 1500000000, .tid = 77, .text = "" });
	end(r, 4000000000);
	timeline_get_stats(r->t, &stats);
	assert_int_equal(stats.late, 1);
	assert_int_equal(stats.lost[LOST_REQUEST], 1);
	assert_int_equal(events_of_type(r, TRACE_INSTANT), 2);
	done(r);
}

static void cpus_beyond_the_limit_are_refused(void **state)
{
	struct run *r = begin(0);
	struct event e = { .type = EVENT_SWITCH, .time = 1100, .cpu = EVENT_CPUS };
	struct error error;

	assert_int_equal(timeline_add(r->t, &e, &error), -EINVAL);
	done(r);
}

static void an_impossible_order_is_refused(void **state)
{
	struct timeline_options o = { 0 };
	struct timeline *t = timeline_new(&o);
	struct event e = { .type = EVENT_SWITCH }, start = { .type = EVENT_START, .text = "" };

	assert_int_equal(timeline_add(t, &e, NULL), -EINVAL);
	assert_int_equal(timeline_add(t, &start, NULL), 0);
	assert_int_equal(timeline_add(t, &start, NULL), -EINVAL);
	assert_int_equal(timeline_end(t, NULL), 0);
	assert_int_equal(timeline_add(t, &e, NULL), -EINVAL);
	timeline_free(t);
}

static int full_disk(void *context, const void *data, size_t len)
{
	return -ENOSPC;
}

static void a_sink_that_fails_ends_it(void **state)
{
	struct timeline_options o = { .sink = full_disk };
	struct timeline *t = timeline_new(&o);
	struct event start = { .type = EVENT_START, .text = "" };
	struct error error;

	assert_int_equal(timeline_add(t, &start, &error), 0);
	assert_int_equal(timeline_end(t, &error), -ENOSPC);
	assert_non_null(strstr(error.text, "No space"));
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_is_in_one_state_at_a_time),
		cmocka_unit_test(idle_kernel_threads_sleep),
		cmocka_unit_test(a_waking_before_its_switch_ends_the_sleep),
		cmocka_unit_test(who_waits_in_the_trace_is_not_woken_there),
		cmocka_unit_test(lost_events_make_time_unknown),
		cmocka_unit_test(nobody_is_on_two_cpus_of_the_trace),
		cmocka_unit_test(threads_come_and_go_and_numbers_come_again),
		cmocka_unit_test(exec_of_another_thread_takes_the_first_ones_number),
		cmocka_unit_test(numbers_that_are_given_up_are_dead_in_the_trace),
		cmocka_unit_test(io_of_before_the_start_ends),
		cmocka_unit_test(io_without_a_lane_is_counted_and_said),
		cmocka_unit_test(io_in_flight_at_once_has_lanes_of_its_own),
		cmocka_unit_test(requests_wait_for_what_their_thread_did),
		cmocka_unit_test(a_long_request_keeps_the_begin_of_its_name),
		cmocka_unit_test(a_full_trace_ends_whole_and_the_summary_goes_on),
		cmocka_unit_test(losses_are_said_in_the_trace),
		cmocka_unit_test(what_is_missing_here_is_said_in_the_trace),
		cmocka_unit_test(cpus_beyond_the_limit_are_refused),
		cmocka_unit_test(an_impossible_order_is_refused),
		cmocka_unit_test(a_sink_that_fails_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
