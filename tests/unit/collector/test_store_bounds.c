// SPDX-License-Identifier: Apache-2.0
// What an agent with a key may do to a store: it costs the others nothing, and takes no more than is said.
#include <time.h>

#include "batches.h"
#include "collector/store_internal.h"
#include "collector/store_taken.h"

#define NODE_ROOM 40

struct fixture {
	char *directory;
	struct store *s;
	struct made made; // one window, whose identity is changed
};

static struct store *open_bounded(const char *directory, uint64_t max_size)
{
	struct store_options o = { .directory = directory, .no_background = true, .max_size = max_size, .max_nodes = 3,
				   .max_entries = NODE_ROOM, .max_windows = 10 };
	struct error e = { 0 };
	struct store *s = NULL;

	if (store_open(&o, &s, &e))
		fail_msg("%s", e.text);
	return s;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->directory = make_directory();
	f->s = open_bounded(f->directory, 0);
	make_batch(&f->made, "n1", 1, 1, T0, T0 + 10 * S, 6, 1, false);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	store_close(f->s);
	free_batch(&f->made);
	remove_tree(f->directory);
	free(f->directory);
	free(f);
	return 0;
}

static int put(struct fixture *f, const char *node, unsigned instance, uint64_t sequence, uint64_t start, struct error *why)
{
	struct batch b = f->made.b;
	const struct batch *list = &b;
	struct error *whys = why;
	struct error e;
	int result = 0;

	b.node = node;
	memcpy(b.instance, &instance, sizeof(instance));
	b.sequence = sequence;
	b.start = start;
	b.end = start + 10 * S;
	if (store_put_why(f->s, &list, 1, &result, why ? &whys : NULL, &e))
		fail_msg("%s", e.text);
	return result;
}

static int put_gap(struct fixture *f, uint64_t first, uint64_t last)
{
	struct batch b = { .kind = BATCH_GAP, .node = "n1", .gap_first = first, .sequence = last, .start = T0, .end = T0 + S };
	const struct batch *list = &b;
	unsigned instance = 0;
	int result = 0;

	memcpy(b.instance, f->made.b.instance, sizeof(b.instance));
	memcpy(b.instance, &instance, sizeof(instance));
	assert_int_equal(store_put(f->s, &list, 1, &result, NULL), 0);
	return result;
}

static void starts_of_a_node_are_bounded(void **state)
{
	struct fixture *f = *state;
	struct error why = { 0 };
	unsigned n = 0;

	// Each start takes an entry, and its numbers one.
	while (n < 1000 && !put(f, "n1", n, 1, T0 + n * 10 * S, NULL))
		n++;
	assert_int_equal(n, NODE_ROOM / 2);
	assert_int_equal(put(f, "n1", n, 1, T0, &why), -EUSERS);
	assert_non_null(strstr(why.text, "start"));
	// What it has goes on, a duplicate is one, and others have nothing to do with it.
	assert_int_equal(put(f, "n1", n - 1, 2, T0 + n * 10 * S, NULL), 0);
	assert_int_equal(put(f, "n1", n - 1, 1, T0 + n * 10 * S, NULL), -EEXIST);
	assert_int_equal(put(f, "n2", n, 1, T0, NULL), 0);
	// After a restart too.
	store_close(f->s);
	f->s = open_bounded(f->directory, 0);
	assert_int_equal(put(f, "n1", n, 1, T0, NULL), -EUSERS);
}

static void numbers_of_a_node_are_bounded(void **state)
{
	struct fixture *f = *state;
	uint64_t n = 1;

	while (n < 1000 && !put(f, "n1", 0, 2 * n, T0 + n * 10 * S, NULL))
		n++;
	assert_int_equal(n, NODE_ROOM);
	assert_int_equal(put_gap(f, 1001, 1002), -EUSERS);
	// What joins two ranges makes room for one more.
	assert_int_equal(put(f, "n1", 0, 3, T0, NULL), 0);
	assert_int_equal(put_gap(f, 1001, 1002), 0);
	assert_int_equal(put_gap(f, 1005, 1006), -EUSERS);
}

// The largest numbers that a batch may have: nothing counts beyond them.
static void the_last_number_ends(void **state)
{
	struct fixture *f = *state;
	const uint64_t last = INT64_MAX - 1;

	assert_int_equal(put_gap(f, last - 3, last), 0);
	assert_int_equal(put_gap(f, last - 3, last), -EEXIST);
	assert_int_equal(put(f, "n1", 0, last, T0, NULL), 0);
	assert_int_equal(put(f, "n1", 0, last, T0, NULL), -EEXIST);
	assert_int_equal(put_gap(f, 1, last), 0);
}

static void nodes_are_bounded(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(put(f, "n1", 1, 1, T0, NULL), 0);
	assert_int_equal(put(f, "n2", 1, 1, T0, NULL), 0);
	assert_int_equal(put(f, "n3", 1, 1, T0, NULL), 0);
	assert_int_equal(put(f, "n4", 1, 1, T0, NULL), -EUSERS);
	assert_int_equal(put(f, "n3", 1, 2, T0 + 10 * S, NULL), 0);
}

static void windows_of_a_minute_are_bounded(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 1; i <= 10; i++)
		assert_int_equal(put(f, "n1", 1, i, T0 + i, NULL), 0);
	assert_int_equal(put(f, "n1", 1, 11, T0 + 11, NULL), -EUSERS);
	assert_int_equal(put(f, "n1", 1, 10, T0 + 10, NULL), -EEXIST);
	assert_int_equal(put(f, "n1", 1, 11, T0 + 60 * S, NULL), 0);
	assert_int_equal(put(f, "n2", 1, 11, T0 + 11, NULL), 0);
}

// The size holds whatever the age of what is there, and what went for ever is told.
static void size_holds_for_the_last_hours(void **state)
{
	struct fixture *f = *state;
	uint64_t minutes = 90, now = T0 + minutes * 60 * S, want = 0;
	struct store_query q = { .from = T0, .to = now };
	struct store_coverage c;
	struct buf comments = { 0 };
	struct error e;

	for (uint64_t i = 0; i < minutes * 6; i++, want++)
		assert_int_equal(put(f, "n1", 1, i + 1, T0 + i * 10 * S, NULL), 0);
	query_totals(f->s, q, &c, NULL);
	assert_int_equal(c.windows, want);
	store_close(f->s);
	f->s = open_bounded(f->directory, 1);
	while (store_maintain(f->s, now, &e) > 0)
		;
	// What is new is there, next to what is lost; the gap is one entry.
	assert_int_equal(put(f, "n1", 1, want + 1, now, NULL), 0);
	q.to += 10 * S;
	query_totals(f->s, q, &c, &comments);
	buf_byte(&comments, 0);
	assert_int_equal(c.windows, 1);
	assert_int_equal(c.lost, want);
	assert_true(c.lost_ns == minutes * 60 * S);
	assert_non_null(strstr((char *)comments.data, "gap batches=540 seconds=5400.000"));
	assert_int_equal(put(f, "n1", 1, 5, T0, NULL), -EEXIST);
	buf_free(&comments);
}

// Requests of a node whose clock was not set yet, or is far ahead, are no exception.
static void size_holds_for_requests_of_any_time(void **state)
{
	static const char document[] = "{\"id\":\"a\"}";
	const struct batch_profile record = { .data = document, .size = sizeof(document) - 1 };
	const uint64_t starts[] = { 0, T0, INT64_MAX - S };
	struct fixture *f = *state;
	int64_t n = -1;
	struct error e;

	for (unsigned i = 0; i < 3; i++) {
		struct batch b = { .kind = BATCH_REQUESTS, .node = "n1", .sequence = i + 1, .start = starts[i], .end = starts[i] + S,
				   .n_requests = 1, .requests = &record };
		const struct batch *list = &b;
		int result = 0;

		memcpy(b.instance, f->made.b.instance, sizeof(b.instance));
		assert_int_equal(store_put(f->s, &list, 1, &result, NULL), 0);
		assert_int_equal(result, 0);
	}
	store_close(f->s);
	f->s = open_bounded(f->directory, 1);
	while (store_maintain(f->s, T0 + 3600 * S, &e) > 0)
		;
	assert_int_equal(db_number(f->s->db, "SELECT count(*) FROM requests", &n, &e), 0);
	assert_int_equal(n, 0);
}

// The oldest first, and no more than needed.
static void size_takes_the_oldest_of_the_last_hours(void **state)
{
	struct fixture *f = *state;
	uint64_t minutes = 60, now = T0 + minutes * 60 * S;
	struct store_coverage c;
	struct error e;
	uint64_t file, log;

	for (uint64_t i = 0; i < minutes * 6; i++)
		assert_int_equal(put(f, "n1", 1, i + 1, T0 + i * 10 * S, NULL), 0);
	while (store_maintain(f->s, T0, &e) > 0)
		;
	store_close(f->s);
	f->s = open_bounded(f->directory, 0);
	store_size(f->s, &file, &log);
	store_close(f->s);
	f->s = open_bounded(f->directory, file * 3 / 4);
	while (store_maintain(f->s, T0, &e) > 0)
		;
	query_totals(f->s, (struct store_query){ .from = T0, .to = now }, &c, NULL);
	assert_in_range(c.windows, 1, minutes * 6 - 1);
	assert_int_equal(c.windows + c.lost, minutes * 6);
	query_totals(f->s, (struct store_query){ .from = now - 60 * S, .to = now }, &c, NULL);
	assert_int_equal(c.windows, 6);
	assert_int_equal(c.lost, 0);
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// Every second number, the last first: they never join.
static double take(uint64_t n)
{
	struct taken t = { 0 };
	double before = cpu_seconds();

	for (uint64_t i = n; i; i--)
		assert_int_equal(taken_add(&t, (struct source){ 1, 2 * i, 2 * i }), 0);
	for (uint64_t i = 1; i <= n; i++) {
		assert_true(taken_has(&t, (struct source){ 1, 2 * i, 2 * i }));
		assert_false(taken_meets(&t, (struct source){ 1, 2 * i + 1, 2 * i + 1 }));
		assert_false(taken_has(&t, (struct source){ 2, 2 * i, 2 * i }));
	}
	taken_free(&t);
	return cpu_seconds() - before;
}

// Sixteen times as many took 256 times as long.
static void ranges_that_never_join_are_not_quadratic(void **state)
{
	double some, many;

	(void)state;
	take(20000);
	some = take(20000) + take(20000);
	many = take(320000);
	assert_true(many < some / 2 * 100);
}

static void ranges_are_what_was_added(void **state)
{
	uint64_t random = 7;

	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		bool has[3][202] = { { false } };
		struct taken t = { 0 };
		struct sources list = { 0 };

		for (unsigned i = 0; i < 60; i++) {
			unsigned agent = (unsigned)next_random(&random) % 3;
			uint64_t first = 1 + next_random(&random) % 200, last = first + next_random(&random) % 4;

			last = last > 200 ? 200 : last;
			assert_int_equal(taken_add(&t, (struct source){ agent, first, last }), 0);
			for (uint64_t k = first; k <= last; k++)
				has[agent][k] = true;
		}
		for (unsigned agent = 0; agent < 3; agent++)
			for (uint64_t k = 1; k <= 200; k++) {
				const struct source *from = taken_from(&t, agent, k);
				uint64_t next = k;

				assert_int_equal(taken_has(&t, (struct source){ agent, k, k }), has[agent][k]);
				assert_int_equal(taken_meets(&t, (struct source){ agent, k, k + 1 }), has[agent][k] || has[agent][k + 1]);
				while (next <= 200 && !has[agent][next])
					next++;
				assert_int_equal(from != NULL, next <= 200);
				if (from)
					assert_true(from->last >= next && (from->first == next || has[agent][k]));
			}
		assert_int_equal(taken_list(&t, &list), 0);
		for (size_t i = 1; i < list.n; i++)
			assert_true(list.source[i - 1].agent < list.source[i].agent ||
				    list.source[i - 1].last + 1 < list.source[i].first);
		sources_free(&list);
		taken_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(starts_of_a_node_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_of_a_node_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(the_last_number_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(nodes_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(windows_of_a_minute_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(size_holds_for_the_last_hours, setup, teardown),
		cmocka_unit_test_setup_teardown(size_takes_the_oldest_of_the_last_hours, setup, teardown),
		cmocka_unit_test_setup_teardown(size_holds_for_requests_of_any_time, setup, teardown),
		cmocka_unit_test(ranges_that_never_join_are_not_quadratic),
		cmocka_unit_test(ranges_are_what_was_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
