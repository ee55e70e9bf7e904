// SPDX-License-Identifier: Apache-2.0
// What goes to Solr: values that fit their types, and documents that a batch is refused for.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/solr_batch.h"
#include "collector/solr_check.h"
#include "collector/solr_client.h"
#include "collector/solr_itself.h"

static int check_with(const char *field)
{
	static struct document d;
	struct error e = { "" };
	char text[2000];
	int err;

	snprintf(text, sizeof(text), "{\"id\":\"n1:1\",\"hostname_s\":\"n1\",\"pid_i\":1,\"tid_i\":1,\"total_io_duration_ms_f\":1,"
		 "\"read_duration_ms_f\":1,\"write_duration_ms_f\":0,\"read_bytes_l\":1,\"write_bytes_l\":1,\"read_ops_i\":1,\"write_ops_i\":1,"
		 "\"event_timestamp_dt\":\"2026-11-30T08:15:00.123Z\"%s%s}", *field ? "," : "", field);
	assert_int_equal(document_read(text, strlen(text), &d, &e), 0);
	err = solr_check(&d, "n1", &e);
	if (err)
		assert_true(e.text[0]);
	return err;
}

static void values_fit_their_types(void **state)
{
	static const char *const good[] = {
		"", "\"a_i\":2147483647", "\"a_i\":-2147483648", "\"a_l\":9223372036854775807", "\"a_f\":3.4e38", "\"a_f\":-0", "\"a_b\":true",
		"\"a_s\":\"\"", "\"a_ss\":[]", "\"a_ss\":\"one\"", "\"a_ss\":[\"one\",\"two\"]", "\"a_dt\":\"2024-02-29T23:59:59Z\"",
		"\"a_dt\":\"2026-11-30T08:15:00.123456789Z\"",
	};
	static const char *const bad[] = {
		"\"a_i\":3000000000", "\"a_i\":1.5", "\"a_i\":1e3", "\"a_i\":\"1\"", "\"a_i\":true", "\"a_l\":18446744073709551615", "\"a_l\":0.0",
		"\"a_f\":1e39", "\"a_f\":1e999", "\"a_f\":\"NaN\"", "\"a_f\":\"1\"", "\"a_b\":\"true\"", "\"a_b\":1", "\"a_s\":1", "\"a_s\":[\"x\"]",
		"\"a_ss\":1", "\"a_ss\":true", "\"a_dt\":\"2026-11-30 08:15:00Z\"", "\"a_dt\":\"2026-11-30T08:15:00\"",
		"\"a_dt\":\"2026-11-30T08:15:00+01:00\"", "\"a_dt\":\"2023-02-29T00:00:00Z\"", "\"a_dt\":\"2026-13-01T00:00:00Z\"",
		"\"a_dt\":\"2026-11-30T24:00:00Z\"", "\"a_dt\":\"2026-11-30T08:15:00.Z\"", "\"a_dt\":\"NOW\"", "\"a_dt\":1", "\"a_x\":1", "\"a\":1",
		"\"_version_\":-1", "\"_root_\":\"x\"", "\"_i\":1",
	};

	for (unsigned i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_int_equal(check_with(good[i]), 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(check_with(bad[i]), -EINVAL);
}

static void long_texts_do_not_fit(void **state)
{
	static char text[2 * SOLR_TEXT_MAX + 100];
	static struct document d;
	struct document_field *f;

	memset(text, 'x', sizeof(text));
	memcpy(text, "{\"a_s\":\"", 8);
	memcpy(text + 8 + SOLR_TEXT_MAX, "\"}", 2);
	assert_int_equal(document_read(text, SOLR_TEXT_MAX + 10, &d, NULL), 0);
	f = &d.field[0];
	assert_int_equal(document_text(f, NULL, 0), SOLR_TEXT_MAX);
}

static void a_node_speaks_for_itself(void **state)
{
	static const char other[] = "{\"id\":\"%s\",\"hostname_s\":\"%s\",\"pid_i\":1,\"tid_i\":1,\"total_io_duration_ms_f\":1,"
				    "\"read_duration_ms_f\":1,\"write_duration_ms_f\":0,\"read_bytes_l\":1,\"write_bytes_l\":1,\"read_ops_i\":1,"
				    "\"write_ops_i\":1,\"event_timestamp_dt\":\"2026-11-30T08:15:00Z\"}";
	static const struct {
		const char *id, *host;
		int want;
	} cases[] = { { "n1:1", "n1", 0 }, { "n2:1", "n1", -EINVAL }, { "n1:1", "n2", -EINVAL }, { "n1", "n1", -EINVAL }, { "", "n1", -EINVAL },
		      { "n11:1", "n1", -EINVAL } };
	static struct document d;
	char text[600];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(text, sizeof(text), other, cases[i].id, cases[i].host);
		assert_int_equal(document_read(text, strlen(text), &d, NULL), 0);
		assert_int_equal(solr_check(&d, "n1", NULL), cases[i].want);
	}
}

static void a_document_without_a_field_does_not_fit(void **state)
{
	static struct document d;
	static const char text[] = "{\"id\":\"n1:1\",\"hostname_s\":\"n1\"}";
	struct error e;

	assert_int_equal(document_read(text, sizeof(text) - 1, &d, NULL), 0);
	assert_int_equal(solr_check(&d, "n1", &e), -EINVAL);
	assert_string_equal(e.text, "it has no pid_i");
}

// ---- the index itself --------------------------------------------------------------------------------------------------

#define MARK "0123456789abcdef0123456789abcdef"

static enum solr_itself_result is_itself(struct solr_itself *s, const char *node, int pid, const char *kind, const char *core, int second,
					 const char *trace)
{
	static struct document d;
	char text[600];

	snprintf(text, sizeof(text), "{\"id\":\"n1:1\",\"kind_s\":\"%s\",\"pid_i\":%d,\"core_s\":\"%s\",\"trace_id_s\":\"%s\","
		 "\"event_timestamp_dt\":\"2026-11-30T08:%02d:%02d.5Z\"}", kind, pid, core, trace, second / 60, second % 60);
	assert_int_equal(document_read(text, strlen(text), &d, NULL), 0);
	return solr_itself(s, node, &d);
}

static void the_index_itself_is_known(void **state)
{
	struct solr_itself s = { .mark = MARK };

	assert_int_equal(is_itself(&s, "n1", 7, "request", "blkprof", 0, "t1"), SOLR_ITSELF_NOT);
	assert_int_equal(is_itself(&s, "n1", 7, "request", "blkprof", 1, MARK "0"), SOLR_ITSELF_NOT);
	assert_int_equal(is_itself(&s, "n1", 7, "request", "blkprof", 1, MARK), SOLR_ITSELF_NEW);
	assert_string_equal(s.process[s.n - 1].core, "blkprof");
	assert_int_equal(is_itself(&s, "n1", 7, "request", "blkprof", 2, MARK), SOLR_ITSELF_IS);
	assert_int_equal(is_itself(&s, "n1", 7, "handler", "blkprof", 2, ""), SOLR_ITSELF_IS);
	assert_int_equal(is_itself(&s, "n1", 7, "thread", "", 2, ""), SOLR_ITSELF_IS);
	assert_int_equal(is_itself(&s, "n1", 7, "request", "shop", 2, ""), SOLR_ITSELF_NOT);
	assert_int_equal(is_itself(&s, "n1", 8, "thread", "", 2, ""), SOLR_ITSELF_NOT);
	assert_int_equal(is_itself(&s, "n2", 7, "request", "blkprof", 2, ""), SOLR_ITSELF_NOT);
	assert_int_equal(is_itself(&s, "n1", 7, "thread", "", 600, ""), SOLR_ITSELF_IS);
	assert_int_equal(is_itself(&s, "n1", 7, "thread", "", 604, ""), SOLR_ITSELF_NOT);
	assert_int_equal(is_itself(&s, "n1", 7, "request", "blkprof", 700, MARK), SOLR_ITSELF_IS);
	assert_int_equal(is_itself(&s, "n1", 7, "thread", "", 604, ""), SOLR_ITSELF_IS);
}

static void many_indexes_take_turns(void **state)
{
	struct solr_itself s = { .mark = MARK };

	for (int i = 0; i < 3 * SOLR_ITSELF_MAX; i++)
		assert_int_equal(is_itself(&s, "n1", 100 + i, "request", "blkprof", i, MARK), SOLR_ITSELF_NEW);
	assert_int_equal(s.n, SOLR_ITSELF_MAX);
	assert_int_equal(is_itself(&s, "n1", 100 + 3 * SOLR_ITSELF_MAX - 1, "thread", "", 60, ""), SOLR_ITSELF_IS);
	assert_int_equal(is_itself(&s, "n1", 100, "thread", "", 60, ""), SOLR_ITSELF_NOT);
}

// ---- batches: what Solr does, in small: it keeps those before the first bad one ------------------------------------------

struct index {
	unsigned sent, calls, fail_at; // fail_at: the call that is not answered, from 1
	char taken[256];	       // by the letter of a document, how often
};

static int take(void *context, const void *json, size_t size, unsigned n, struct error *e)
{
	struct index *x = context;
	const char *at = json;

	assert_true(size >= 2 && at[0] == '[' && at[size - 1] == ']');
	x->sent += n;
	if (++x->calls == x->fail_at)
		return error_set(e, -EHOSTUNREACH, "nobody there");
	for (size_t i = 1; i + 1 < size; i++) {
		if (at[i] == 'P')
			return error_set(e, -EINVAL, "a P");
		if (at[i] != ',')
			x->taken[(unsigned char)at[i]]++;
	}
	return 0;
}

static void fill(struct solr_batch *b, const char *letters)
{
	for (; *letters; letters++)
		assert_int_equal(solr_batch_add(b, "n1", letters, 1, *letters == 'C' ? "checked" : NULL), 0);
}

static void poison_is_found_and_the_others_go_in(void **state)
{
	static const char *const cases[] = { "abcdefgh", "P", "Pb", "aP", "abcPefgh", "PPPP", "aPcPePgPi", "C", "aCPb", "", "abcdefghijklmnoP" };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct solr_batch b = { 0 };
		struct index x = { 0 };
		unsigned refused = 0;

		fill(&b, cases[i]);
		assert_int_equal(solr_batch_send(&b, take, &x, NULL), 0);
		for (unsigned k = 0; k < b.n; k++) {
			char letter = cases[i][k];

			refused += letter == 'P' || letter == 'C';
			assert_int_equal(b.document[k].refused != NULL, letter == 'P' || letter == 'C');
			assert_int_equal(x.taken[(unsigned char)letter] > 0, letter != 'P' && letter != 'C');
		}
		assert_int_equal(b.n_refused, refused);
		solr_batch_free(&b);
	}
}

static void one_poison_in_a_thousand_costs_few_updates(void **state)
{
	struct solr_batch b = { 0 };
	struct index x = { 0 };

	for (unsigned i = 0; i < 1000; i++)
		fill(&b, i == 700 ? "P" : "a");
	assert_int_equal(solr_batch_send(&b, take, &x, NULL), 0);
	assert_int_equal(b.n_refused, 1);
	assert_true(x.calls <= 21);
	assert_string_equal(b.document[700].refused, "a P");
	solr_batch_free(&b);
}

// Nobody is put aside when the other side goes away in the middle of it.
static void an_end_in_between_marks_nothing(void **state)
{
	for (unsigned at = 1; at <= 7; at++) {
		struct solr_batch b = { 0 };
		struct index x = { .fail_at = at };
		struct error e;

		fill(&b, "PabCPcdP");
		assert_int_equal(solr_batch_send(&b, take, &x, &e), -EHOSTUNREACH);
		assert_string_equal(e.text, "nobody there");
		assert_int_equal(b.n_refused, 1);
		assert_non_null(b.document[3].refused);
		x.fail_at = 0;
		assert_int_equal(solr_batch_send(&b, take, &x, &e), 0);
		assert_int_equal(b.n_refused, 4);
		solr_batch_free(&b);
	}
}

// What a collection that tolerates errors answers, with 200.
static void refusals_that_are_tolerated_are_seen(void **state)
{
	static const struct {
		const char *answer, *said;
	} cases[] = {
		{ "{\"responseHeader\":{\"status\":0,\"QTime\":1}}", NULL },
		{ "{\"responseHeader\":{\"errors\":[],\"maxErrors\":-1,\"status\":0,\"QTime\":1}}", NULL },
		{ "{\"responseHeader\":{\"errors\":[{\"type\":\"ADD\",\"id\":\"n1:1\",\"message\":\"no such field\"}],\"maxErrors\":-1}}",
		  "no such field" },
		{ "{\"responseHeader\":{\"errors\":[7]}}", "" },
		{ "{\"responseHeader\":{\"errors\":7}}", NULL }, { "{\"responseHeader\":[]}", NULL }, { "[]", NULL }, { "<html>", NULL }, { "", NULL },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf body = { 0 };
		char said[100];

		buf_append(&body, cases[i].answer, strlen(cases[i].answer));
		assert_int_equal(solr_refused_some(&body, said, sizeof(said)), cases[i].said != NULL);
		assert_string_equal(said, cases[i].said ? cases[i].said : "");
		buf_free(&body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_index_itself_is_known),
		cmocka_unit_test(many_indexes_take_turns),
		cmocka_unit_test(values_fit_their_types),
		cmocka_unit_test(long_texts_do_not_fit),
		cmocka_unit_test(a_node_speaks_for_itself),
		cmocka_unit_test(a_document_without_a_field_does_not_fit),
		cmocka_unit_test(poison_is_found_and_the_others_go_in),
		cmocka_unit_test(one_poison_in_a_thousand_costs_few_updates),
		cmocka_unit_test(an_end_in_between_marks_nothing),
		cmocka_unit_test(refusals_that_are_tolerated_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
