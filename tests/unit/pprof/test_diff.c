// SPDX-License-Identifier: Apache-2.0
// Pairs of profiles whose difference is known: the sentence, the first row, the sums.
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pprof/builder.h"
#include "pprof/decode.h"
#include "pprof/diff.h"

#define SECONDS 10

struct load {
	const char *service, *function, *device, *op;
	double ops;	// a second
	double mean_us;
	uint32_t size;
};

struct made {
	struct pprof_reader *reader;
	const struct profile *profile;
};

static int64_t class_of(double us)
{
	int64_t ns = (int64_t)(us * 1000), base = 1000;

	if (ns < base)
		return 0;
	while (ns / base >= 10)
		base *= 10;
	return ns / base >= 5 ? 5 * base : ns / base >= 2 ? 2 * base : base;
}

static void add(struct pprof_builder *b, const struct load *l, uint32_t mapping)
{
	const struct pprof_line_info line = { .name = l->function }, leaf = { .name = "pread64" };
	const struct pprof_label_info labels[] = { { .key = "device", .text = l->device },
						   { .key = "op", .text = l->op },
						   { .key = "service", .text = l->service },
						   { .key = "bytes", .number = l->size, .unit = "bytes" },
						   { .key = "latency", .number = class_of(l->mean_us), .unit = "nanoseconds" } };
	int64_t values[PPROF_TYPES] = { 0 };
	uint32_t stack[3];

	stack[0] = pprof_add_location(b, mapping, 0x1000, &leaf, 1);
	stack[1] = pprof_add_location(b, mapping, 0x2000 + (uint64_t)strlen(l->function), &line, 1);
	stack[2] = pprof_add_frame(b, l->service);
	values[PPROF_IO_OPS] = (int64_t)(l->ops * SECONDS);
	values[PPROF_IO_TIME] = (int64_t)(l->ops * SECONDS * l->mean_us * 1000);
	values[strcmp(l->op, "read") ? PPROF_WRITE_BYTES : PPROF_READ_BYTES] = (int64_t)(l->ops * SECONDS * l->size);
	assert_int_equal(pprof_add_sample(b, stack, 3, values, labels, 5), 0);
}

// Series that vary by `percent` around the mean of each load, as real ones do.
static void add_series(struct pprof_builder *b, const struct load *l, unsigned n, unsigned percent)
{
	for (unsigned i = 0; i < n; i++) {
		char ops[400] = "", time[400] = "";
		double sum = 0, sum_time = 0;
		bool first = true;

		for (unsigned j = 0; j < n; j++) {
			if (strcmp(l[j].device, l[i].device) || strcmp(l[j].op, l[i].op))
				continue;
			first &= j >= i;
			sum += l[j].ops;
			sum_time += l[j].ops * l[j].mean_us * 1000;
		}
		for (unsigned s = 0; first && s < SECONDS; s++) {
			double f = 1 + percent / 100.0 * (s % 2 ? 1 : -1);

			snprintf(ops + strlen(ops), sizeof(ops) - strlen(ops), "%s%.0f", s ? "," : "", sum * f);
			snprintf(time + strlen(time), sizeof(time) - strlen(time), "%s%.0f", s ? "," : "", sum_time * f);
		}
		if (first)
			pprof_add_comment(b, "series node=n device=%s op=%s start=0 step=1000000000 ops=%s time=%s", l[i].device, l[i].op, ops,
					  time);
	}
}

static struct made make_of(const struct load *l, unsigned n, unsigned nodes, const char *build_id)
{
	struct pprof_builder *b = pprof_builder_new("[node n]");
	const struct pprof_mapping_info m = { .start = 0x1000, .limit = 0x9000, .file = "/usr/bin/server", .build_id = build_id,
					      .has_functions = true };
	struct buf out = { 0 };
	struct pprof_source source = { .fd = -1 };
	struct made r;
	uint32_t mapping = pprof_add_mapping(b, &m);

	for (unsigned i = 0; i < n; i++)
		add(b, &l[i], mapping);
	pprof_set_time(b, 1700000000000000000ull, SECONDS * 1000000000ull);
	for (unsigned i = 0; i < nodes; i++)
		pprof_add_comment(b, "window node=n%u start=1700000000000000000 duration=%llu (nanoseconds)", i, SECONDS * 1000000000ull);
	add_series(b, l, n, 3);
	assert_int_equal(pprof_encode(b, &out), 0);
	pprof_builder_free(b);
	source.data = out.data;
	source.len = out.len;
	r.reader = pprof_reader_new(NULL);
	assert_int_equal(pprof_reader_add(r.reader, &source, NULL), 0);
	r.profile = pprof_reader_finish(r.reader);
	buf_free(&out);
	return r;
}

#define MAKE(l) make_of(l, sizeof(l) / sizeof(*(l)), 1, "aa")

static struct diff *compare(const struct made *base, const struct made *incident)
{
	const struct diff_options o = { 0 };
	struct error e = { "" };
	struct diff *d = NULL;

	assert_int_equal(diff_new(base->profile, incident->profile, &o, &d, &e), 0);
	return d;
}

static void free_all(struct diff *d, struct made *a, struct made *b)
{
	diff_free(d);
	pprof_reader_free(a->reader);
	pprof_reader_free(b->reader);
}

static struct diff_row first(struct diff *d, enum diff_by by)
{
	struct diff_row *rows, r;
	size_t n;

	assert_int_equal(diff_rows(d, by, &rows, &n), 0);
	assert_true(n > 0);
	r = rows[0];
	free(rows);
	return r;
}

#define NORMAL                                                                                                                   \
	{ "postgres", "ExecIndexScan", "vda", "read", 2000, 100, 8192 }, { "postgres", "XLogWrite", "vda", "write", 300, 200, 8192 }, \
	{                                                                                                                          \
		"backup", "send_file", "vdb", "read", 500, 400, 131072                                                             \
	}
#define KIND(base, incident, expected)                                                                                           \
	do {                                                                                                                     \
		b = MAKE(base);                                                                                                  \
		i = MAKE(incident);                                                                                              \
		d = compare(&b, &i);                                                                                             \
		print_message("%s\n", diff_get_verdict(d)->text);                                                                \
		assert_string_equal(diff_kind_name(diff_get_verdict(d)->kind), expected);                                        \
	} while (0)

static const struct load normal[] = { NORMAL };

static void equal(void **state)
{
	struct made b, i;
	struct diff *d;
	struct diff_row r;

	KIND(normal, normal, "noise");
	for (unsigned by = 0; by < DIFF_BYS; by++) {
		r = first(d, by);
		assert_false(r.beyond_noise);
		assert_true(r.value[0] == r.value[1]);
	}
	assert_true(fabs(diff_get_verdict(d)->more) < 1e-9);
	assert_true(fabs(diff_get_verdict(d)->slower) < 1e-9);
	free_all(d, &b, &i);
}

static void tenfold(void **state)
{
	static const struct load ten[] = { { "postgres", "ExecIndexScan", "vda", "read", 20000, 100, 8192 },
					   { "postgres", "XLogWrite", "vda", "write", 3000, 200, 8192 },
					   { "backup", "send_file", "vdb", "read", 5000, 400, 131072 } };
	struct made b, i;
	struct diff *d;

	KIND(normal, ten, "more");
	assert_true(strstr(diff_get_verdict(d)->text, "10x"));
	// 0.2 + 0.06 + 0.2 s/s of base, nine times
	assert_true(fabs(diff_get_verdict(d)->more - 9 * 0.46) < 1e-6);
	assert_true(fabs(diff_get_verdict(d)->slower) < 1e-6);
	free_all(d, &b, &i);
}

static void device_slower(void **state)
{
	static const struct load slow[] = { { "postgres", "ExecIndexScan", "vda", "read", 2000, 100, 8192 },
					    { "postgres", "XLogWrite", "vda", "write", 300, 200, 8192 },
					    { "backup", "send_file", "vdb", "read", 100, 4000, 131072 } };
	struct made b, i;
	struct diff *d;
	struct diff_row r;

	KIND(normal, slow, "slower");
	assert_string_equal(diff_get_verdict(d)->row, "vdb read");
	assert_string_equal(first(d, DIFF_BY_DEVICE).name, "vdb read");
	assert_string_equal(first(d, DIFF_BY_SERVICE).name, "backup");
	r = first(d, DIFF_BY_FUNCTION);
	assert_string_equal(r.name, "send_file");
	assert_true(fabs(r.mean_ns[0] - 400e3) < 1 && fabs(r.mean_ns[1] - 4e6) < 1);
	// operations -400 at 0.4 ms, and 100 at 3.6 ms more
	assert_true(fabs(diff_get_verdict(d)->more + 0.16) < 1e-6);
	assert_true(fabs(diff_get_verdict(d)->slower - 0.36) < 1e-6);
	free_all(d, &b, &i);
	KIND(slow, normal, "faster");
	free_all(d, &b, &i);
}

// Programs that wait for each request: as much in flight as before, a quarter of the operations.
static void device_slower_waited_for(void **state)
{
	static const struct load fast[] = { { "postgres", "ExecIndexScan", "vda", "read", 2000, 1000, 8192 },
					    { "postgres", "XLogWrite", "vda", "write", 100, 1000, 8192 } },
				 slow[] = { { "postgres", "ExecIndexScan", "vda", "read", 500, 4000, 8192 },
					    { "postgres", "XLogWrite", "vda", "write", 100, 4000, 8192 } };
	struct made b, i;
	struct diff *d;

	KIND(fast, slow, "slower");
	assert_string_equal(diff_get_verdict(d)->row, "vda read");
	free_all(d, &b, &i);
	KIND(slow, fast, "faster");
	assert_string_equal(diff_get_verdict(d)->row, "vda read");
	free_all(d, &b, &i);
}

// A disk that serves one request after the other and is busy already: more threads wait longer and get a little less.
static void queued(void **state)
{
	static const struct load two[] = { { "postgres", "ExecIndexScan", "vda", "read", 845, 2370, 8192 } },
				 twelve[] = { { "postgres", "ExecIndexScan", "vda", "read", 769, 16080, 8192 } },
				 // Busy by its reads, its few writes share their queue.
		base[] = { { "postgres", "ExecIndexScan", "vda", "read", 800, 1200, 8192 },
			   { "postgres", "XLogWrite", "vda", "write", 20, 1200, 8192 } },
				 burst[] = { { "postgres", "ExecIndexScan", "vda", "read", 800, 1250, 8192 },
					     { "postgres", "XLogWrite", "vda", "write", 20, 90000, 8192 } };
	struct made b, i;
	struct diff *d;

	KIND(two, twelve, "queued");
	assert_string_equal(diff_get_verdict(d)->row, "vda read");
	free_all(d, &b, &i);
	KIND(twelve, two, "faster");
	free_all(d, &b, &i);
	KIND(base, burst, "queued");
	assert_string_equal(diff_get_verdict(d)->row, "vda write");
	free_all(d, &b, &i);
}

// The rate was never bound by the device: it comes as before, and each request takes longer.
static void slower_at_its_rate(void **state)
{
	static const struct load slow[] = { { "postgres", "ExecIndexScan", "vda", "read", 2010, 800, 8192 },
					    { "postgres", "XLogWrite", "vda", "write", 300, 200, 8192 },
					    { "backup", "send_file", "vdb", "read", 500, 400, 131072 } },
				 // Another device is busy, not this one.
		other_busy[] = { { "postgres", "ExecIndexScan", "vda", "read", 200, 1000, 8192 },
				 { "backup", "send_file", "vda1", "read", 3000, 1000, 131072 } },
				 one_slow[] = { { "postgres", "ExecIndexScan", "vda", "read", 200, 20000, 8192 },
						{ "backup", "send_file", "vda1", "read", 3000, 1000, 131072 } },
				 // Busy, but with no more in flight than before.
		before[] = { { "postgres", "ExecIndexScan", "vda", "read", 1000, 2000, 8192 } },
				 after[] = { { "postgres", "ExecIndexScan", "vda", "read", 820, 2440, 8192 } };
	struct made b, i;
	struct diff *d;

	KIND(normal, slow, "slower");
	assert_string_equal(diff_get_verdict(d)->row, "vda read");
	free_all(d, &b, &i);
	KIND(other_busy, one_slow, "slower");
	assert_string_equal(diff_get_verdict(d)->row, "vda read");
	free_all(d, &b, &i);
	KIND(before, after, "slower");
	free_all(d, &b, &i);
}

static void tail(void **state)
{
	static const struct load tailed[] = { NORMAL, { "postgres", "ExecIndexScan", "vda", "read", 20, 50000, 8192 } };
	struct made b, i;
	struct diff *d;

	KIND(normal, tailed, "tail");
	free_all(d, &b, &i);
}

static void other_plan(void **state)
{
	static const struct load scan[] = { { "postgres", "ExecSeqScan", "vda", "read", 6000, 60, 131072 },
					    { "postgres", "XLogWrite", "vda", "write", 300, 200, 8192 },
					    { "backup", "send_file", "vdb", "read", 500, 400, 131072 } };
	struct made b, i;
	struct diff *d;
	struct diff_row r;

	KIND(normal, scan, "other");
	r = first(d, DIFF_BY_FUNCTION);
	assert_string_equal(r.name, "ExecSeqScan");
	assert_true(r.appeared);
	free_all(d, &b, &i);
}

static void smaller_requests(void **state)
{
	static const struct load small[] = { { "postgres", "ExecIndexScan", "vda", "read", 2000, 100, 8192 },
					     { "postgres", "XLogWrite", "vda", "write", 300, 200, 8192 },
					     { "backup", "send_file", "vdb", "read", 16000, 300, 4096 } };
	struct made b, i;
	struct diff *d;

	KIND(normal, small, "split");
	assert_string_equal(diff_get_verdict(d)->row, "vdb read");
	free_all(d, &b, &i);
}

static void node_missing(void **state)
{
	static const struct load three[] = { { "postgres", "ExecIndexScan", "vda", "read", 6000, 100, 8192 },
					     { "postgres", "XLogWrite", "vda", "write", 900, 200, 8192 } },
				 two[] = { { "postgres", "ExecIndexScan", "vda", "read", 4000, 100, 8192 },
					   { "postgres", "XLogWrite", "vda", "write", 600, 200, 8192 } };
	struct made b = make_of(three, 2, 3, "aa"), i = make_of(two, 2, 2, "aa");
	struct diff *d = compare(&b, &i);

	assert_string_equal(diff_kind_name(diff_get_verdict(d)->kind), "noise");
	assert_int_equal(diff_get_coverage(d, DIFF_BASE)->nodes, 3);
	assert_true(diff_get_coverage(d, DIFF_INCIDENT)->node_seconds == 2 * SECONDS);
	free_all(d, &b, &i);
}

static void upgraded(void **state)
{
	static const struct load old[] = { { "server", "server+0x1a20", "vda", "read", 2000, 100, 8192 } },
				 new[] = { { "server", "server+0x2b40", "vda", "read", 2000, 100, 8192 } };
	struct made b = make_of(old, 1, 1, "aa"), i = make_of(new, 1, 1, "bb"), same;
	struct diff *d = compare(&b, &i);

	assert_string_equal(diff_kind_name(diff_get_verdict(d)->kind), "noise");
	free_all(d, &b, &i);
	// Of one build they are two functions.
	b = make_of(old, 1, 1, "aa");
	same = make_of(new, 1, 1, "aa");
	d = compare(&b, &same);
	assert_string_equal(diff_kind_name(diff_get_verdict(d)->kind), "other");
	free_all(d, &b, &same);
}

// The difference as a profile: base negative, labelled, scaled to the incident's time.
static void as_profile(void **state)
{
	static const struct load once[] = { { "postgres", "ExecIndexScan", "vda", "read", 1000, 100, 8192 } };
	struct made b = make_of(once, 1, 2, "aa"), i = make_of(once, 1, 1, "aa");
	struct buf out = { 0 };
	struct pprof_source source = { .fd = -1 };
	struct pprof_reader *r = pprof_reader_new(NULL);
	const struct profile *p;
	struct error e = { "" };
	int64_t sum = 0, least = 0;

	assert_int_equal(diff_profile(b.profile, i.profile, &out, &e), 0);
	source.data = out.data;
	source.len = out.len;
	assert_int_equal(pprof_reader_add(r, &source, &e), -EINVAL); // a difference is refused where it makes no sense
	pprof_reader_free(r);
	r = pprof_reader_new(NULL);
	pprof_reader_allow_diff(r);
	assert_int_equal(pprof_reader_add(r, &source, &e), 0);
	p = pprof_reader_finish(r);
	for (uint32_t s = 0; s < p->samples.n; s++) {
		sum += p->values[s * p->n_types];
		if (p->values[s * p->n_types] < least)
			least = p->values[s * p->n_types];
	}
	assert_int_equal(least, -5000); // 10,000 in two node-windows
	assert_int_equal(sum, 5000);
	pprof_reader_free(r);
	buf_free(&out);
	pprof_reader_free(b.reader);
	pprof_reader_free(i.reader);
}

static void shown(void **state)
{
	static const struct load slow[] = { { "postgres", "ExecIndexScan", "vda", "read", 200, 9000, 8192 } };
	struct made b = MAKE(normal), i = MAKE(slow);
	struct diff *d = compare(&b, &i);
	struct buf out = { 0 };

	assert_int_equal(diff_print(d, 3, &out), 0);
	assert_int_equal(diff_json(d, 3, &out), 0);
	buf_byte(&out, 0);
	assert_non_null(strstr((char *)out.data, "vda read got slower"));
	assert_non_null(strstr((char *)out.data, "\"kind\": \"slower\""));
	buf_free(&out);
	free_all(d, &b, &i);
}

// Every sample on a device and in a build of its own, and a comment about each device.
static struct made make_many(unsigned n, unsigned build)
{
	struct pprof_builder *b = pprof_builder_new("[node n]");
	struct pprof_source source = { .fd = -1 };
	struct buf out = { 0 };
	struct made r;

	for (unsigned i = 0; i < n; i++) {
		char device[32], function[32], id[32];
		struct load l = { "s.service", function, device, "read", 10, 100, 4096 };
		struct pprof_mapping_info m = { .start = 0x1000, .limit = 0x9000, .file = "/usr/bin/server", .build_id = id };

		snprintf(device, sizeof(device), "d%u", i);
		snprintf(function, sizeof(function), "f%u+0x10", i % 100);
		snprintf(id, sizeof(id), "%u", 2 * i + build);
		add(b, &l, pprof_add_mapping(b, &m));
		pprof_add_comment(b, "series node=n device=%s op=read start=0 step=1000000000 ops=9,11,9,11 time=9,11,9,11", device);
	}
	pprof_set_time(b, 1700000000000000000ull, SECONDS * 1000000000ull);
	assert_int_equal(pprof_encode(b, &out), 0);
	pprof_builder_free(b);
	source.data = out.data;
	source.len = out.len;
	r.reader = pprof_reader_new(NULL);
	assert_int_equal(pprof_reader_add(r.reader, &source, NULL), 0);
	r.profile = pprof_reader_finish(r.reader);
	buf_free(&out);
	return r;
}

static double seconds_to_compare(unsigned n)
{
	struct made base = make_many(n, 0), incident = make_many(n, 1);
	struct timespec before, after;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	diff_free(compare(&base, &incident));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	pprof_reader_free(base.reader);
	pprof_reader_free(incident.reader);
	return (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
}

// Sixteen times as many took 256 times as long.
static void many_names_are_not_quadratic(void **state)
{
	double some = seconds_to_compare(2000) + seconds_to_compare(2000);

	(void)state;
	assert_true(seconds_to_compare(32000) < some / 2 * 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_names_are_not_quadratic),
		cmocka_unit_test(equal),
		cmocka_unit_test(tenfold),
		cmocka_unit_test(device_slower),
		cmocka_unit_test(queued),
		cmocka_unit_test(slower_at_its_rate),
		cmocka_unit_test(device_slower_waited_for),
		cmocka_unit_test(tail),
		cmocka_unit_test(other_plan),
		cmocka_unit_test(smaller_requests),
		cmocka_unit_test(node_missing),
		cmocka_unit_test(upgraded),
		cmocka_unit_test(as_profile),
		cmocka_unit_test(shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
