// SPDX-License-Identifier: Apache-2.0
// Several requests at once on a connection: each has its own answer or none, and those that are not seen are counted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/request/traffic.h"

#define THREE "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n"
#define ANSWER(status, length, body) "HTTP/1.1 " status " x\r\nContent-Length: " length "\r\n\r\n" body

// A write of which only so much is kept.
static void writes_cut(struct traffic *t, unsigned connection, unsigned tid, const char *text, size_t kept)
{
	event(t, REQ_WRITE, connection, tid, (int64_t)strlen(text), text, kept);
}

static void writes_whole(struct traffic *t, unsigned connection, unsigned tid, const char *text)
{
	writes_cut(t, connection, tid, text, strlen(text));
}

static void statuses_are(const struct traffic *t, int first, int second, int third)
{
	assert_int_equal(t->n, 3);
	assert_string_equal(t->got[0].path, "/1");
	assert_string_equal(t->got[1].path, "/2");
	assert_string_equal(t->got[2].path, "/3");
	assert_int_equal(t->got[0].status, first);
	assert_int_equal(t->got[1].status, second);
	assert_int_equal(t->got[2].status, third);
}

static void answers_in_one_write(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, THREE);
	runs(t, 2, 6 * MS);
	writes_whole(t, 1, 2, ANSWER("201", "2", "ab") ANSWER("202", "0", "") ANSWER("203", "3", "abc"));
	asks_next(t, 1, 2);
	statuses_are(t, 201, 202, 203);
	for (unsigned i = 0; i < 3; i++) { // whose work it was is not known
		assert_int_equal(value(&t->got[i], METRIC_DURATION), 6 * MS);
		assert_int_equal(t->got[i].times.state[METRIC_ONCPU], VALUE_MISSING);
		assert_int_equal(t->got[i].attribution, ATTRIBUTION_SHARED_THREAD);
	}
	assert_int_equal(value(&t->got[2], METRIC_RESP_BYTES), strlen(ANSWER("203", "3", "abc")));
	assert_int_equal(t->attributed, 0);
	traffic_free(t);
}

static void answers_over_the_bounds_of_writes(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, THREE);
	writes_whole(t, 1, 2, ANSWER("201", "4", "HT"));
	writes_whole(t, 1, 2, "TP" ANSWER("202", "9", "HTTP/1.1 "));
	runs(t, 2, 3 * MS);
	writes_whole(t, 1, 2, ANSWER("203", "0", ""));
	asks_next(t, 1, 2);
	statuses_are(t, 201, 202, 203);
	assert_int_equal(t->got[2].attribution, ATTRIBUTION_EXACT);
	assert_int_equal(value(&t->got[2], METRIC_DURATION), 3 * MS);
	traffic_free(t);
}

// An answer whose text begins as an answer does is one answer.
static void answers_about_answers(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, THREE);
	writes_whole(t, 1, 2, "HTTP/1.1 201 x\r\nContent-Length: 17\r\n\r\n");
	writes_whole(t, 1, 2, "HTTP/1.1 500 Bad\n");
	writes_whole(t, 1, 2, "HTTP/1.1 202 x\r\nTransfer-Encoding: chunked\r\n\r\n11\r\nHTTP/1.1 500 Bad\n\r\n0\r\n\r\n");
	writes_whole(t, 1, 2, ANSWER("203", "0", ""));
	asks_next(t, 1, 2);
	statuses_are(t, 201, 202, 203);
	traffic_free(t);
}

static void answers_without_a_body(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "HEAD /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n");
	writes_whole(t, 1, 2, ANSWER("200", "5000", "") "HTTP/1.1 304 x\r\nContent-Length: 7000\r\n\r\nHTTP/1.1 204 x\r\n\r\n");
	asks_next(t, 1, 2);
	statuses_are(t, 200, 304, 204);
	traffic_free(t);
}

static void interim_and_final_in_one_write(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "POST /1 HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi");
	writes_whole(t, 1, 2, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_int_equal(t->got[0].status, 200);
	assert_false(t->got[0].incomplete);
	traffic_free(t);
}

// The second one begins where nothing was kept: neither it nor those behind it are given an answer.
static void answers_out_of_sight(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, THREE);
	writes_cut(t, 1, 2, ANSWER("201", "2", "ab") ANSWER("500", "0", "") ANSWER("203", "3", "abc"), 41);
	writes_whole(t, 1, 2, ANSWER("404", "0", ""));
	asks_next(t, 1, 2);
	statuses_are(t, 201, 0, 0);
	assert_string_equal(t->got[1].missing, "answer,shared_thread"); // it begins in the first one's write
	reads(t, 1, 2, "GET /4 HTTP/1.1\r\n\r\n");
	writes_whole(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 4);
	assert_int_equal(t->got[3].status, 0);
	assert_string_equal(t->got[3].path, "/4");
	assert_int_equal(flow_count(t->flow, FLOW_PIPELINES_LOST), 1);
	assert_int_equal(flow_count(t->flow, FLOW_INCOMPLETE), 4);
	assert_int_equal(flow_count(t->flow, FLOW_ANSWERS_UNMATCHED), 2);
	traffic_free(t);
}

// Of the last one it is certain whose it is.
static void the_last_answer_is_out_of_sight(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n");
	writes_cut(t, 1, 2, ANSWER("201", "2", "ab") ANSWER("500", "0", ""), 39);
	asks_next(t, 1, 2);
	reads(t, 1, 2, "GET /3 HTTP/1.1\r\n\r\n");
	writes_whole(t, 1, 2, ANSWER("203", "0", ""));
	asks_next(t, 1, 2);
	statuses_are(t, 201, 0, 203);
	assert_true(t->got[1].incomplete);
	assert_false(t->got[2].incomplete);
	assert_int_equal(flow_count(t->flow, FLOW_PIPELINES_LOST), 0);
	traffic_free(t);
}

static void answers_of_unknown_length(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, THREE);
	writes_whole(t, 1, 2, "HTTP/1.1 201 x\r\n\r\nto the end HTTP/1.1 500 x");
	asks_next(t, 1, 2);
	statuses_are(t, 201, 0, 0);
	assert_string_equal(t->got[0].missing, "answer_end,shared_thread");
	traffic_free(t);
}

// A server that sends a body where there is none: what follows is nobody's.
static void answers_that_are_longer_than_they_say(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, THREE);
	writes_whole(t, 1, 2, ANSWER("204", "2", "ab") ANSWER("202", "0", ""));
	writes_whole(t, 1, 2, ANSWER("203", "0", ""));
	asks_next(t, 1, 2);
	statuses_are(t, 204, 0, 0);
	traffic_free(t);
}

// A server that reads on while it writes: the rest of the answer is still the first one's.
static void read_ahead_during_an_answer(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "GET /1 HTTP/1.1\r\n\r\n");
	writes_whole(t, 1, 2, ANSWER("201", "10", "01234"));
	asks_next(t, 1, 2);
	reads(t, 1, 2, "GET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n");
	runs(t, 2, 2 * MS);
	writes_whole(t, 1, 2, "56789");
	writes_whole(t, 1, 2, ANSWER("202", "0", ""));
	writes_whole(t, 1, 2, ANSWER("203", "0", ""));
	asks_next(t, 1, 2);
	statuses_are(t, 201, 202, 203);
	assert_int_equal(value(&t->got[0], METRIC_RESP_BYTES), strlen(ANSWER("201", "10", "0123456789")));
	assert_int_equal(value(&t->got[0], METRIC_DURATION), 2 * MS);
	traffic_free(t);
}

// The rest of it went another way than we see: the next answer is the next one's.
static void answers_whose_rest_is_not_seen(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	for (unsigned i = 0; i < 3; i++) {
		char get[64], answer[64];

		snprintf(get, sizeof(get), "GET /%u HTTP/1.1\r\n\r\n", i + 1);
		snprintf(answer, sizeof(answer), "HTTP/1.1 20%u x\r\nContent-Length: 9000\r\n\r\n", i + 1);
		reads(t, 1, 2, get);
		writes_whole(t, 1, 2, answer);
		asks_next(t, 1, 2);
	}
	closes(t, 1, 2);
	statuses_are(t, 201, 202, 203);
	assert_string_equal(t->got[0].missing, "answer_end");
	traffic_free(t);
}

// Of many the first are told, the others counted, with their answers, and the next one has its own.
static void more_than_are_followed(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);
	char many[100 * 20 + 1] = "";

	for (unsigned i = 0; i < 100; i++)
		strcat(many, "GET / HTTP/1.1\r\n\r\n");
	reads(t, 1, 2, many);
	reads(t, 1, 2, "GET /last HTTP/1.1\r\n\r\n");
	for (unsigned i = 0; i < 90; i++)
		writes_whole(t, 1, 2, OK);
	assert_int_equal(flow_count(t->flow, FLOW_REQUESTS_EVICTED), 37);
	for (unsigned i = 0; i < 11; i++)
		writes_whole(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(flow_open(t->flow), 0);
	assert_int_equal(flow_count(t->flow, FLOW_REQUESTS), 64);
	assert_int_equal(flow_count(t->flow, FLOW_ANSWERS_UNMATCHED), 37);
	reads(t, 1, 2, "GET /next HTTP/1.1\r\n\r\n");
	runs(t, 2, 1 * MS);
	writes_whole(t, 1, 2, ANSWER("404", "0", ""));
	closes(t, 1, 2);
	assert_int_equal(flow_count(t->flow, FLOW_REQUESTS), 65);
	assert_int_equal(flow_count(t->flow, FLOW_INCOMPLETE), 0);
	traffic_free(t);
}

// Room for three: the fourth is not told, and the fifth, which comes later, has the fifth answer.
static void one_in_the_midst_is_not_followed(void **state)
{
	struct traffic *t = traffic_new(0, 3, 0);

	reads(t, 2, 3, GET);
	reads(t, 1, 2, THREE); // /3 finds no room
	writes_whole(t, 1, 2, ANSWER("201", "0", ""));
	writes_whole(t, 1, 2, ANSWER("202", "0", "")); // /1 is over
	reads(t, 1, 2, "GET /5 HTTP/1.1\r\n\r\n");
	runs(t, 2, 5 * MS);
	writes_whole(t, 1, 2, ANSWER("203", "2", "ab"));
	runs(t, 2, 1 * MS);
	writes_whole(t, 1, 2, ANSWER("205", "0", ""));
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 3);
	assert_string_equal(t->got[2].path, "/5");
	assert_int_equal(t->got[2].status, 205);
	assert_int_equal(value(&t->got[2], METRIC_ONCPU), 1 * MS);
	assert_int_equal(value(&t->got[2], METRIC_DURATION), 1 * MS);
	assert_int_equal(flow_count(t->flow, FLOW_ANSWERS_UNMATCHED), 1);
	traffic_free(t);
}

// Requests behind what was kept of a read: nobody knows how many.
static void requests_out_of_sight(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads_cut(t, 1, 2, "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n", 60000);
	writes_whole(t, 1, 2, ANSWER("201", "0", ""));
	writes_whole(t, 1, 2, ANSWER("202", "0", ""));
	writes_whole(t, 1, 2, ANSWER("500", "0", ""));
	reads(t, 1, 2, "GET /3 HTTP/1.1\r\n\r\n");
	writes_whole(t, 1, 2, ANSWER("501", "0", ""));
	closes(t, 1, 2);
	statuses_are(t, 201, 202, 0);
	assert_true(t->got[2].incomplete);
	assert_int_equal(flow_count(t->flow, FLOW_ANSWERS_UNMATCHED), 2);
	assert_int_equal(flow_count(t->flow, FLOW_PIPELINES_LOST), 1);
	traffic_free(t);
}

// What was lost may have been any of the answers.
static void events_lost_of_a_pipeline(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, THREE);
	t->sequence[1]++;
	writes_whole(t, 1, 2, ANSWER("202", "0", ""));
	asks_next(t, 1, 2);
	statuses_are(t, 0, 0, 0);
	traffic_free(t);
}

// Its answer, and the next request with it: the answer that is seen is the next one's.
static void a_whole_request_is_lost(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "GET /1 HTTP/1.1\r\n\r\n");
	t->sequence[1] += 3;
	writes_whole(t, 1, 2, ANSWER("500", "0", ""));
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 1);
	assert_int_equal(t->got[0].status, 0);
	assert_string_equal(t->got[0].missing, "answer,events");
	reads(t, 1, 2, GET);
	writes_whole(t, 1, 2, OK);
	asks_next(t, 1, 2);
	assert_int_equal(t->n, 2);
	assert_false(t->got[1].incomplete);
	traffic_free(t);
}

// A request behind a body in chunks, in the same read.
static void behind_chunks(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads(t, 1, 2, "POST /1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n12\r\nGET /no HTTP/1.1\r\n\r\n0");
	reads(t, 1, 2, "\r\n\r\nPOST /2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
	reads(t, 1, 2, "1\r\nx\r\n0\r\nA: b\r\n\r\nGET /3 HTTP/1.1\r\n\r\n");
	writes_whole(t, 1, 2, ANSWER("201", "0", ""));
	writes_whole(t, 1, 2, ANSWER("202", "0", ""));
	writes_whole(t, 1, 2, ANSWER("203", "0", ""));
	asks_next(t, 1, 2);
	statuses_are(t, 201, 202, 203);
	assert_int_equal(value(&t->got[2], METRIC_REQ_BYTES), strlen("GET /3 HTTP/1.1\r\n\r\n"));
	traffic_free(t);
}

// Chunks whose sizes were not kept: what is read after the answer is the next request.
static void chunks_that_get_out_of_sight(void **state)
{
	struct traffic *t = traffic_new(0, 0, 0);

	reads_cut(t, 1, 2, "POST /1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n0123", 8192);
	reads_cut(t, 1, 2, "whatever", 8192);
	writes_whole(t, 1, 2, ANSWER("201", "0", ""));
	asks_next(t, 1, 2);
	reads(t, 1, 2, "GET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n");
	writes_whole(t, 1, 2, ANSWER("202", "0", ""));
	writes_whole(t, 1, 2, ANSWER("203", "0", ""));
	asks_next(t, 1, 2);
	statuses_are(t, 201, 202, 203);
	assert_int_equal(flow_count(t->flow, FLOW_INCOMPLETE), 0);
	traffic_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_in_one_write),
		cmocka_unit_test(answers_over_the_bounds_of_writes),
		cmocka_unit_test(answers_about_answers),
		cmocka_unit_test(answers_without_a_body),
		cmocka_unit_test(interim_and_final_in_one_write),
		cmocka_unit_test(answers_out_of_sight),
		cmocka_unit_test(the_last_answer_is_out_of_sight),
		cmocka_unit_test(answers_of_unknown_length),
		cmocka_unit_test(answers_that_are_longer_than_they_say),
		cmocka_unit_test(read_ahead_during_an_answer),
		cmocka_unit_test(answers_whose_rest_is_not_seen),
		cmocka_unit_test(more_than_are_followed),
		cmocka_unit_test(one_in_the_midst_is_not_followed),
		cmocka_unit_test(requests_out_of_sight),
		cmocka_unit_test(events_lost_of_a_pipeline),
		cmocka_unit_test(a_whole_request_is_lost),
		cmocka_unit_test(behind_chunks),
		cmocka_unit_test(chunks_that_get_out_of_sight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
