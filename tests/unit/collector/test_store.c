// SPDX-License-Identifier: Apache-2.0
// Batches in, profiles out: sums, duplicates, gaps, refusals, read-only opens.
#include "batches.h"

struct fixture {
	char *directory;
	struct store *s;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->directory = make_directory();
	f->s = open_store_with(f->directory, false, 0, 0);
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

static void same_values(const struct totals *a, const struct totals *b)
{
	for (unsigned i = 0; i < PPROF_TYPES; i++)
		assert_int_equal(a->v[i], b->v[i]);
}

static void what_is_put_comes_out(void **state)
{
	struct fixture *f = *state;
	struct store_query q = { .from = T0, .to = T0 + 10 * S };
	struct store_coverage c = { 0 };
	struct buf comments = { 0 };
	struct made m;
	struct totals t;

	make_batch(&m, "n1", 1, 1, T0, T0 + 10 * S, 50, 7, true);
	assert_int_equal(put_one(f->s, &m.b), 0);
	t = query_totals(f->s, q, &c, &comments);
	buf_byte(&comments, 0);
	same_values(&t, &m.sum);
	assert_int_equal(t.time, T0);
	assert_int_equal(t.duration, 10 * S);
	assert_int_equal(c.node_seconds_ns, 10 * S);
	assert_int_equal(c.windows, 1);
	assert_int_equal(c.straddling, 0);
	assert_non_null(strstr((char *)comments.data, "lost node=n1 cause=ring_full count=2 (samples)"));
	assert_non_null(strstr((char *)comments.data, "total node=n1 device=sda op=write ops="));
	for (unsigned i = 0; i < SERVICES; i++) {
		q.service = service_names[i];
		t = query_totals(f->s, q, NULL, NULL);
		same_values(&t, &m.by_service[i]);
	}
	assert_false(c.empty);
	q.service = "misspelled.service";
	query_totals(f->s, q, &c, NULL);
	assert_true(c.empty);
	q.service = "nobody";
	assert_int_equal(query_totals(f->s, q, NULL, NULL).samples, 0);
	buf_free(&comments);
	free_batch(&m);
}

// What was read for one batch is used again for the next, which may have more services.
static void batches_grow(void **state)
{
	struct fixture *f = *state;
	struct batch_profile profiles[64];
	char names[64][16];

	for (unsigned n = 1; n <= 64; n *= 2) {
		struct made m;

		make_batch(&m, "n1", 1, n, T0 + n * S, T0 + (n + 1) * S, 200, n, true);
		for (unsigned i = 0; i < n; i++) {
			snprintf(names[i], sizeof(names[i]), "service-%u", i);
			profiles[i] = (struct batch_profile){ names[i], m.gz[i % SERVICES].data, m.gz[i % SERVICES].len };
		}
		m.b.profiles = profiles;
		m.b.n_profiles = n;
		assert_int_equal(put_one(f->s, &m.b), 0);
		free_batch(&m);
	}
}

static void filters_partition(void **state)
{
	struct fixture *f = *state;
	struct store_query q = { .from = T0, .to = T0 + 10 * S };
	struct batch_label labels[] = { { "dc", "fra" } }, ask = { "op", "read" };
	struct totals a, b;
	struct made m;

	make_batch(&m, "n1", 1, 1, T0, T0 + 10 * S, 50, 9, true);
	m.b.labels = labels;
	m.b.n_labels = 1;
	assert_int_equal(put_one(f->s, &m.b), 0);
	q.device = "sda";
	a = query_totals(f->s, q, NULL, NULL);
	q.device = "nvme0n1";
	b = query_totals(f->s, q, NULL, NULL);
	assert_true(a.v[0] && b.v[0]);
	assert_int_equal(a.v[0] + b.v[0], m.sum.v[0]);
	q.device = NULL;
	q.n_labels = 1;
	q.labels = &ask;
	a = query_totals(f->s, q, NULL, NULL);
	assert_int_equal(a.v[PPROF_READ_BYTES], m.sum.v[PPROF_READ_BYTES]);
	assert_int_equal(a.v[PPROF_WRITE_BYTES], 0);
	memset(&b, 0, sizeof(b));
	for (unsigned pid = 1; pid <= 3; pid++) {
		char text[8];

		snprintf(text, sizeof(text), "%u", pid);
		ask = (struct batch_label){ "pid", text };
		a = query_totals(f->s, q, NULL, NULL);
		b.v[0] += a.v[0];
	}
	assert_int_equal(b.v[0], m.sum.v[0]);
	ask = labels[0];
	a = query_totals(f->s, q, NULL, NULL);
	same_values(&a, &m.sum);
	ask.value = "ams";
	assert_int_equal(query_totals(f->s, q, NULL, NULL).samples, 0);
	free_batch(&m);
}

static void duplicates_are_told_by_instance_and_sequence(void **state)
{
	struct fixture *f = *state;
	static const uint64_t order[] = { 5, 3, 4, 1, 2, 7, 6 };
	struct store_query q = { .from = T0, .to = T0 + 100 * S };
	struct totals sum = { 0 }, t;
	struct made m;

	for (unsigned i = 0; i < 7; i++) {
		make_batch(&m, "n1", 1, order[i], T0 + order[i] * 10 * S, T0 + order[i] * 10 * S + 10 * S, 5, order[i], false);
		assert_int_equal(put_one(f->s, &m.b), 0);
		assert_int_equal(put_one(f->s, &m.b), -EEXIST);
		sum.v[0] += m.sum.v[0];
		free_batch(&m);
	}
	for (uint64_t i = 1; i <= 7; i++) {
		make_batch(&m, "n1", 1, i, T0, T0 + 10 * S, 5, i, false);
		assert_int_equal(put_one(f->s, &m.b), -EEXIST);
		m.b.instance[3] ^= 1; // another start of an agent
		assert_int_equal(put_one(f->s, &m.b), 0);
		sum.v[0] += m.sum.v[0];
		m.b.node = "n2";
		assert_int_equal(put_one(f->s, &m.b), 0);
		sum.v[0] += m.sum.v[0];
		free_batch(&m);
	}
	t = query_totals(f->s, q, NULL, NULL);
	assert_int_equal(t.v[0], sum.v[0]);
}

static void a_refused_profile_refuses_its_batch_only(void **state)
{
	struct fixture *f = *state;
	struct store_query q = { .from = T0, .to = T0 + 100 * S };
	struct made m[3];
	const struct batch *list[3];
	int results[3];
	struct error why[3] = { 0 }, *const whys[3] = { &why[0], &why[1], &why[2] };
	struct totals t;

	for (unsigned i = 0; i < 3; i++) {
		make_batch(&m[i], "n1", 1, i + 1, T0 + i * 10 * S, T0 + i * 10 * S + 10 * S, 5, i, false);
		list[i] = &m[i].b;
	}
	m[1].profiles[2] = (struct batch_profile){ "kernel", "not a profile", 13 };
	assert_int_equal(store_put_why(f->s, list, 3, results, whys, NULL), 0);
	assert_int_equal(results[0], 0);
	assert_int_equal(results[1], -EBADMSG);
	assert_int_equal(results[2], 0);
	assert_non_null(strstr(why[1].text, "kernel"));
	t = query_totals(f->s, q, NULL, NULL);
	assert_int_equal(t.v[0], m[0].sum.v[0] + m[2].sum.v[0]);
	for (unsigned i = 0; i < 3; i++)
		free_batch(&m[i]);
}

static void gaps_are_told(void **state)
{
	struct fixture *f = *state;
	struct store_query q = { .from = T0, .to = T0 + 100 * S };
	struct batch gap = { .kind = BATCH_GAP, .node = "n1", .sequence = 9, .start = T0 + 10 * S, .end = T0 + 90 * S, .gap_first = 2,
			     .gap_bytes = 1000 };
	struct store_coverage c = { 0 };
	struct buf comments = { 0 };
	struct made m;

	memset(gap.instance, 1, 16);
	make_batch(&m, "n1", 1, 1, T0, T0 + 10 * S, 5, 1, false);
	assert_int_equal(put_one(f->s, &m.b), 0);
	assert_int_equal(put_one(f->s, &gap), 0);
	assert_int_equal(put_one(f->s, &gap), -EEXIST);
	query_totals(f->s, q, &c, &comments);
	assert_int_equal(c.lost, 8);
	assert_int_equal(c.lost_ns, 80 * S);
	gap.sequence = 1;
	assert_int_equal(put_one(f->s, &gap), -EBADMSG);
	buf_free(&comments);
	free_batch(&m);
}

static void put_window(struct fixture *f, uint64_t sequence, int expected)
{
	struct made m;

	make_batch(&m, "n1", 1, sequence, T0 + sequence * 10 * S, T0 + (sequence + 1) * 10 * S, 5, 1, false);
	assert_int_equal(put_one(f->s, &m.b), expected);
	free_batch(&m);
}

static void lost(struct fixture *f, uint64_t batches, uint64_t seconds)
{
	struct store_query q = { .from = T0, .to = T0 + 200 * S };
	struct store_coverage c = { 0 };
	struct buf comments = { 0 };

	query_totals(f->s, q, &c, &comments);
	assert_int_equal(c.lost, batches);
	assert_int_equal(c.lost_ns, seconds * S);
	buf_free(&comments);
}

// Stored, but the agent never heard of it and dropped it later; lost, but back from a copy of the spool.
static void a_gap_is_what_is_missing(void **state)
{
	struct fixture *f = *state;
	struct batch gap = { .kind = BATCH_GAP, .node = "n1", .sequence = 5, .start = T0 + 50 * S, .end = T0 + 60 * S, .gap_first = 5,
			     .gap_bytes = 100 };

	memset(gap.instance, 1, 16);
	put_window(f, 5, 0);
	assert_int_equal(put_one(f->s, &gap), -EEXIST);
	lost(f, 0, 0);
	gap.gap_first = 3;
	gap.sequence = 7;
	gap.start = T0 + 30 * S;
	gap.end = T0 + 80 * S;
	assert_int_equal(put_one(f->s, &gap), 0);
	assert_int_equal(put_one(f->s, &gap), -EEXIST);
	lost(f, 4, 40);
	put_window(f, 7, 0);
	put_window(f, 7, -EEXIST);
	put_window(f, 3, 0);
	lost(f, 2, 20);
	gap.gap_first = 1;
	gap.sequence = 9;
	gap.start = T0 + 10 * S;
	gap.end = T0 + 100 * S;
	assert_int_equal(put_one(f->s, &gap), 0);
	lost(f, 6, 60);
	for (uint64_t n = 1; n < 10; n++)
		put_window(f, n, n == 3 || n == 5 || n == 7 ? -EEXIST : 0);
	lost(f, 0, 0);
}

static void edges_share_by_time(void **state)
{
	struct fixture *f = *state;
	struct store_query q = { .from = T0 + 3 * S, .to = T0 + 8 * S };
	struct store_coverage c = { 0 };
	struct buf comments = { 0 };
	struct totals t;
	struct made m;

	make_batch(&m, "n1", 1, 1, T0, T0 + 10 * S, 200, 1, false);
	assert_int_equal(put_one(f->s, &m.b), 0);
	t = query_totals(f->s, q, &c, &comments);
	buf_byte(&comments, 0);
	assert_int_equal(c.straddling, 1);
	assert_non_null(strstr((char *)comments.data, "straddling windows=1"));
	assert_true(t.v[0] > m.sum.v[0] * 49 / 100 && t.v[0] < m.sum.v[0] * 51 / 100);
	assert_int_equal(t.duration, 5 * S);
	buf_free(&comments);
	free_batch(&m);
}

static void a_reader_sees_what_is_committed(void **state)
{
	struct fixture *f = *state;
	struct store_query q = { .from = T0, .to = T0 + 100 * S };
	struct store *reader, *second = NULL;
	struct store_options o = { .directory = f->directory };
	struct error e = { 0 };
	struct totals t;
	struct made m;

	make_batch(&m, "n1", 1, 1, T0, T0 + 10 * S, 5, 1, false);
	assert_int_equal(put_one(f->s, &m.b), 0);
	reader = open_store_with(f->directory, true, 0, 0);
	t = query_totals(reader, q, NULL, NULL);
	same_values(&t, &m.sum);
	m.b.sequence = 2;
	assert_int_equal(put_one(f->s, &m.b), 0);
	t = query_totals(reader, q, NULL, NULL);
	assert_int_equal(t.v[0], 2 * m.sum.v[0]);
	assert_int_equal(store_open(&o, &second, &e), -EBUSY);
	assert_non_null(strstr(e.text, "in use by another collector"));
	store_close(reader);
	free_batch(&m);
}

static void nothing_says_what_is_near(void **state)
{
	struct fixture *f = *state;
	struct store_query q = { .from = T0 + 50 * S, .to = T0 + 100 * S };
	struct error e = { 0 };
	struct buf gz = { 0 };
	struct made m;

	assert_int_equal(store_query(f->s, &q, &gz, NULL, &e), -ENODATA);
	make_batch(&m, "n1", 1, 1, T0, T0 + 10 * S, 5, 1, false);
	assert_int_equal(put_one(f->s, &m.b), 0);
	assert_int_equal(store_query(f->s, &q, &gz, NULL, &e), -ENODATA);
	assert_non_null(strstr(e.text, "the last one before it ends at 2023-11-14T22:00:10Z"));
	free_batch(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_put_comes_out, setup, teardown),
		cmocka_unit_test_setup_teardown(batches_grow, setup, teardown),
		cmocka_unit_test_setup_teardown(filters_partition, setup, teardown),
		cmocka_unit_test_setup_teardown(duplicates_are_told_by_instance_and_sequence, setup, teardown),
		cmocka_unit_test_setup_teardown(a_refused_profile_refuses_its_batch_only, setup, teardown),
		cmocka_unit_test_setup_teardown(gaps_are_told, setup, teardown),
		cmocka_unit_test_setup_teardown(a_gap_is_what_is_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(edges_share_by_time, setup, teardown),
		cmocka_unit_test_setup_teardown(a_reader_sees_what_is_committed, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_says_what_is_near, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
