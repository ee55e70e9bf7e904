// SPDX-License-Identifier: Apache-2.0
// The state machine on what connections do when nothing goes wrong.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unit/request/traffic.h"

static void one_request(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	runs(t, 2, 3 * MS);
	blocks(t, 2, WAIT_DISK, 5 * MS);
	t->sums[2].calls[CALL_PREAD].ops += 2;
	t->sums[2].calls[CALL_PREAD].ns += 5 * MS;
	t->sums[2].calls[CALL_PREAD].bytes += 8192;
	writes(t, 1, 2, OK);
	runs(t, 2, 9 * MS); // writes its log: no part of the answer
	assert_int_equal(t->n, 0);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_string_equal(t->got[0].method, "GET");
	assert_string_equal(t->got[0].path, "/solr/books/select");
	assert_string_equal(t->got[0].core, "books");
	assert_string_equal(t->got[0].handler, "/select");
	assert_string_equal(t->got[0].query, "q=?&rows=10");
	assert_int_equal(t->got[0].status, 200);
	assert_int_equal(t->got[0].attribution, ATTRIBUTION_EXACT);
	assert_false(t->got[0].incomplete);
	assert_int_equal(value(&t->got[0], METRIC_DURATION), 8 * MS);
	assert_int_equal(value(&t->got[0], METRIC_ONCPU), 3 * MS);
	assert_int_equal(value(&t->got[0], METRIC_DISK_WAIT), 5 * MS);
	assert_int_equal(value(&t->got[0], METRIC_TOTAL_IO_DURATION), 5 * MS);
	assert_int_equal(value(&t->got[0], METRIC_READ_BYTES), 8192);
	assert_int_equal(value(&t->got[0], METRIC_REQ_BYTES), strlen(GET));
	assert_int_equal(value(&t->got[0], METRIC_RESP_BYTES), strlen(OK));
	assert_int_equal(t->attributed, 1);
	traffic_free(t);
}

// Java's pools: the next request of a connection runs on any thread.
static void keep_alive_on_other_threads(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	for (unsigned i = 0; i < 5; i++) {
		reads(t, 1, 2 + i, GET);
		runs(t, 2 + i, (i + 1) * MS);
		writes(t, 1, 2 + i, OK);
		asks_next(t, 1, 2 + i);
		reads_nothing(t, 1, 2 + i);
	}
	assert_int_equal(t->n, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(value(&t->got[i], METRIC_ONCPU), (i + 1) * MS);
		assert_int_equal(t->got[i].tid, 2 + i);
		assert_int_equal(t->got[i].number, i + 1);
		assert_int_equal(t->got[i].attribution, ATTRIBUTION_EXACT);
	}
	traffic_free(t);
}

static void line_split_over_packets_and_threads(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "G");
	runs(t, 2, 1 * MS);
	reads(t, 1, 3, "ET /a HT");
	runs(t, 3, 50 * MS);
	reads(t, 1, 2, "TP/1.1\r\n\r\n");
	runs(t, 2, 4 * MS);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_string_equal(t->got[0].path, "/a");
	assert_int_equal(t->got[0].tid, 2);
	assert_int_equal(t->got[0].attribution, ATTRIBUTION_EXACT);
	assert_int_equal(value(&t->got[0], METRIC_ONCPU), 4 * MS);
	assert_int_equal(value(&t->got[0], METRIC_DURATION), 55 * MS);
	assert_int_equal(value(&t->got[0], METRIC_CLIENT_WAIT), 51 * MS);
	assert_int_equal(value(&t->got[0], METRIC_BLOCKED), 51 * MS);
	traffic_free(t);
}

static void pipelined(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n");
	for (unsigned i = 1; i <= 3; i++) {
		runs(t, 2, i * MS);
		writes(t, 1, 2, OK);
	}
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(t->got[i].path[1], '1' + i);
		assert_int_equal(value(&t->got[i], METRIC_DURATION), (i + 1) * MS);
		assert_int_equal(value(&t->got[i], METRIC_ONCPU), (i + 1) * MS);
		assert_int_equal(t->got[i].status, 200);
	}
	assert_int_equal(t->got[2].ended, END_NEXT_READ);
	assert_int_equal(t->got[0].ended, END_NEXT_RESPONSE);
	traffic_free(t);
}

static void body_of_a_slow_client(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "POST /update HTTP/1.1\r\nContent-Length: 20\r\n\r\n0123456789");
	runs(t, 2, 1 * MS);
	reads_nothing(t, 1, 2);
	blocks(t, 2, WAIT_LOCK, 70 * MS); // parks until its selector wakes it
	reads(t, 1, 2, "0123456789");
	blocks(t, 2, WAIT_LOCK, 2 * MS);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_int_equal(value(&t->got[0], METRIC_CLIENT_WAIT), 70 * MS);
	assert_int_equal(value(&t->got[0], METRIC_LOCK_WAIT), 2 * MS);
	assert_int_equal(value(&t->got[0], METRIC_BLOCKED), 72 * MS);
	assert_int_equal(value(&t->got[0], METRIC_REQ_BYTES), strlen("POST /update HTTP/1.1\r\nContent-Length: 20\r\n\r\n") + 20);
	traffic_free(t);
}

// A body that looks like a request is none, and what comes behind it is the next one.
static void bodies_are_skipped(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "POST /1 HTTP/1.1\r\nContent-Length: 19\r\n\r\nGET /no HTTP/1.1\r\n\r");
	reads(t, 1, 2, "GET /2 HTTP/1.1\r\n\r\n");
	writes(t, 1, 2, OK);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 2);
	assert_string_equal(t->got[0].path, "/1");
	assert_string_equal(t->got[1].path, "/2");
	traffic_free(t);
}

static void chunked_both_ways(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "POST /up HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
	reads(t, 1, 2, "0\r\n\r\n");
	runs(t, 2, 1 * MS);
	writes(t, 1, 2, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (unsigned i = 0; i < 10; i++) {
		runs(t, 2, 1 * MS);
		writes(t, 1, 2, "\r\n8000\r\nHTTP/1.1 500 in the text");
	}
	writes(t, 1, 2, "\r\n0\r\n\r\n");
	asks_next(t, 1, 2);
	reads(t, 1, 2, GET);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 2);
	assert_int_equal(t->got[0].status, 200);
	assert_int_equal(value(&t->got[0], METRIC_DURATION), 11 * MS);
	assert_int_equal(value(&t->got[0], METRIC_TTFB), 1 * MS);
	assert_int_equal(t->got[1].number, 2);
	traffic_free(t);
}

static void interim_answers_end_nothing(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "POST /up HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
	writes(t, 1, 2, "HTTP/1.1 100 Continue\r\n\r\n");
	asks_next(t, 1, 2);
	runs(t, 2, 3 * MS);
	reads(t, 1, 2, "hello");
	runs(t, 2, 2 * MS);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_int_equal(t->got[0].status, 200);
	assert_int_equal(value(&t->got[0], METRIC_ONCPU), 5 * MS);
	assert_false(t->got[0].incomplete);
	traffic_free(t);
}

// A body that was never asked for does not come: what follows is a request of its own.
static void refused_before_the_body(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "POST /up HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 50000\r\n\r\n");
	writes(t, 1, 2, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 1);
	reads(t, 1, 2, GET);
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 2);
	assert_int_equal(t->got[0].status, 401);
	assert_int_equal(t->got[1].status, 200);
	assert_string_equal(t->got[1].method, "GET");
	traffic_free(t);
}

static void slow_reader(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	runs(t, 2, 1 * MS);
	writes(t, 1, 2, OK);
	cannot_write(t, 1, 2);
	blocks(t, 2, WAIT_LOCK, 200 * MS);
	writes(t, 1, 2, "more of it");
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_int_equal(value(&t->got[0], METRIC_CLIENT_WAIT), 200 * MS);
	assert_int_equal(value(&t->got[0], METRIC_LOCK_WAIT), 0);
	assert_int_equal(value(&t->got[0], METRIC_TOTAL_IO_DURATION), 0);
	traffic_free(t);
}

static void status_line_in_pieces(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	writes(t, 1, 2, "HTTP/1");
	writes(t, 1, 2, ".1 404 Not Found\r\n\r\n");
	closes(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_int_equal(t->got[0].status, 404);
	assert_int_equal(t->got[0].ended, END_CLOSED);
	assert_false(t->got[0].incomplete);
	traffic_free(t);
}

static void trace_ids(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "GET / HTTP/1.1\r\nx-trace-id:  RUN-7 \r\n\r\n");
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	reads(t, 1, 2, "GET / HTTP/1.1\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n");
	writes(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 2);
	assert_string_equal(t->got[0].trace_id, "RUN-7");
	assert_string_equal(t->got[1].trace_id, "0af7651916cd43dd8448eb211c80319c");
	assert_string_equal(t->got[1].parent_span, "b7ad6b7169203331");
	traffic_free(t);
}

static void end_of_input_after_the_answer(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, GET);
	writes(t, 1, 2, OK);
	reads_end(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_int_equal(t->got[0].ended, END_EOF);
	closes(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_int_equal(flow_connections(t->flow), 0);
	traffic_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_request),		     cmocka_unit_test(keep_alive_on_other_threads),
		cmocka_unit_test(line_split_over_packets_and_threads), cmocka_unit_test(pipelined),
		cmocka_unit_test(body_of_a_slow_client),     cmocka_unit_test(bodies_are_skipped),
		cmocka_unit_test(chunked_both_ways),	     cmocka_unit_test(interim_answers_end_nothing),
		cmocka_unit_test(refused_before_the_body),
		cmocka_unit_test(slow_reader),		     cmocka_unit_test(status_line_in_pieces),
		cmocka_unit_test(trace_ids),		     cmocka_unit_test(end_of_input_after_the_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
