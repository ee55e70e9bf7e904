// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "request/document.h"
#include "request/record.h"

static bool has(const struct buf *b, const char *text)
{
	return memmem(b->data, b->len, text, strlen(text)) != NULL;
}

static void table_is_whole(void **state)
{
	struct breakdown_table m;

	breakdown_table_init(&m);
	assert_int_equal(m.n, METRIC_BUILTIN);
	for (unsigned i = 0; i < m.n; i++) {
		assert_non_null(m.metric[i]->field);
		assert_non_null(m.metric[i]->help);
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(m.metric[i]->field, m.metric[k]->field);
	}
	assert_null(breakdown_builtin(METRIC_BUILTIN));
}

static void every_record_has_the_fields(void **state)
{
	static const char *const always[] = { "\"id\":\"h:7:", "\"hostname_s\":\"h\"", "\"pid_i\":7", "\"tid_i\":8",
					      "\"total_io_duration_ms_f\":0.000000", "\"read_duration_ms_f\":", "\"write_duration_ms_f\":",
					      "\"read_bytes_l\":0", "\"write_bytes_l\":0", "\"read_ops_i\":0", "\"write_ops_i\":0",
					      "\"event_timestamp_dt\":\"1970-01-01T00:00:01.234Z\"" };
	struct request_record r = { .kind = REQUEST_ONE, .pid = 7, .tid = 8, .start = 1234567890, .end = 1234567890 };
	struct buf b = { 0 };
	struct breakdown_table m;

	breakdown_table_init(&m);
	breakdown_derive(&r.times);
	record_json(&r, &m, "h", &b);
	for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
		assert_true(has(&b, always[i]));
	assert_false(has(&b, "oncpu_ms_f"));
	assert_false(has(&b, "status_i"));
	buf_free(&b);
}

static void sums_are_reckoned(void **state)
{
	struct breakdown b = { 0 };

	breakdown_set(&b, METRIC_SYS_PREAD, 5000000);
	breakdown_set(&b, METRIC_FAULT_IO, 2000000);
	breakdown_set(&b, METRIC_FSYNC, 1000000);
	breakdown_set(&b, METRIC_FSYNC_OPS, 1);
	breakdown_set(&b, METRIC_SYS_PREAD_BYTES, 4096);
	breakdown_set(&b, METRIC_FAULT_DISK_BYTES, 8192);
	breakdown_set(&b, METRIC_SOCKET_READ, 99);
	breakdown_derive(&b);
	assert_int_equal(b.value[METRIC_READ_DURATION], 7000000);
	assert_int_equal(b.value[METRIC_WRITE_DURATION], 1000000);
	assert_int_equal(b.value[METRIC_TOTAL_IO_DURATION], 8000000);
	assert_int_equal(b.value[METRIC_READ_BYTES], 12288);
	assert_int_equal(b.value[METRIC_WRITE_OPS], 1);
}

static void missing_is_said_and_no_number(void **state)
{
	struct request_record r = { .kind = REQUEST_ONE, .missing = "request_line,status", .incomplete = true };
	struct buf b = { 0 };
	struct breakdown_table m;

	breakdown_table_init(&m);
	breakdown_set(&r.times, METRIC_ONCPU, 5);
	breakdown_missing(&r.times, METRIC_RUNQ);
	breakdown_derive(&r.times);
	record_json(&r, &m, "h", &b);
	assert_true(has(&b, "\"missing_ss\":[\"request_line\",\"status\",\"runq_ms_f\"]"));
	assert_false(has(&b, "\"runq_ms_f\":"));
	assert_true(has(&b, "\"incomplete_b\":true"));
	buf_free(&b);
}

static void parts_merge_as_declared(void **state)
{
	struct breakdown sum = { 0 }, a = { 0 }, c = { 0 };
	struct buf b = { 0 };
	struct breakdown_table m;

	breakdown_table_init(&m);
	breakdown_set(&a, METRIC_ONCPU, 4000000);
	breakdown_set(&a, METRIC_DISK_MAX, 9000000);
	breakdown_set(&a, METRIC_DURATION, 50);
	breakdown_set(&c, METRIC_ONCPU, 2000000);
	breakdown_set(&c, METRIC_DISK_MAX, 3000000);
	breakdown_set(&c, METRIC_DURATION, 70);
	assert_int_equal(breakdown_merge(&sum, &m, &a), 0);
	assert_int_equal(breakdown_merge(&sum, &m, &c), 0);
	assert_int_equal(sum.parts, 2);
	assert_int_equal(sum.value[METRIC_ONCPU], 6000000);
	assert_int_equal(sum.value[METRIC_DISK_MAX], 9000000);
	assert_int_equal(sum.value[METRIC_DURATION], 50);
	breakdown_json(&sum, &m, &b);
	assert_true(has(&b, "\"oncpu_ms_f\":6.000000,\"min_oncpu_ms_f\":2.000000,\"max_oncpu_ms_f\":4.000000,\"avg_oncpu_ms_f\":3.000000"));
	buf_free(&b);
	breakdown_missing(&c, METRIC_ONCPU);
	assert_int_equal(breakdown_merge(&sum, &m, &c), 0);
	assert_int_equal(sum.state[METRIC_ONCPU], VALUE_MISSING);
	breakdown_free(&sum);
}

static void large_numbers_do_not_wrap(void **state)
{
	struct breakdown v = { 0 };
	struct buf b = { 0 };
	struct breakdown_table m;

	breakdown_table_init(&m);
	breakdown_set(&v, METRIC_SYS_READ_OPS, 3000000000u);
	breakdown_set(&v, METRIC_RESP_BYTES, UINT64_MAX);
	breakdown_json(&v, &m, &b);
	assert_true(has(&b, "\"sys_read_ops_i\":2147483647"));
	assert_true(has(&b, "\"resp_bytes_l\":9223372036854775807"));
	buf_free(&b);
}

static void texts_are_escaped(void **state)
{
	struct request_record r = { .kind = REQUEST_ONE, .path = "/a\"b\\c\xff\n", .query = "q=?&fl=id" };
	struct buf b = { 0 };
	struct breakdown_table m;

	breakdown_table_init(&m);
	record_json(&r, &m, "h", &b);
	assert_true(has(&b, "\"path_s\":\"/a\\\"b\\\\c??\""));
	assert_true(has(&b, "\"params_ss\":[\"q=?\",\"fl=id\"]"));
	buf_free(&b);
}

// Sums of a process and those of its first thread, of one moment.
static void each_kind_has_ids_of_its_own(void **state)
{
	struct request_record thread = { .kind = REQUEST_THREAD, .pid = 7, .tid = 7, .start = 1, .number = 1 };
	struct request_record handler = { .kind = REQUEST_HANDLER, .pid = 7, .start = 1, .number = 1 };
	char a[100], b[100];

	record_id(&thread, "h", a, sizeof(a));
	record_id(&handler, "h", b, sizeof(b));
	assert_string_not_equal(a, b);
}

// The largest record that can be made is one that the collector and Solr take: a handler's sums with all metrics there may be.
static void the_largest_record_can_be_read(void **state)
{
	static struct breakdown_metric more[METRICS_MAX];
	static char names[METRICS_MAX][METRIC_FIELD_MAX];
	static struct request_record r = { .kind = REQUEST_HANDLER, .pid = 7, .tid = 8, .incomplete = true, .path = "/p", .query = "q=?",
					   .core = "c", .handler = "/h", .method = "GET", .proto = "HTTP/1.1", .trace_id = "t",
					   .parent_span = "s", .comm = "c", .thread = "t", .device = "d", .stack_quality = "s",
					   .missing = "status" };
	static struct document d;
	static struct breakdown part;
	struct breakdown_table m;
	struct buf b = { 0 };
	struct error e = { "" };
	unsigned at;

	breakdown_table_init(&m);
	while (m.n < METRICS_MAX) {
		snprintf(names[m.n], sizeof(names[m.n]), "more_%u_ms_f", m.n);
		more[m.n] = (struct breakdown_metric){ .field = names[m.n], .unit = "ns", .kind = KIND_TIMER };
		assert_int_equal(breakdown_table_add(&m, &more[m.n], &at, &e), 0);
	}
	for (unsigned i = 0; i < m.n; i++)
		breakdown_set(&part, i, 1 + i);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(breakdown_merge(&r.times, &m, &part), 0);
	record_json(&r, &m, "h", &b);
	assert_int_equal(b.error, 0);
	assert_int_equal(document_read(b.data, b.len, &d, &e), 0);
	record_free(&r);
	buf_free(&b);
}

static void metrics_of_plugins(void **state)
{
	static const struct breakdown_metric good = { .field = "journal_wait_ms_f", .unit = "ns", .kind = KIND_TIMER },
				   twice = { .field = "oncpu_ms_f", .kind = KIND_TIMER }, suffix = { .field = "x_s" },
				   name = { .field = "Ab\"_i", .kind = KIND_COUNTER },
				   taken[] = { { .field = "status_i", .kind = KIND_COUNTER }, { .field = "req_seq_l", .kind = KIND_COUNTER },
					       { .field = "max_oncpu_ms_f", .kind = KIND_TIMER }, { .field = "min_x_i", .kind = KIND_GAUGE },
					       { .field = "avg_x_i", .kind = KIND_GAUGE } };
	struct breakdown_table m;
	struct error e;
	unsigned at;

	breakdown_table_init(&m);
	assert_int_equal(breakdown_table_add(&m, &good, &at, &e), 0);
	assert_int_equal(at, METRIC_BUILTIN);
	assert_int_equal(breakdown_table_add(&m, &good, &at, &e), -EEXIST);
	assert_int_equal(breakdown_table_add(&m, &twice, &at, &e), -EEXIST);
	assert_int_equal(breakdown_table_add(&m, &suffix, &at, &e), -EINVAL);
	assert_int_equal(breakdown_table_add(&m, &name, &at, &e), -EINVAL);
	for (unsigned i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		assert_int_equal(breakdown_table_add(&m, &taken[i], &at, &e), -EEXIST);
	assert_int_equal(m.n, METRIC_BUILTIN + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_whole),	 cmocka_unit_test(every_record_has_the_fields),
		cmocka_unit_test(each_kind_has_ids_of_its_own), cmocka_unit_test(the_largest_record_can_be_read),
		cmocka_unit_test(sums_are_reckoned),	 cmocka_unit_test(missing_is_said_and_no_number),
		cmocka_unit_test(parts_merge_as_declared), cmocka_unit_test(large_numbers_do_not_wrap),
		cmocka_unit_test(texts_are_escaped),	 cmocka_unit_test(metrics_of_plugins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
