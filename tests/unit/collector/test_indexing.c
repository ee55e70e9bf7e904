// SPDX-License-Identifier: Apache-2.0
// How far an index is: in order, over restarts, and what retention takes before it.
#include "batches.h"

#include "collector/store_indexing.h"

#define BATCH_DOCUMENTS 10
#define HOUR (3600 * S)

static struct store *open_quiet(const char *directory)
{
	struct store_options o = { .directory = directory, .max_age_ns = HOUR, .no_background = true };
	struct store *s = NULL;

	assert_int_equal(store_open(&o, &s, NULL), 0);
	return s;
}

static void put_requests(struct store *s, uint64_t sequence, uint64_t start, unsigned n)
{
	static char text[BATCH_DOCUMENTS][300];
	struct batch_profile documents[BATCH_DOCUMENTS];
	struct batch b = { .kind = BATCH_REQUESTS, .node = "n1", .sequence = sequence, .start = start, .end = start + S, .n_requests = n,
			   .requests = documents };
	const struct batch *list = &b;
	int result = -1;

	memset(b.instance, 7, sizeof(b.instance));
	for (unsigned i = 0; i < n; i++) {
		int len = snprintf(text[i], sizeof(text[i]), "{\"id\":\"n1:%llu:%u\",\"number_l\":%llu,\"total_io_duration_ms_f\":%u}",
				   (unsigned long long)sequence, i, (unsigned long long)(sequence * 100 + i), i);

		documents[i] = (struct batch_profile){ .data = text[i], .size = (size_t)len };
	}
	assert_int_equal(store_put(s, &list, 1, &result, NULL), 0);
	assert_int_equal(result, 0);
}

struct seen_documents {
	unsigned n, max;
	uint64_t last; // sequence * 100 + number of the last one
};

static int see(void *context, const char *node, const void *document, size_t size)
{
	struct seen_documents *d = context;
	const char *at = memmem(document, size, "number_l\":", 10);
	uint64_t number = 0;

	assert_non_null(at);
	for (at += 10; at < (const char *)document + size && *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (uint64_t)(*at - '0');
	assert_string_equal(node, "n1");
	assert_true(number > d->last);
	d->last = number;
	return ++d->n == d->max;
}

static struct seen_documents read_from(struct store *s, struct indexing_place *place, unsigned max)
{
	struct seen_documents d = { .max = max };
	struct indexing_reader *r;

	assert_int_equal(indexing_reader_new(s, &r, NULL), 0);
	assert_int_equal(indexing_read(r, place, see, &d, NULL), 0);
	indexing_reader_free(r);
	return d;
}

static void places_are_kept(void **state)
{
	char *directory = make_directory();
	struct store *s = open_quiet(directory);
	struct indexing_place place = { 0 }, again;
	struct indexing_counts counts;
	struct seen_documents d;

	for (unsigned i = 1; i <= 3; i++)
		put_requests(s, i, T0 + i * S, BATCH_DOCUMENTS);
	assert_int_equal(store_indexing_start(s, true, &place, NULL), 0);
	assert_int_equal(store_indexing_counts(s, &counts, NULL), 0);
	assert_int_equal(counts.waiting, 3 * BATCH_DOCUMENTS);
	again = place;
	d = read_from(s, &place, 13);
	assert_int_equal(d.n, 13);
	assert_int_equal(d.last, 202);
	assert_int_equal(store_indexing_advance(s, &again, &place, 2, NULL), 0);
	store_close(s);
	s = open_quiet(directory);
	assert_int_equal(store_indexing_start(s, true, &again, NULL), 0);
	assert_int_equal(again.batch, place.batch);
	assert_int_equal(again.record, place.record);
	assert_int_equal(store_indexing_counts(s, &counts, NULL), 0);
	assert_int_equal(counts.waiting, 17);
	assert_int_equal(counts.aside, 2);
	assert_int_equal(counts.dropped, 0);
	d = read_from(s, &again, 1000);
	assert_int_equal(d.n, 17);
	assert_int_equal(d.last, 309);
	assert_int_equal(store_indexing_advance(s, &place, &again, 0, NULL), 0);
	assert_int_equal(read_from(s, &again, 1000).n, 0);
	put_requests(s, 4, T0 + 4 * S, 3);
	assert_int_equal(read_from(s, &again, 1000).n, 3);
	store_close(s);
	remove_tree(directory);
	free(directory);
}

// While it is indexed: what is on its way when the place is set back does not move it forward again.
static void a_place_is_set_back(void **state)
{
	char *directory = make_directory();
	struct store *s = open_quiet(directory);
	struct indexing_place place = { 0 }, start, now;
	struct indexing_reader *r;
	uint64_t waiting = 0;

	for (unsigned i = 1; i <= 4; i++)
		put_requests(s, i, T0 + i * S, BATCH_DOCUMENTS);
	assert_int_equal(store_indexing_start(s, true, &start, NULL), 0);
	assert_int_equal(indexing_reader_new(s, &r, NULL), 0);
	place = start;
	assert_int_equal(read_from(s, &place, 35).n, 35);
	assert_int_equal(store_indexing_again(directory, T0 + 2 * S, &waiting, NULL), 0);
	assert_int_equal(waiting, 4 * BATCH_DOCUMENTS); // it is further back still
	assert_int_equal(store_indexing_advance(s, &start, &place, 0, NULL), 0);
	assert_int_equal(indexing_place(r, &now, NULL), 0);
	assert_true(now.batch == place.batch && now.record == place.record);
	assert_int_equal(store_indexing_again(directory, T0 + 3 * S + 1, &waiting, NULL), 0);
	assert_int_equal(waiting, 2 * BATCH_DOCUMENTS);
	start = place;
	read_from(s, &place, 5);
	assert_int_equal(store_indexing_advance(s, &start, &place, 1, NULL), 0);
	assert_int_equal(indexing_place(r, &now, NULL), 0);
	assert_int_equal(now.record, 0);
	assert_int_equal(read_from(s, &now, 1000).n, 2 * BATCH_DOCUMENTS);
	assert_int_equal(store_indexing_again(directory, T0 + 100 * S, &waiting, NULL), 0);
	assert_int_equal(waiting, 2 * BATCH_DOCUMENTS);
	assert_int_equal(store_indexing_again(directory, 0, &waiting, NULL), 0);
	assert_int_equal(waiting, 4 * BATCH_DOCUMENTS);
	indexing_reader_free(r);
	store_close(s);
	assert_int_equal(store_indexing_again("/nowhere", 0, &waiting, NULL), -ENOENT);
	remove_tree(directory);
	free(directory);
}

static void a_mark_is_kept(void **state)
{
	char *directory = make_directory(), mark[INDEXING_MARK_SIZE], again[INDEXING_MARK_SIZE];
	struct store *s = open_quiet(directory);

	assert_int_equal(store_indexing_mark(s, mark, NULL), 0);
	assert_int_equal(strspn(mark, "0123456789abcdef"), 32);
	store_close(s);
	s = open_quiet(directory);
	assert_int_equal(store_indexing_mark(s, again, NULL), 0);
	assert_string_equal(mark, again);
	store_close(s);
	remove_tree(directory);
	free(directory);
}

// Rows are gone and new ones come: none is left out, none is taken twice, and what was dropped is known.
static void what_retention_takes_is_counted(void **state)
{
	char *directory = make_directory();
	struct store *s = open_quiet(directory);
	struct indexing_place place = { 0 }, start;
	struct indexing_counts counts;

	for (unsigned i = 1; i <= 4; i++)
		put_requests(s, i, T0 + i * S, BATCH_DOCUMENTS);
	assert_int_equal(store_indexing_start(s, true, &start, NULL), 0);
	place = start;
	read_from(s, &place, 14);
	assert_int_equal(store_indexing_advance(s, &start, &place, 0, NULL), 0);
	for (unsigned i = 0; i < 100 && store_maintain(s, T0 + 3 * HOUR, NULL) > 0; i++)
		;
	assert_int_equal(store_indexing_counts(s, &counts, NULL), 0);
	assert_int_equal(counts.dropped, 26);
	assert_int_equal(counts.waiting, 0);
	put_requests(s, 5, T0 + 3 * HOUR, BATCH_DOCUMENTS);
	assert_int_equal(read_from(s, &place, 1000).n, BATCH_DOCUMENTS);
	store_close(s);
	remove_tree(directory);
	free(directory);
}

// Where nothing is indexed nothing is too late for it.
static void without_an_index_nothing_is_dropped(void **state)
{
	char *directory = make_directory();
	struct store *s = open_quiet(directory);
	struct indexing_place place;
	struct indexing_counts counts;

	put_requests(s, 1, T0, BATCH_DOCUMENTS);
	assert_int_equal(store_indexing_start(s, false, &place, NULL), 0);
	for (unsigned i = 0; i < 100 && store_maintain(s, T0 + 3 * HOUR, NULL) > 0; i++)
		;
	assert_int_equal(store_indexing_counts(s, &counts, NULL), 0);
	assert_int_equal(counts.dropped, 0);
	store_close(s);
	remove_tree(directory);
	free(directory);
}

static void put_large(struct store *s, uint64_t sequence, uint64_t start, uint64_t *random)
{
	static char text[200000];
	struct batch_profile document = { .data = text };
	struct batch b = { .kind = BATCH_REQUESTS, .node = "n1", .sequence = sequence, .start = start, .end = start + S, .n_requests = 1,
			   .requests = &document };
	const struct batch *list = &b;
	size_t len = (size_t)sprintf(text, "{\"id\":\"n1:%llu\",\"x_s\":\"", (unsigned long long)sequence);
	int result;

	memset(b.instance, 8, sizeof(b.instance));
	while (len < sizeof(text) - 20)
		text[len++] = (char)('A' + next_random(random) % 26);
	len += (size_t)sprintf(text + len, "\"}");
	document.size = len;
	assert_int_equal(store_put(s, &list, 1, &result, NULL), 0);
}

// Requests that wait for an index do not push out the profiles that are newer than they are.
static void the_older_go_first(void **state)
{
	char *directory = make_directory();
	struct store_options o = { .directory = directory, .max_size = 4 << 20, .no_background = true };
	struct store_query q = { .from = T0 + 5 * HOUR, .to = T0 + 5 * HOUR + 10 * S };
	struct indexing_counts counts;
	struct indexing_place place;
	uint64_t random = 3;
	struct store *s;
	struct totals t;
	struct made m;

	assert_int_equal(store_open(&o, &s, NULL), 0);
	assert_int_equal(store_indexing_start(s, true, &place, NULL), 0);
	make_batch(&m, "n1", 1, 1, q.from, q.to, 50, 7, true);
	assert_int_equal(put_one(s, &m.b), 0);
	for (unsigned i = 1; i <= 60; i++)
		put_large(s, i, T0 + i * 60 * S, &random);
	for (unsigned i = 0; i < 1000 && store_maintain(s, T0 + 9 * HOUR, NULL) > 0; i++)
		;
	assert_int_equal(store_indexing_counts(s, &counts, NULL), 0);
	assert_true(counts.dropped >= 30 && counts.dropped + counts.waiting == 60);
	t = query_totals(s, q, NULL, NULL);
	assert_int_equal(t.v[0], m.sum.v[0]);
	free_batch(&m);
	store_close(s);
	remove_tree(directory);
	free(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_kept),
		cmocka_unit_test(a_place_is_set_back),
		cmocka_unit_test(a_mark_is_kept),
		cmocka_unit_test(what_retention_takes_is_counted),
		cmocka_unit_test(without_an_index_nothing_is_dropped),
		cmocka_unit_test(the_older_go_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
