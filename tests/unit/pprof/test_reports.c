// SPDX-License-Identifier: Apache-2.0
// What is made of a profile that was read: ranks, collapsed stacks, speedscope, the flame graph.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/file.h"
#include "message.h"
#include "pprof/export.h"
#include "pprof/top.h"
#include "sample_profile.h"

struct fixture {
	struct buf message, text;
	struct pprof_reader *reader;
	struct folded folded;
};

static void open_fixture(struct fixture *f, const struct folded_options *o)
{
	struct pprof_builder *b = sample_profile();
	struct error e = { { 0 } };

	memset(f, 0, sizeof(*f));
	assert_int_equal(pprof_encode(b, &f->message), 0);
	pprof_builder_free(b);
	f->reader = pprof_reader_new(NULL);
	if (add_bytes(f->reader, &f->message, &e) ||
	    folded_make(&f->folded, pprof_reader_finish(f->reader), pprof_reader_budget(f->reader), o, &e))
		fail_msg("%s", e.text);
}

static void close_fixture(struct fixture *f)
{
	folded_free(&f->folded);
	pprof_reader_free(f->reader);
	buf_free(&f->message);
	buf_free(&f->text);
}

static int collect(void *context, const void *data, size_t len)
{
	buf_append(context, data, len);
	return 0;
}

// PPROF_GOLDEN_WRITE=1 in the environment writes the file instead.
static void check_golden(struct buf *got, const char *name)
{
	struct buf want = { 0 };
	char path[512];

	snprintf(path, sizeof(path), "%s/pprof/%s", TEST_DATA, name);
	if (getenv("PPROF_GOLDEN_WRITE"))
		assert_int_equal(file_write_atomic(path, got->data, got->len, NULL), 0);
	assert_int_equal(file_read(path, 1 << 20, &want), 0);
	buf_byte(got, 0);
	assert_string_equal((char *)got->data, (char *)want.data);
	buf_free(&want);
}

static void collapsed(void **state)
{
	struct folded_options o = { 0 };
	struct fixture f;
	struct sink s = { .write = collect, .context = &f.text };

	open_fixture(&f, &o);
	export_collapsed(&f.folded, PPROF_IO_TIME, &s);
	assert_int_equal(sink_finish(&s), 0);
	check_golden(&f.text, "builder.collapsed");
	close_fixture(&f);
}

static void labels_stand_below_the_process(void **state)
{
	struct folded_options o = { .root = "op,latency,absent" };
	struct fixture f;
	struct sink s = { .write = collect, .context = &f.text };

	open_fixture(&f, &o);
	export_collapsed(&f.folded, PPROF_IO_OPS, &s);
	assert_int_equal(sink_finish(&s), 0);
	buf_byte(&f.text, 0);
	assert_string_equal((char *)f.text.data, "app;op=read;latency=0 ns;absent=(none);Scan;ReadPage 3\n"
						 "app;op=write;latency=5.00 ms;absent=(none);commit?" "?<wal>\"& 4\n");
	close_fixture(&f);
}

static void hide_version(struct buf *b)
{
	char *at = memmem(b->data, b->len, "blkprof@" BLKPROF_VERSION, strlen("blkprof@" BLKPROF_VERSION));
	size_t len = strlen(BLKPROF_VERSION);

	assert_non_null(at);
	at += strlen("blkprof@");
	memmove(at, at + len, b->len - (size_t)(at + len - (char *)b->data));
	b->len -= len;
}

static void speedscope(void **state)
{
	struct folded_options o = { .files = true };
	struct fixture f;
	struct sink s = { .write = collect, .context = &f.text };

	open_fixture(&f, &o);
	export_speedscope(&f.folded, PPROF_IO_TIME, "a \"title\"\n", &s);
	assert_int_equal(sink_finish(&s), 0);
	hide_version(&f.text);
	check_golden(&f.text, "builder.speedscope.json");
	close_fixture(&f);
}

static void flame_graph(void **state)
{
	struct folded_options o = { 0 };
	struct fixture f;
	struct sink s = { .write = collect, .context = &f.text };
	struct flame *g;

	open_fixture(&f, &o);
	assert_int_equal(flame_new(&f.folded, PPROF_IO_TIME, &g), 0);
	export_svg(g, "a <title>", &s);
	flame_free(g);
	assert_int_equal(sink_finish(&s), 0);
	buf_byte(&f.text, 0);
	assert_non_null(strstr((char *)f.text.data, "<title>a &lt;title&gt;</title>"));
	assert_non_null(strstr((char *)f.text.data, "commit??&lt;wal&gt;&quot;&amp;\n7.00 ms, 73.68% (program)"));
	assert_non_null(strstr((char *)f.text.data, "<svg class=\"s\" x=\"0.0000%\" y=\"20\" width=\"100.0000%\""));
	assert_null(strstr((char *)f.text.data, "<wal>"));
	close_fixture(&f);
}

static void a_limit_stops_the_sink(void **state)
{
	struct folded_options o = { 0 };
	struct fixture f;
	struct sink s = { .limit = 20 };

	open_fixture(&f, &o);
	export_collapsed(&f.folded, PPROF_IO_TIME, &s);
	assert_int_equal(sink_finish(&s), -EFBIG);
	close_fixture(&f);
}

static struct top *ranked(const struct top_options *o, const struct buf *message)
{
	struct pprof_source source = { .fd = -1, .data = message->data, .len = message->len };
	const char *name = "input";
	struct top *t = top_new(o);
	struct error e = { { 0 } };

	assert_non_null(t);
	if (top_read(t, &source, &name, 1, NULL, &e))
		fail_msg("%s", e.text);
	return t;
}

static void functions_and_stacks(void **state)
{
	struct top_options o = { .what = TOP_FUNCTIONS | TOP_STACKS };
	struct pprof_builder *b = sample_profile();
	struct buf message = { 0 }, text = { 0 };
	struct error e = { { 0 } };
	struct top_row *rows;
	struct top *t;
	size_t n;

	pprof_encode(b, &message);
	t = ranked(&o, &message);
	assert_int_equal(top_functions(t, &rows, &n), 0);
	assert_int_equal(n, 4);
	assert_string_equal(rows[0].name, "commit?" "?<wal>\"&");
	assert_int_equal(rows[0].flat, 7000000);
	assert_int_equal(rows[0].flat_events, 4);
	assert_string_equal(rows[1].name, "ReadPage");
	assert_true(rows[1].inlined && !rows[1].called);
	assert_string_equal(rows[2].name, "Scan");
	assert_string_equal(rows[3].name, "app");
	assert_int_equal(rows[3].cum, 9500000);
	free(rows);
	assert_int_equal(top_print(t, 3, &text, &e), 0);
	check_golden(&text, "builder.top.txt");
	top_free(t);
	buf_free(&message);
	buf_free(&text);
	pprof_builder_free(b);
}

static void labels(void **state)
{
	struct top_options o = { .what = TOP_LABEL, .label = "latency", .type = "io_ops" };
	struct pprof_builder *b = sample_profile();
	struct buf message = { 0 };
	struct top_label *rows;
	struct top *t;
	size_t n;

	pprof_encode(b, &message);
	t = ranked(&o, &message);
	assert_int_equal(top_labels(t, &rows, &n), 0);
	assert_int_equal(n, 2);
	assert_string_equal(rows[0].name, "5.00 ms");
	assert_int_equal(rows[0].value, 4);
	assert_string_equal(rows[1].name, "0 ns");
	for (size_t i = 0; i < n; i++)
		free(rows[i].made);
	free(rows);
	top_free(t);
	buf_free(&message);
	pprof_builder_free(b);
}

static void a_difference_is_ranked_by_size(void **state)
{
	struct top_options o = { .what = TOP_FUNCTIONS };
	struct tiny t = tiny_default();
	struct buf message, text = { 0 };
	struct error e = { { 0 } };
	struct top *top;

	t.value = INT64_MIN;
	message = tiny_profile(&t);
	top = ranked(&o, &message);
	assert_true(top_is_diff(top));
	assert_int_equal(top_total(top), INT64_MAX);
	assert_int_equal(top_print(top, 0, &text, &e), 0);
	top_free(top);
	buf_free(&message);
	buf_free(&text);
}

static void recursion_counts_once(void **state)
{
	struct top_options o = { .what = TOP_FUNCTIONS };
	struct pprof_builder *b = pprof_builder_new("[node x]");
	uint32_t f = pprof_add_frame(b, "f"), stack[] = { f, f, f };
	int64_t v[PPROF_TYPES] = { 1, 10 };
	struct buf message = { 0 };
	struct top_row *rows;
	struct top *t;
	size_t n;

	pprof_add_sample(b, stack, 3, v, NULL, 0);
	pprof_encode(b, &message);
	t = ranked(&o, &message);
	assert_int_equal(top_functions(t, &rows, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].cum, 10);
	free(rows);
	top_free(t);
	buf_free(&message);
	pprof_builder_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collapsed),
		cmocka_unit_test(labels_stand_below_the_process),
		cmocka_unit_test(speedscope),
		cmocka_unit_test(flame_graph),
		cmocka_unit_test(a_limit_stops_the_sink),
		cmocka_unit_test(functions_and_stacks),
		cmocka_unit_test(labels),
		cmocka_unit_test(a_difference_is_ranked_by_size),
		cmocka_unit_test(recursion_counts_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
