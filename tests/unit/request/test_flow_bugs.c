// SPDX-License-Identifier: Apache-2.0
// What other tracers got wrong, one test each, and what hostile or unlucky traffic does.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/request/traffic.h"

// Requests that vanish after a minute because a return was missed: what is lost is counted, and the next one is whole.
static void lost_events_harm_one_request(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	t->sequence[1]++; // its answer was lost
	asks_next(t, 1, 2);
	reads(t, 1, 3, GET);
	runs(t, 3, 2 * MS);
	writes(t, 1, 3, OK);
	asks_next(t, 1, 3);
	closes(t, 1, 3);
	assert_int_equal(flow_count(t->flow, FLOW_EVENTS_LOST), 1);
	assert_int_equal(flow_count(t->flow, FLOW_REQUESTS), 2);
	assert_true(t->got[0].incomplete);
	assert_int_equal(flow_connections(t->flow), 0);
	traffic_free(t);
}

// An executor answers: 16% of another tracer's requests took the times of somebody else's.
static void hand_over_takes_nobodys_times(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	runs(t, 2, 1 * MS);
	reads(t, 2, 2, GET); // the reader goes on with another connection
	runs(t, 3, 40 * MS); // the executor works for the first
	writes(t, 1, 3, OK);
	asks_next(t, 1, 3);
	assert_int_equal(t->n, 1);
	assert_true(t->got[0].attribution != ATTRIBUTION_EXACT);
	assert_true(t->got[0].incomplete);
	assert_int_equal(t->got[0].times.state[METRIC_ONCPU], VALUE_MISSING);
	assert_int_equal(value(&t->got[0], METRIC_ONCPU), 0);
	assert_int_equal(value(&t->got[0], METRIC_DURATION), 41 * MS);
	assert_int_equal(t->attributed, 0);
	traffic_free(t);
}

static void plain_hand_over(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	runs(t, 3, 40 * MS);
	writes(t, 1, 3, OK);
	asks_next(t, 1, 3);
	assert_int_equal(t->got[0].attribution, ATTRIBUTION_HANDLER_THREAD);
	assert_int_equal(t->got[0].tid, 3);
	assert_int_equal(flow_count(t->flow, FLOW_HANDED_OVER), 1);
	assert_int_equal(t->got[0].times.state[METRIC_TOTAL_IO_DURATION], VALUE_MISSING);
	traffic_free(t);
}

// One thread, many connections: an event loop.
static void event_loops_are_said_to_be_shared(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	reads(t, 2, 2, GET);
	runs(t, 2, 5 * MS);
	writes(t, 1, 2, OK);
	writes(t, 2, 2, OK);
	asks_next(t, 1, 2);
	asks_next(t, 2, 2);
	assert_int_equal(t->n, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(t->got[i].attribution, ATTRIBUTION_SHARED_THREAD);
		assert_int_equal(t->got[i].times.state[METRIC_ONCPU], VALUE_MISSING);
	}
	traffic_free(t);
}

static void http2_is_counted_and_let_be(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	writes(t, 1, 2, "\x01\x02\x03");
	reads(t, 1, 2, GET);
	reads(t, 2, 2, "GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n");
	writes(t, 2, 2, "HTTP/1.1 101 Switching Protocols\r\n\r\n");
	reads(t, 2, 2, GET);
	assert_int_equal(t->n, 1);
	assert_int_equal(t->got[0].status, 101);
	assert_int_equal(flow_count(t->flow, FLOW_H2), 2);
	assert_int_equal(t->ignored, 2);
	reads(t, 3, 2, "GET /chat HTTP/1.1\r\nUpgrade: websocket\r\n\r\n");
	writes(t, 3, 2, "HTTP/1.1 101 Switching Protocols\r\n\r\n");
	assert_int_equal(flow_count(t->flow, FLOW_H2), 2);
	assert_int_equal(flow_count(t->flow, FLOW_NOT_HTTP), 1);
	assert_int_equal(t->ignored, 3);
	traffic_free(t);
}

// Connections from before: an answer without its request is nobody's, and what follows is seen.
static void connections_older_than_we_are(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	reads(t, 1, 2, GET);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(flow_count(t->flow, FLOW_ANSWERS_UNMATCHED), 1);
	assert_int_equal(t->n, 1);
	assert_false(t->got[0].incomplete);
	traffic_free(t);
}

// Another tracer made up status 499 here.
static void no_status_is_made_up(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	runs(t, 2, 1 * MS);
	closes(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_int_equal(t->got[0].status, 0);
	assert_true(t->got[0].incomplete);
	assert_string_equal(t->got[0].missing, "answer");
	assert_int_equal(t->got[0].ended, END_CLOSED);
	traffic_free(t);
}

static void idle_connections_that_close_are_no_request(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	reads(t, 2, 3, GET); // in flight
	closes(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_int_equal(flow_open(t->flow), 1);
	traffic_free(t);
}

// A thread that was left behind by a stuck connection: bounded by age, and its next request is not the stuck one's.
static void stale_requests_are_bounded(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	flow_sweep(t->flow, t->now + 3601ull * 1000 * MS);
	assert_int_equal(t->n, 1);
	assert_true(t->got[0].incomplete);
	reads(t, 2, 2, GET);
	runs(t, 2, 1 * MS);
	writes(t, 2, 2, OK);
	asks_next(t, 2, 2);
	assert_int_equal(t->got[1].attribution, ATTRIBUTION_EXACT);
	assert_int_equal(value(&t->got[1], METRIC_ONCPU), 1 * MS);
	traffic_free(t);
}

static void silent_answers_are_over_after_a_minute(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	writes(t, 1, 2, OK);
	flow_sweep(t->flow, t->now + 30ull * 1000 * MS);
	assert_int_equal(t->n, 0);
	flow_sweep(t->flow, t->now + 61ull * 1000 * MS);
	assert_int_equal(t->n, 1);
	assert_int_equal(t->got[0].ended, END_IDLE);
	assert_false(t->got[0].incomplete);
	traffic_free(t);
}

// More than 120 KB in a call, of which the beginning is kept.
static void large_calls(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);
	char head[200];

	snprintf(head, sizeof(head), "POST /big HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
	reads_cut(t, 1, 2, head, (int64_t)strlen(head) + 500000);
	reads_cut(t, 1, 2, "x", 500000);
	runs(t, 2, 1 * MS);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	reads(t, 1, 2, GET);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 2);
	assert_int_equal(value(&t->got[0], METRIC_REQ_BYTES), strlen(head) + 1000000);
	assert_false(t->got[0].incomplete);
	assert_string_equal(t->got[1].core, "books");
	traffic_free(t);
}

static void heads_longer_than_what_is_kept(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads_cut(t, 1, 2, "GET /long HTTP/1.1\r\nCookie: aaaa", 8192);
	reads_cut(t, 1, 2, "aaaa", 8192);
	writes(t, 1, 2, "HTTP/1.1 431 Too large\r\n\r\n");
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_string_equal(t->got[0].path, "/long");
	assert_int_equal(t->got[0].status, 431);
	assert_string_equal(t->got[0].missing, "headers");
	reads(t, 1, 2, GET);
	writes(t, 1, 2, OK);
	closes(t, 1, 2);
	assert_int_equal(t->n, 2);
	assert_false(t->got[1].incomplete);
	traffic_free(t);
}

static void answered_before_the_head_was_whole(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "GET /slow HTTP/1.1\r\nX: ");
	writes(t, 1, 2, "HTTP/1.1 408 Request Timeout\r\n\r\n");
	closes(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_int_equal(t->got[0].status, 408);
	assert_string_equal(t->got[0].path, "/slow");
	assert_true(t->got[0].incomplete);
	traffic_free(t);
}

// The same descriptor, another socket: nothing of the old one is left.
static void descriptors_are_used_again(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "POST /a HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf of it");
	closes(t, 1, 2);
	reads(t, 9, 2, GET);
	writes(t, 9, 2, OK);
	asks_next(t, 9, 2);
	assert_int_equal(t->n, 2);
	assert_string_equal(t->got[1].core, "books");
	assert_int_equal(t->got[1].number, 1);
	traffic_free(t);
}

static void tables_are_bounded_and_say_so(void **state)
{
	struct traffic *t = traffic_new(8, 4, 0);

	for (unsigned i = 1; i <= 20; i++)
		reads(t, i, i % TIDS, GET);
	assert_int_equal(flow_connections(t->flow), 8);
	assert_true(flow_open(t->flow) <= 4);
	assert_int_equal(flow_count(t->flow, FLOW_CONNECTIONS_EVICTED), 12);
	assert_true(flow_count(t->flow, FLOW_REQUESTS_EVICTED) > 0);
	traffic_free(t);
}

// Slowloris: heads that never become whole.
static void unfinished_heads_are_bounded(void **state)
{
	struct traffic *t = traffic_new(0, 0, 4096);
	char head[1000];

	memset(head, 'a', sizeof(head));
	memcpy(head, "GET /", 5);
	head[999] = 0;
	for (unsigned i = 1; i <= 30; i++)
		reads(t, i, 2, head);
	assert_int_equal(flow_count(t->flow, FLOW_HEADS_DROPPED), 26);
	assert_int_equal(flow_open(t->flow), 0);
	traffic_free(t);
}

// The same, byte by byte, in many short lines: each byte must not cost a look at all before it.
static void heads_in_single_bytes(void **state)
{
	static const char line[] = "GET /drip HTTP/1.1\r\n", end[] = "X-Trace-Id: 7\n\r\n";
	struct traffic *t = traffic_new(0, 0, 0);

	for (unsigned i = 0; line[i]; i++)
		reads(t, 1, 2, (char[]){ line[i], 0 });
	for (unsigned i = 0; i < 60000; i++)
		reads(t, 1, 2, (char[]){ "a:b\n"[i % 4], 0 });
	assert_int_equal(flow_open(t->flow), 0);
	for (unsigned i = 0; end[i]; i++)
		reads(t, 1, 2, (char[]){ end[i], 0 });
	assert_int_equal(flow_open(t->flow), 1);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_string_equal(t->got[0].path, "/drip");
	assert_string_equal(t->got[0].trace_id, "7");
	assert_int_equal(value(&t->got[0], METRIC_REQ_BYTES), sizeof(line) - 1 + 60000 + sizeof(end) - 1);
	assert_int_equal(flow_count(t->flow, FLOW_HEADS_DROPPED), 0);
	traffic_free(t);
}

static void pipelines_are_bounded(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);
	char many[4000] = "";

	for (unsigned i = 0; i < 190; i++)
		strcat(many, "GET / HTTP/1.1\r\n\r\n");
	reads(t, 1, 2, many);
	assert_int_equal(flow_open(t->flow), 64);
	assert_int_equal(flow_count(t->flow, FLOW_REQUESTS_EVICTED), 126);
	traffic_free(t);
}

static void other_protocols(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "\x16\x03\x01\x02");
	reads(t, 2, 2, "GETTING along without HTTP\r\n");
	reads(t, 2, 2, "\x01\x02\x03\x04");
	reads(t, 3, 2, "GET / SPDY/3.1\r\n\r\n");
	assert_int_equal(flow_count(t->flow, FLOW_TLS), 1);
	assert_int_equal(flow_count(t->flow, FLOW_NOT_HTTP), 2);
	assert_int_equal(t->n, 0);
	reads(t, 2, 2, GET); // and now it does
	writes(t, 2, 2, OK);
	asks_next(t, 2, 2);
	assert_int_equal(t->n, 1);
	traffic_free(t);
}

static void damaged_events(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);
	struct req_event e = { .type = REQ_READ, .payload_size = 100, .result = 100, .connection = 1, .sequence = 1 };

	assert_int_equal(flow_event(t->flow, &e, 3), -EINVAL);
	assert_int_equal(flow_event(t->flow, &e, sizeof(e)), -EINVAL);
	e.payload_size = 0;
	e.type = 99;
	assert_int_equal(flow_event(t->flow, &e, sizeof(e)), -EINVAL);
	e.type = REQ_WRITE;
	assert_int_equal(flow_event(t->flow, &e, offsetof(struct req_event, sums)), -EINVAL);
	assert_int_equal(flow_count(t->flow, FLOW_BAD_EVENTS), 4);
	traffic_free(t);
}

static void a_process_that_ends(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	reads(t, 2, 3, GET);
	writes(t, 2, 3, OK);
	flow_end(t->flow, 8, t->now);
	assert_int_equal(t->n, 0);
	flow_end(t->flow, 7, t->now);
	assert_int_equal(t->n, 2);
	assert_int_equal(flow_connections(t->flow), 0);
	traffic_free(t);
}

// A client that reads slowly when the recording ends: its request is not over.
static void an_answer_that_goes_on_at_the_end(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	writes(t, 1, 2, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhi");
	reads(t, 2, 3, GET);
	writes(t, 2, 3, OK);
	reads(t, 3, 4, GET);
	writes(t, 3, 4, "HTTP/1.1 200 OK\r\n\r\nuntil it is closed");
	t->now += 5000 * MS;
	flow_end(t->flow, 0, t->now);
	assert_int_equal(t->n, 3);
	for (unsigned i = 0; i < 3; i++) {
		bool whole = t->got[i].connection == 2;

		assert_int_equal(t->got[i].incomplete, !whole);
		assert_int_equal(t->got[i].ended, END_STOPPED);
		assert_string_equal(t->got[i].missing, whole ? "" : "answer_end");
		assert_int_equal(value(&t->got[i], METRIC_DURATION), whole ? 0 : 5000 * MS);
	}
	traffic_free(t);
}

// A thread's number that was used again: sums that became smaller are another thread's.
static void thread_numbers_are_used_again(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	t->sums[2].oncpu = 5000 * MS;
	reads(t, 1, 2, GET);
	t->sums[2].oncpu = 1;
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->got[0].times.state[METRIC_ONCPU], VALUE_MISSING);
	traffic_free(t);
}

// A request of more than a quarter of an hour: the kernel side has forgotten the connection, and counts from 1 again.
static void connections_that_the_kernel_forgot(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	reads(t, 1, 2, GET);
	runs(t, 2, 1200000 * MS);
	t->sequence[1] = 0;
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	reads(t, 1, 2, GET);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_false(t->got[i].incomplete);
	assert_int_equal(value(&t->got[1], METRIC_ONCPU), 1200000 * MS);
	assert_int_equal(flow_count(t->flow, FLOW_EVENTS_LOST), 0);
	traffic_free(t);
}

// A body that comes in pieces, while the documents in it are written: the longest I/O is that of one of the pieces.
static void the_longest_io_is_of_any_piece(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	t->sums[2].disk_max_ns = 90 * MS; // of before
	reads(t, 1, 2, "POST /solr/books/update HTTP/1.1\r\nContent-Length: 8\r\n\r\nabcd");
	t->sums[2].disk_max_ns = 5 * MS;
	t->sums[2].disk_max_dev = 8 << 20;
	reads(t, 1, 2, "efgh");
	t->sums[2].disk_max_ns = 7 * MS;
	reads_nothing(t, 1, 2);
	t->sums[2].disk_max_ns = 0;
	writes(t, 1, 2, OK);
	t->sums[2].disk_max_ns = 9 * MS;
	cannot_write(t, 1, 2);
	t->sums[2].disk_max_ns = 0;
	writes(t, 1, 2, "more");
	t->sums[2].disk_max_ns = 80 * MS; // of after
	reads_nothing(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_int_equal(value(&t->got[0], METRIC_DISK_MAX), 9 * MS);
	assert_int_equal(t->got[0].device_number, 8 << 20);
	traffic_free(t);
}

// Two threads at once on one connection.
static void events_in_another_order(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	t->sequence[1] = 2;
	writes(t, 1, 2, OK); // the third
	t->sequence[1] = 1;
	writes(t, 1, 3, "more"); // the second
	t->sequence[1] = 2;
	writes(t, 1, 2, "more"); // with a number that was there
	asks_next(t, 1, 2);
	closes(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_int_equal(flow_count(t->flow, FLOW_EVENTS_LOST), 1);
	assert_int_equal(value(&t->got[0], METRIC_DROPPED), 1);
	traffic_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_events_harm_one_request), cmocka_unit_test(hand_over_takes_nobodys_times),
		cmocka_unit_test(plain_hand_over),		cmocka_unit_test(event_loops_are_said_to_be_shared),
		cmocka_unit_test(http2_is_counted_and_let_be),	cmocka_unit_test(connections_older_than_we_are),
		cmocka_unit_test(no_status_is_made_up),		cmocka_unit_test(idle_connections_that_close_are_no_request),
		cmocka_unit_test(stale_requests_are_bounded),	cmocka_unit_test(silent_answers_are_over_after_a_minute),
		cmocka_unit_test(large_calls),			cmocka_unit_test(heads_longer_than_what_is_kept),
		cmocka_unit_test(answered_before_the_head_was_whole), cmocka_unit_test(descriptors_are_used_again),
		cmocka_unit_test(tables_are_bounded_and_say_so), cmocka_unit_test(unfinished_heads_are_bounded),
		cmocka_unit_test(heads_in_single_bytes),
		cmocka_unit_test(pipelines_are_bounded),	cmocka_unit_test(other_protocols),
		cmocka_unit_test(damaged_events),		cmocka_unit_test(a_process_that_ends),
		cmocka_unit_test(thread_numbers_are_used_again), cmocka_unit_test(an_answer_that_goes_on_at_the_end), cmocka_unit_test(connections_that_the_kernel_forgot),
		cmocka_unit_test(events_in_another_order), cmocka_unit_test(the_longest_io_is_of_any_piece),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
