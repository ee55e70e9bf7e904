// SPDX-License-Identifier: Apache-2.0
// The stored form of events, and their order.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "timeline/event.h"
#include "timeline/order.h"

static char text[EVENT_TEXT_MAX + 1];

static struct event full(unsigned type)
{
	struct event e = { .type = (uint8_t)type };

	e.time = 1ull << 60;
	e.id = UINT64_MAX;
	e.sector = 1;
	e.submit = 300;
	e.issue = 0;
	e.stack = 0x8000000000000000ull;
	e.boottime = 5;
	e.realtime = 1800000000000000000ull;
	e.tid = EVENT_TID_MAX;
	e.tgid = 7;
	e.other_tid = 128;
	e.other_tgid = 0;
	e.flags = 0x80000001;
	e.state = 0x402;
	e.syscall = 202;
	e.size = UINT32_MAX;
	e.device = 254 << 20;
	e.cpu = EVENT_CPUS - 1;
	e.op = 5;
	strcpy(e.comm, "fifteen letters");
	e.text = "a\nb";
	e.text_len = 3;
	return e;
}

static void each_type_comes_back(void **state)
{
	for (unsigned type = 1; type < EVENT_TYPES; type++) {
		struct event e = full(type), got;
		struct buf first = { 0 }, second = { 0 };
		struct error error;

		event_encode(&first, &e);
		assert_int_equal(event_decode(first.data, first.len, &got, text, &error), first.len);
		assert_int_equal(got.type, type);
		event_encode(&second, &got);
		assert_int_equal(first.len, second.len);
		assert_memory_equal(first.data, second.data, first.len);
		for (size_t cut = 0; cut < first.len; cut++)
			assert_int_equal(event_decode(first.data, cut, &got, text, &error), 0);
		buf_free(&first);
		buf_free(&second);
	}
}

static void switches_keep_everything(void **state)
{
	struct event e = full(EVENT_SWITCH), got;
	struct buf b = { 0 };

	event_encode(&b, &e);
	assert_int_equal(event_decode(b.data, b.len, &got, text, NULL), b.len);
	assert_true(got.time == e.time && got.tid == e.tid && got.tgid == e.tgid && got.other_tid == e.other_tid);
	assert_true(got.flags == e.flags && got.state == e.state && got.syscall == e.syscall && got.stack == e.stack);
	assert_string_equal(got.comm, e.comm);
	buf_free(&b);
}

static void what_is_malformed_is_refused(void **state)
{
	static const uint8_t too_long[] = { EVENT_STOP, 0xff, 0xff, 0xff, 0x7f }, no_field[] = { EVENT_STOP, 0 },
			     overflow[] = { EVENT_DEVICE, 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0 },
			     cut[] = { EVENT_DEVICE, 3, 1, 2, 7 },
			     comm[] = { EVENT_RENAME, 6, 1, 0, 1, 1, 9, 'x' }, cpu[] = { EVENT_RENAME, 6, 1, 0xff, 0x7f, 1, 1, 0 };
	struct event e;
	struct error error;

	assert_int_equal(event_decode(too_long, sizeof(too_long), &e, text, &error), -EINVAL);
	assert_int_equal(event_decode(no_field, sizeof(no_field), &e, text, &error), -EINVAL);
	assert_int_equal(event_decode(overflow, sizeof(overflow), &e, text, &error), -EINVAL);
	assert_int_equal(event_decode(cut, sizeof(cut), &e, text, &error), -EINVAL);
	assert_int_equal(event_decode(comm, sizeof(comm), &e, text, &error), -EINVAL);
	assert_int_equal(event_decode(cpu, sizeof(cpu), &e, text, &error), -EINVAL);
}

static void what_is_unknown_is_skipped(void **state)
{
	static const uint8_t type[] = { 200, 2, 1, 2 }, field[] = { EVENT_STOP, 2, 7, 99 },
			     before_text[] = { EVENT_DEVICE, 7, 1, 2, 0x85, 1, 7, 'v', 'd' };
	struct event e;

	assert_int_equal(event_decode(type, sizeof(type), &e, text, NULL), sizeof(type));
	assert_int_equal(e.type, 0);
	assert_int_equal(event_decode(field, sizeof(field), &e, text, NULL), sizeof(field));
	assert_int_equal(e.time, 7);
	assert_int_equal(event_decode(before_text, sizeof(before_text), &e, text, NULL), sizeof(before_text));
	assert_string_equal(e.text, "vd");
}

static void a_file_says_what_it_is(void **state)
{
	struct buf b = { 0 };
	size_t used;
	struct error error;

	event_file_begin(&b);
	assert_int_equal(event_file_check(b.data, b.len, &used, &error), 0);
	assert_int_equal(used, b.len);
	assert_int_equal(event_file_check(b.data, b.len - 1, &used, &error), -EINVAL);
	b.data[8]++;
	assert_int_equal(event_file_check(b.data, b.len, &used, &error), -EINVAL);
	buf_free(&b);
}

static void order_sorts_within_its_window(void **state)
{
	static const uint64_t times[] = { 50, 10, 30, 30, 90, 20, 120, 110, 200 };
	struct order *o = order_new(100, 1000);
	struct event e = { .type = EVENT_SWITCH }, got;
	uint64_t last = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < sizeof(times) / sizeof(*times); i++) {
		e.time = times[i];
		e.id = i;
		assert_int_equal(order_add(o, &e), 0);
		while (order_take(o, false, &got)) {
			assert_true(got.time >= last);
			last = got.time;
			n++;
		}
	}
	assert_true(n > 0 && n < 9);
	assert_int_equal(last, 90);
	while (order_take(o, true, &got)) {
		assert_true(got.time >= last);
		last = got.time;
		n++;
	}
	assert_int_equal(n, 9);
	assert_int_equal(order_late(o), 0);
	e.time = 60;
	order_add(o, &e);
	assert_true(order_take(o, true, &got));
	assert_int_equal(got.time, last); // time does not go back
	assert_int_equal(order_late(o), 1);
	order_free(o);
}

static void order_waits_for_the_ring_behind_a_loss(void **state)
{
	struct order *o = order_new(100, 1000);
	struct event lost = { .type = EVENT_LOST, .time = 5000 }, e = { .type = EVENT_SWITCH }, got;

	for (e.time = 1000; e.time < 1100; e.time += 20)
		order_add(o, &e);
	order_add(o, &lost);
	assert_false(order_take(o, false, &got)); // earlier ones of other CPUs may come yet
	e.time = 990;
	order_add(o, &e);
	e.time = 1095;
	order_add(o, &e);
	assert_true(order_take(o, false, &got) && got.time == 990);
	while (order_take(o, true, &got))
		;
	assert_int_equal(got.type, EVENT_LOST);
	assert_int_equal(order_late(o), 0);
	order_free(o);
}

static void order_holds_no_more_than_it_may(void **state)
{
	struct order *o = order_new(UINT64_MAX, 10);
	struct event e = { .type = EVENT_SWITCH }, got;

	for (unsigned i = 0; i < 1000; i++) {
		e.time = 5000 - i; // the worst order
		order_add(o, &e);
		while (order_take(o, false, &got))
			;
		assert_true(order_held(o) <= 10);
	}
	order_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_comes_back),	      cmocka_unit_test(switches_keep_everything),
		cmocka_unit_test(what_is_malformed_is_refused), cmocka_unit_test(what_is_unknown_is_skipped),
		cmocka_unit_test(a_file_says_what_it_is),      cmocka_unit_test(order_sorts_within_its_window),
		cmocka_unit_test(order_waits_for_the_ring_behind_a_loss), cmocka_unit_test(order_holds_no_more_than_it_may),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
