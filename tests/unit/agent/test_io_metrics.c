// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/io_metrics.h"

#define SECOND 1000000000ull

static struct io_item item(const char *service, const char *device, uint64_t ops, uint64_t seconds)
{
	return (struct io_item){ .service = service, .device = device, .op = "read", .amount = { ops, 512 * ops, seconds * SECOND } };
}

static char *text_of(struct io_metrics *m)
{
	struct buf b = { 0 };

	io_metrics_print(m, &b);
	buf_byte(&b, 0);
	assert_int_equal(b.error, 0);
	return (char *)b.data;
}

// Operations of a series; -1 = there is none.
static long ops_of(struct io_metrics *m, const char *service, const char *device)
{
	char *text = text_of(m), line[500], *at;
	long ops = -1;

	snprintf(line, sizeof(line), "blkprof_agent_io_operations_total{service=\"%s\",device=\"%s\",op=\"read\"} ", service, device);
	at = strstr(text, line);
	if (at)
		ops = strtol(at + strlen(line), NULL, 10);
	free(text);
	return ops;
}

static unsigned series_of(struct io_metrics *m)
{
	char *text = text_of(m);
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, "io_operations_total{")); at++)
		n++;
	free(text);
	return n;
}

static void sums(void **state)
{
	struct io_metrics *m = io_metrics_new(0, 0);
	struct io_item first[] = { item("web", "vda", 3, 1), item("db", "vda", 5, 2), item("web", "vda", 4, 1), item("web", "vdb", 1, 0) };
	char *text;

	io_metrics_window(m, first, 4, 10);
	io_metrics_window(m, NULL, 0, 10);
	io_metrics_window(m, first, 1, 10);
	assert_int_equal(ops_of(m, "web", "vda"), 10);
	assert_int_equal(ops_of(m, "web", "vdb"), 1);
	assert_int_equal(ops_of(m, "db", "vda"), 5);
	text = text_of(m);
	assert_non_null(strstr(text, "blkprof_agent_io_seconds_total{service=\"web\",device=\"vda\",op=\"read\"} 3.000000000\n"));
	assert_non_null(strstr(text, "blkprof_agent_io_bytes_total{service=\"db\",device=\"vda\",op=\"read\"} 2560\n"));
	free(text);
	io_metrics_free(m);
}

// Names are whatever programs call themselves.
static void hostile_names(void **state)
{
	struct io_metrics *m = io_metrics_new(0, 0);
	char large[2000];
	struct io_item items[] = { item("a\"b\\c\nd\xff", "v\"da", 1, 1), item("", "", 1, 1), item(large, large, 1, 1) };
	char *text;

	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = 0;
	io_metrics_window(m, items, 3, 10);
	text = text_of(m);
	assert_non_null(strstr(text, "{service=\"a\\\"b\\\\c?d?\",device=\"v\\\"da\",op=\"read\"} 1\n"));
	assert_non_null(strstr(text, "{service=\"[unknown]\",device=\"[unknown]\",op=\"read\"} 1\n"));
	assert_non_null(strstr(text, "xxx\",op=\"read\"} 1\n"));
	free(text);
	io_metrics_free(m);
}

// The heaviest have series of their own; a light newcomer does not, a heavy one takes the place of the lightest.
static void places(void **state)
{
	struct io_metrics *m = io_metrics_new(2, 0);
	struct io_item old[] = { item("a", "vda", 1, 100), item("b", "vda", 2, 10) };
	struct io_item light = item("c", "vda", 7, 15), heavy = item("d", "vda", 9, 50), again = item("b", "vda", 3, 500);
	char *text;

	io_metrics_window(m, old, 2, 10);
	io_metrics_window(m, &light, 1, 10);
	assert_int_equal(ops_of(m, "c", "vda"), -1);
	assert_int_equal(ops_of(m, IO_METRICS_OTHER, "vda"), 7);
	io_metrics_window(m, &heavy, 1, 10);
	assert_int_equal(ops_of(m, "d", "vda"), 9);
	assert_int_equal(ops_of(m, "b", "vda"), -1);
	assert_int_equal(ops_of(m, "a", "vda"), 1);
	assert_int_equal(ops_of(m, IO_METRICS_OTHER, "vda"), 7); // b's past is not I/O of now
	io_metrics_window(m, &again, 1, 10);
	assert_int_equal(ops_of(m, "b", "vda"), 3);
	text = text_of(m);
	assert_non_null(strstr(text, "\nblkprof_agent_io_services_displaced_total 2\n"));
	free(text);
	io_metrics_free(m);
}

// What was heavy hours ago gives its place to what is now.
static void weight_fades(void **state)
{
	struct io_metrics *m = io_metrics_new(1, 0);
	struct io_item before = item("before", "vda", 1, 3600), now = item("now", "vda", 1, 10);

	io_metrics_window(m, &before, 1, 10);
	io_metrics_window(m, &now, 1, 10);
	assert_int_equal(ops_of(m, "now", "vda"), -1);
	io_metrics_window(m, NULL, 0, 3 * 3600);
	io_metrics_window(m, &now, 1, 10);
	assert_int_equal(ops_of(m, "now", "vda"), 1);
	assert_int_equal(ops_of(m, "before", "vda"), -1);
	io_metrics_free(m);
}

// Thousands of services and devices: few series, which only grow, and nothing is missing from their sum.
static void bounded(void **state)
{
	struct io_metrics *m = io_metrics_new(10, 100);
	long other = -1, heavy = 0;

	for (unsigned i = 0; i < 20000; i++) {
		char service[32], device[32];
		struct io_item items[] = { item(service, device, 1, 0), item("heavy", "vda", 1, 100) };
		long now;

		snprintf(service, sizeof(service), "job-%u", i);
		snprintf(device, sizeof(device), "loop%u", i % 1000);
		io_metrics_window(m, items, 2, 10);
		if (i % 1000)
			continue;
		now = ops_of(m, "heavy", "vda");
		assert_true(now > heavy);
		heavy = now;
		now = ops_of(m, IO_METRICS_OTHER, IO_METRICS_OTHER);
		assert_true(now >= other);
		other = now;
	}
	assert_int_equal(ops_of(m, "heavy", "vda"), 20000);
	assert_true(series_of(m) <= 100 + 11);
	io_metrics_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums),		cmocka_unit_test(hostile_names), cmocka_unit_test(places),
		cmocka_unit_test(weight_fades), cmocka_unit_test(bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
