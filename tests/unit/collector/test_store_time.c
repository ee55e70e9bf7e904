// SPDX-License-Identifier: Apache-2.0
// Queries partition time, with and without roll-ups, late batches and retention: parts add up to what was put.
#include "batches.h"

#include <sqlite3.h>

#define BATCHES 300

struct put {
	uint64_t start, end;
	struct totals sum;
};

struct fixture {
	char *directory;
	struct store *s;
	struct put put[BATCHES];
	unsigned n;
	uint64_t random, sequence[2], at[2];
};

static struct store *open_quiet(const char *directory, uint64_t max_age, uint64_t max_size)
{
	struct store_options o = { .directory = directory, .no_background = true, .max_age_ns = max_age, .max_size = max_size };
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
	f->s = open_quiet(f->directory, 0, 0);
	f->random = 42;
	f->at[0] = T0 + 5 * S;
	f->at[1] = T0 + 100 * S + 123456789;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	store_close(f->s);
	remove_tree(f->directory);
	free(f->directory);
	free(f);
	return 0;
}

// Until there is nothing to do; by then all is due.
static void maintain(struct store *s, uint64_t now)
{
	struct error e = { 0 };
	int r;

	while ((r = store_maintain(s, now, &e)) > 0)
		;
	if (r)
		fail_msg("%s", e.text);
}

#define LATER (4000000000ull * S)

// Windows of a node follow each other, sometimes with a hole, of 7 to 40 s: minutes and hours cut them.
static void put_some(struct fixture *f, unsigned n, bool pids)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned node = (unsigned)(next_random(&f->random) % 2);
		uint64_t length = (7 + next_random(&f->random) % 34) * S + next_random(&f->random) % S;
		struct put *p = &f->put[f->n++];
		struct made m;

		if (next_random(&f->random) % 10 == 0)
			f->at[node] += 60 * S;
		p->start = f->at[node];
		p->end = f->at[node] += length;
		make_batch(&m, node ? "n2" : "n1", (uint8_t)node, ++f->sequence[node], p->start, p->end, 6, next_random(&f->random), pids);
		assert_int_equal(put_one(f->s, &m.b), 0);
		p->sum = m.sum;
		free_batch(&m);
	}
}

static struct totals all(const struct fixture *f)
{
	struct totals t = { 0 };

	for (unsigned i = 0; i < f->n; i++)
		for (unsigned k = 0; k < PPROF_TYPES; k++)
			t.v[k] += f->put[i].sum.v[k];
	return t;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void parts_add_up(struct fixture *f, unsigned parts)
{
	uint64_t cut[32], from = T0, to = (f->at[0] > f->at[1] ? f->at[0] : f->at[1]) + 1;
	struct totals want = all(f), sum = { 0 };

	cut[0] = from;
	for (unsigned i = 1; i < parts; i++)
		cut[i] = from + (uint64_t)((double)next_random(&f->random) / 2147483648.0 * (double)(to - from));
	cut[parts] = to;
	qsort(cut, parts + 1, sizeof(*cut), compare);
	for (unsigned i = 0; i < parts; i++) {
		struct totals t = query_totals(f->s, (struct store_query){ .from = cut[i], .to = cut[i + 1] + (cut[i] == cut[i + 1]) }, NULL,
					       NULL);

		for (unsigned k = 0; k < PPROF_TYPES; k++)
			sum.v[k] += cut[i] == cut[i + 1] ? 0 : t.v[k];
	}
	for (unsigned k = 0; k < PPROF_TYPES; k++)
		assert_int_equal(sum.v[k], want.v[k]);
}

static void queries_partition_time(void **state)
{
	struct fixture *f = *state;

	put_some(f, 60, false);
	for (unsigned i = 1; i < 6; i++)
		parts_add_up(f, i * 3);
	maintain(f->s, LATER);
	for (unsigned i = 1; i < 6; i++)
		parts_add_up(f, i * 3);
	// New windows beside roll-ups, first without them in it, then with.
	put_some(f, 60, false);
	for (unsigned i = 1; i < 4; i++)
		parts_add_up(f, i * 5);
	maintain(f->s, LATER);
	for (unsigned i = 1; i < 4; i++)
		parts_add_up(f, i * 5);
}

static void late_batches_are_added_once(void **state)
{
	struct fixture *f = *state;
	struct made m;

	put_some(f, 100, false);
	maintain(f->s, LATER);
	for (unsigned i = 0; i < 20; i++) {
		struct put *p = &f->put[f->n++];

		*p = f->put[i * 3];
		make_batch(&m, "n1", 77, i + 1, p->start, p->end, 6, i, false);
		p->sum = m.sum;
		assert_int_equal(put_one(f->s, &m.b), 0);
		assert_int_equal(put_one(f->s, &m.b), -EEXIST);
		free_batch(&m);
		if (i % 5 == 0)
			parts_add_up(f, 7);
		if (i % 7 == 0)
			maintain(f->s, LATER);
	}
	parts_add_up(f, 9);
	maintain(f->s, LATER);
	parts_add_up(f, 9);
}

static void pids_are_kept_while_windows_are(void **state)
{
	struct fixture *f = *state;
	struct store_query q = { .from = T0, .to = T0 + 7200 * S };
	struct totals before, after;

	put_some(f, 40, true);
	before = query_totals(f->s, q, NULL, NULL);
	maintain(f->s, LATER);
	after = query_totals(f->s, q, NULL, NULL);
	assert_int_equal(before.samples, after.samples);
	parts_add_up(f, 9);
}

static void sqlite(const char *directory, const char *sql)
{
	char *path;
	sqlite3 *db;

	assert_true(asprintf(&path, "%s/blkprof.db", directory) > 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	free(path);
}

static void rollups_stand_for_what_is_gone(void **state)
{
	static const char *const levels[] = { "0", "0, 1", "0, 1, 2" };
	struct fixture *f = *state;

	put_some(f, 150, true);
	maintain(f->s, LATER);
	for (unsigned i = 0; i < 3; i++) {
		char sql[200];

		snprintf(sql, sizeof(sql), "DELETE FROM columns WHERE id / 4096 IN (SELECT id FROM spans WHERE level IN (%s));"
			 "DELETE FROM spans WHERE level IN (%s)", levels[i], levels[i]);
		store_close(f->s);
		sqlite(f->directory, sql);
		f->s = open_quiet(f->directory, 0, 0);
		parts_add_up(f, 1);
		parts_add_up(f, 11);
	}
	// What comes now is beside the roll-ups, then in them.
	put_some(f, 50, false);
	parts_add_up(f, 11);
	maintain(f->s, LATER);
	parts_add_up(f, 11);
}

static int64_t number(struct fixture *f, const char *sql)
{
	char *path;
	sqlite3 *db;
	sqlite3_stmt *st;
	int64_t n;

	assert_true(asprintf(&path, "%s/blkprof.db", f->directory) > 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	free(path);
	return n;
}

static int64_t count(struct fixture *f, const char *what)
{
	char sql[100];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", what);
	return number(f, sql);
}

static void age_takes_everything_but_what_was_seen(void **state)
{
	struct fixture *f = *state;
	struct made m;

	put_some(f, 100, true);
	maintain(f->s, LATER);
	assert_true(count(f, "stacks") > 100 && count(f, "spans") > 100);
	store_close(f->s);
	f->s = open_quiet(f->directory, 1000 * S, 0);
	maintain(f->s, LATER + 7200 * S);
	assert_int_equal(count(f, "spans"), 0);
	assert_int_equal(count(f, "columns"), 0);
	assert_int_equal(count(f, "pending"), 0);
	assert_int_equal(count(f, "stacks"), 0);
	assert_int_equal(count(f, "locations"), 0);
	assert_int_equal(count(f, "texts"), 0);
	assert_int_equal(count(f, "labels"), 0);
	assert_int_equal(count(f, "mappings"), 0);
	// A duplicate is one even though its data is gone; what is new is stored, with what it refers to.
	make_batch(&m, "n1", 0, 1, T0, T0 + 10 * S, 6, 1, false);
	assert_int_equal(put_one(f->s, &m.b), -EEXIST);
	m.b.sequence = 100000;
	assert_int_equal(put_one(f->s, &m.b), 0);
	assert_int_equal(query_totals(f->s, (struct store_query){ .from = T0, .to = T0 + 10 * S }, NULL, NULL).v[0], m.sum.v[0]);
	free_batch(&m);
}

static void size_takes_the_oldest_windows_first(void **state)
{
	struct fixture *f = *state;
	uint64_t end;

	for (unsigned i = 0; i < 3; i++) {
		put_some(f, 100, false);
		f->at[0] += 7200 * S;
		f->at[1] += 7200 * S;
	}
	end = f->at[0];
	maintain(f->s, LATER);
	store_close(f->s);
	f->s = open_quiet(f->directory, 0, 1);
	maintain(f->s, end + 48 * 3600 * S);
	// The pressure takes all there is.
	assert_int_equal(count(f, "spans"), 0);
}

static void a_moderate_size_keeps_sums(void **state)
{
	struct fixture *f = *state;
	struct totals want, t;
	struct store_coverage c = { 0 };
	int64_t windows, used, of_windows;

	put_some(f, 150, false);
	f->at[0] += 7200 * S;
	f->at[1] += 7200 * S;
	put_some(f, 150, false);
	maintain(f->s, LATER);
	windows = count(f, "spans WHERE level = 0");
	want = all(f);
	store_close(f->s);
	used = number(f, "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size");
	of_windows = number(f, "SELECT sum(length(data)) FROM columns WHERE id / 4096 IN (SELECT id FROM spans WHERE level = 0)");
	f->s = open_quiet(f->directory, 0, (uint64_t)(used - of_windows / 4) * 16 / 15);
	for (unsigned i = 0; i < 3; i++)
		maintain(f->s, LATER);
	t = query_totals(f->s, (struct store_query){ .from = T0, .to = f->at[0] + f->at[1] }, &c, NULL);
	assert_true(count(f, "spans WHERE level = 0") < windows);
	assert_int_equal(t.v[0], want.v[0]);
	assert_int_equal(c.windows, 300);
}

static void stores_are_merged_without_duplicates(void **state)
{
	struct fixture *f = *state;
	char *directory = make_directory();
	struct store *both[2] = { f->s, open_quiet(directory, 0, 0) };
	struct store_query q = { .from = T0, .to = T0 + 7200 * S };
	struct store_coverage c;
	struct error e;
	struct buf gz = { 0 };
	struct totals sum = { 0 }, t;

	for (unsigned i = 0; i < 60; i++) {
		struct made m;

		make_batch(&m, i % 2 ? "n1" : "n2", 3, i / 2 + 1, T0 + i / 2 * 10 * S, T0 + i / 2 * 10 * S + 10 * S, 6, i, false);
		if (i % 3 != 1)
			assert_int_equal(put_one(both[0], &m.b), 0);
		if (i % 3 != 0)
			assert_int_equal(put_one(both[1], &m.b), 0);
		for (unsigned k = 0; k < PPROF_TYPES; k++)
			sum.v[k] += m.sum.v[k];
		free_batch(&m);
	}
	for (unsigned round = 0; round < 2; round++) {
		gz.len = 0;
		assert_int_equal(store_query_many(both, 2, &q, &gz, &c, &e), 0);
		t = totals_of(&gz, NULL);
		for (unsigned k = 0; k < PPROF_TYPES; k++)
			assert_int_equal(t.v[k], sum.v[k]);
		assert_int_equal(c.windows, 60);
		assert_int_equal(c.ambiguous, 0);
		maintain(both[round], LATER);
	}
	buf_free(&gz);
	store_close(both[1]);
	remove_tree(directory);
	free(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(queries_partition_time, setup, teardown),
		cmocka_unit_test_setup_teardown(late_batches_are_added_once, setup, teardown),
		cmocka_unit_test_setup_teardown(pids_are_kept_while_windows_are, setup, teardown),
		cmocka_unit_test_setup_teardown(rollups_stand_for_what_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(age_takes_everything_but_what_was_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(size_takes_the_oldest_windows_first, setup, teardown),
		cmocka_unit_test_setup_teardown(a_moderate_size_keeps_sums, setup, teardown),
		cmocka_unit_test_setup_teardown(stores_are_merged_without_duplicates, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
