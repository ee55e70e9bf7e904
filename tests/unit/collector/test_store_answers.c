// SPDX-License-Identifier: Apache-2.0
// What is made of a store beside profiles: values over time, lists of several stores, sums for metrics; and the limits of all.
#include "batches.h"

#include <inttypes.h>

#include "collector/tally.h"

#define LATER (4000000000ull * S)
#define BATCHES 60

struct fixture {
	char *directory[2];
	struct store *s[2]; // the second has some that the first has not, and some that it has too
	struct totals sum, of_first;
};

static struct store *open_quiet(const char *directory)
{
	struct store_options o = { .directory = directory, .no_background = true };
	struct error e = { 0 };
	struct store *s = NULL;

	if (store_open(&o, &s, &e))
		fail_msg("%s", e.text);
	return s;
}

static void add(struct totals *to, const struct totals *t)
{
	for (unsigned k = 0; k < PPROF_TYPES; k++)
		to->v[k] += t->v[k];
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	for (unsigned i = 0; i < 2; i++) {
		f->directory[i] = make_directory();
		f->s[i] = open_quiet(f->directory[i]);
	}
	for (unsigned i = 0; i < BATCHES; i++) {
		struct made m;

		make_batch(&m, i % 2 ? "n1" : "n2", 3, i / 2 + 1, T0 + i / 2 * 10 * S, T0 + i / 2 * 10 * S + 10 * S, 6, i, false);
		if (i % 3 != 1) {
			assert_int_equal(put_one(f->s[0], &m.b), 0);
			add(&f->of_first, &m.sum);
		}
		if (i % 3 != 0)
			assert_int_equal(put_one(f->s[1], &m.b), 0);
		add(&f->sum, &m.sum);
		free_batch(&m);
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 2; i++) {
		store_close(f->s[i]);
		remove_tree(f->directory[i]);
		free(f->directory[i]);
	}
	free(f);
	return 0;
}

static void maintain(struct store *s)
{
	struct error e = { 0 };
	int r;

	while ((r = store_maintain(s, LATER, &e)) > 0)
		;
	assert_int_equal(r, 0);
}

static struct store_query everything(void)
{
	return (struct store_query){ .from = T0, .to = T0 + 400 * S };
}

// ---- values over time ----

static void sums_are(const struct fixture *f, uint64_t step, const char *by, unsigned names)
{
	struct store_query q = everything();
	struct store_series_set *set;
	struct error e = { "" };
	struct totals t = { 0 };
	uint64_t seconds = 0;

	if (store_series(f->s[0], &q, step, by, &set, &e))
		fail_msg("%s", e.text);
	assert_int_equal(set->n, names);
	assert_int_equal(set->buckets, (400 * S - 1) / step + 1);
	for (size_t i = 0; i < set->buckets; i++) {
		seconds += set->node_seconds_ns[i];
		for (size_t n = 0; n < set->n; n++)
			for (unsigned k = 0; k < PPROF_TYPES; k++)
				t.v[k] += set->series[n].point[i].value[k];
	}
	for (unsigned k = 0; k < PPROF_TYPES; k++)
		assert_int_equal(t.v[k], f->of_first.v[k]);
	assert_int_equal(seconds, 40 * 10 * S);
	for (size_t n = 1; n < set->n; n++)
		assert_true(strcmp(set->series[n - 1].name, set->series[n].name) < 0);
	store_series_free(set);
}

static void series_add_up(void **state)
{
	struct fixture *f = *state;

	for (unsigned round = 0; round < 2; round++) {
		sums_are(f, 7 * S, NULL, 1);
		sums_are(f, 60 * S, "device", 2);
		sums_are(f, 3600 * S, "node", 2);
		sums_are(f, 60 * S + 1, "service", SERVICES);
		sums_are(f, 100 * S, "nothing", 1);
		maintain(f->s[0]);
	}
}

static void series_are_bounded(void **state)
{
	struct fixture *f = *state;
	struct store_query q = everything();
	struct store_series_set *set;
	struct error e;

	assert_int_equal(store_series(f->s[0], &q, 400 * S / (STORE_BUCKETS_MAX + 1), NULL, &set, &e), -ERANGE);
	assert_int_equal(store_series(f->s[0], &q, 0, NULL, &set, &e), -EINVAL);
	q.from = T0 + 1000 * S;
	q.to = T0 + 2000 * S;
	assert_int_equal(store_series(f->s[0], &q, 100 * S, NULL, &set, &e), -ENODATA);
}

// ---- limits ----

struct patience {
	unsigned left, asked;
};

static int impatient(void *context, struct error *e)
{
	struct patience *p = context;

	p->asked++;
	if (p->left--)
		return 0;
	p->left = 0;
	return error_set(e, -ETIMEDOUT, "that took too long");
}

static int count_item(void *context, const char *name, uint64_t from, uint64_t to, uint64_t windows)
{
	(void)name;
	(void)from;
	(void)to;
	(void)windows;
	++*(unsigned *)context;
	return 0;
}

static void queries_end_when_told(void **state)
{
	struct fixture *f = *state;
	struct patience p = { 0 };
	struct store_limits limits = { .go_on = impatient, .context = &p };
	struct store_query q = everything();
	struct store_series_set *set;
	struct error e;
	struct buf gz = { 0 };
	unsigned listed = 0;

	q.limits = &limits;
	for (unsigned left = 0; left < 30; left += 7) {
		p.left = left;
		e.text[0] = 0;
		assert_int_equal(store_query_many(f->s, 2, &q, &gz, NULL, &e), -ETIMEDOUT);
		assert_string_equal(e.text, "that took too long");
		p.left = left;
		assert_int_equal(store_list(f->s[0], STORE_WINDOWS, &q, count_item, &listed, &e), -ETIMEDOUT);
		p.left = left;
		assert_int_equal(store_series(f->s[0], &q, 10 * S, NULL, &set, &e), -ETIMEDOUT);
	}
	assert_int_equal(listed, 0);
	assert_int_equal(gz.len, 0);
	p.left = UINT32_MAX;
	assert_int_equal(store_query_many(f->s, 2, &q, &gz, NULL, &e), 0);
	assert_true(p.asked > 60);
	buf_free(&gz);
}

static void queries_have_a_budget(void **state)
{
	struct fixture *f = *state;
	struct store_limits limits = { .memory = 20000 };
	struct store_query q = everything();
	struct error e;
	struct buf gz = { 0 };

	q.limits = &limits;
	assert_int_equal(store_query(f->s[0], &q, &gz, NULL, &e), -E2BIG);
	assert_non_null(strstr(e.text, "ask for a shorter"));
	// Enough for the sums, not for the names.
	limits.memory = 100000;
	assert_int_equal(store_query(f->s[0], &q, &gz, NULL, &e), -E2BIG);
	assert_non_null(strstr(e.text, "ask for a shorter"));
	assert_int_equal(gz.len, 0);
	limits.memory = 16 << 20;
	assert_int_equal(store_query(f->s[0], &q, &gz, NULL, &e), 0);
	buf_free(&gz);
}

static void the_default_type_is_as_asked(void **state)
{
	struct fixture *f = *state;
	struct store_query q = everything();
	struct error e = { "" };
	struct buf gz = { 0 };
	struct pprof_reader *r = pprof_reader_new(NULL);
	struct pprof_source source = { .fd = -1 };
	const struct profile *p;

	q.type = "bytes";
	assert_int_equal(store_query(f->s[0], &q, &gz, NULL, &e), -EINVAL);
	assert_non_null(strstr(e.text, "read_bytes"));
	q.type = "read_bytes";
	assert_int_equal(store_query(f->s[0], &q, &gz, NULL, &e), 0);
	source.data = gz.data;
	source.len = gz.len;
	assert_int_equal(pprof_reader_add(r, &source, &e), 0);
	p = pprof_reader_finish(r);
	assert_string_equal(profile_text(p, p->default_type), "read_bytes");
	pprof_reader_free(r);
	buf_free(&gz);
}

// ---- lists ----

struct listed {
	char text[200];
	unsigned n;
	uint64_t windows;
};

static int note_item(void *context, const char *name, uint64_t from, uint64_t to, uint64_t windows)
{
	struct listed *l = context;

	assert_true(strcmp(name, l->text) >= 0); // in order
	snprintf(l->text, sizeof(l->text), "%s", name);
	assert_true(from >= T0 && to <= T0 + 300 * S && from < to);
	l->n++;
	l->windows += windows;
	return 0;
}

static struct listed list(struct fixture *f, unsigned stores, enum store_list what)
{
	struct store_query q = everything();
	struct listed l = { "", 0, 0 };
	struct error e;

	assert_int_equal(store_list_many(f->s, stores, what, &q, note_item, &l, &e), 0);
	return l;
}

static void lists_have_each_thing_once(void **state)
{
	struct fixture *f = *state;

	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(list(f, 1, STORE_NODES).n, 2);
		assert_int_equal(list(f, 1, STORE_NODES).windows, 40);
		assert_int_equal(list(f, 2, STORE_NODES).n, 2);
		assert_int_equal(list(f, 2, STORE_NODES).windows, BATCHES);
		assert_int_equal(list(f, 2, STORE_SERVICES).n, SERVICES);
		assert_int_equal(list(f, 2, STORE_SERVICES).windows, SERVICES * BATCHES);
		assert_int_equal(list(f, 2, STORE_WINDOWS).windows, BATCHES);
		if (round < 2)
			maintain(f->s[round]);
	}
}

// ---- for metrics ----

static uint64_t sum_of(const char *text, const char *metric)
{
	uint64_t sum = 0;

	for (const char *at = text; (at = strstr(at, metric)); at++)
		if (at[strlen(metric)] == '{')
			sum += strtoull(strstr(at, "} ") + 2, NULL, 10);
	return sum;
}

static void what_is_received_is_counted(void **state)
{
	struct fixture *f = *state;
	struct totals sum = { 0 };
	struct tally *t;
	struct error e;
	struct buf out = { 0 };
	struct made m;

	assert_int_equal(tally_new(f->s[0], &t, &e), 0);
	for (unsigned i = 0; i < 20; i++) {
		make_batch(&m, "n3", 7, i + 1, T0 + i * 10 * S, T0 + i * 10 * S + 10 * S, 6, i, false);
		assert_int_equal(put_one(f->s[0], &m.b), 0);
		assert_int_equal(put_one(f->s[0], &m.b), -EEXIST); // a duplicate is not received twice
		add(&sum, &m.sum);
		free_batch(&m);
		if (i % 5 == 0)
			assert_int_equal(tally_look(t, &e), 0);
	}
	maintain(f->s[0]); // sums of what was received are not received
	assert_int_equal(tally_look(t, &e), 0);
	assert_int_equal(tally_look(t, &e), 0);
	tally_print(t, &out);
	buf_byte(&out, 0);
	assert_int_equal(sum_of((char *)out.data, "blkprof_collector_io_operations_total"), sum.v[PPROF_IO_OPS]);
	assert_int_equal(sum_of((char *)out.data, "blkprof_collector_io_bytes_total"), sum.v[PPROF_READ_BYTES] + sum.v[PPROF_WRITE_BYTES]);
	assert_non_null(strstr((char *)out.data, "{service=\"shop/web/nginx\",device=\"nvme0n1\",op=\"read\"} "));
	assert_non_null(strstr((char *)out.data, "io_unread_total 0\n"));
	buf_free(&out);
	tally_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(series_add_up, setup, teardown),
		cmocka_unit_test_setup_teardown(series_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(queries_end_when_told, setup, teardown),
		cmocka_unit_test_setup_teardown(queries_have_a_budget, setup, teardown),
		cmocka_unit_test_setup_teardown(the_default_type_is_as_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_have_each_thing_once, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_received_is_counted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
