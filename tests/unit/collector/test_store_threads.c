// SPDX-License-Identifier: Apache-2.0
// Batches come in while others ask and the store rolls up and clears: every answer is one of a moment.
#include "batches.h"

#include <pthread.h>

#define BATCHES 60
#define LATER (4000000000ull * S)

struct shared {
	struct store *s;
	struct made m[BATCHES];
	int64_t upto[BATCHES + 1]; // operations of the first n
	bool done;
};

static void *ask(void *context)
{
	struct shared *sh = context;
	struct store_query q = { .from = T0, .to = T0 + 86400 * S };
	int64_t last = 0;

	while (!__atomic_load_n(&sh->done, __ATOMIC_ACQUIRE)) {
		struct buf gz = { 0 };
		struct error e;
		unsigned i = 0;
		int err = store_query(sh->s, &q, &gz, NULL, &e);
		int64_t ops = err ? 0 : totals_of(&gz, NULL).v[0];

		if (err && err != -ENODATA)
			return (void *)1;
		while (i <= BATCHES && sh->upto[i] != ops)
			i++;
		if (i > BATCHES || ops < last)
			return (void *)2;
		last = ops;
		buf_free(&gz);
	}
	return NULL;
}

static void *maintain(void *context)
{
	struct shared *sh = context;
	struct error e;

	while (!__atomic_load_n(&sh->done, __ATOMIC_ACQUIRE))
		if (store_maintain(sh->s, LATER, &e) < 0)
			return (void *)3;
	return NULL;
}

static void answers_are_of_a_moment(void **state)
{
	char *directory = make_directory();
	struct shared *sh = calloc(1, sizeof(*sh));
	pthread_t threads[3];
	void *ret;

	for (unsigned i = 0; i < BATCHES; i++) {
		make_batch(&sh->m[i], i % 2 ? "n1" : "n2", 1, i + 1, T0 + i * 10 * S, T0 + i * 10 * S + 10 * S, 5, i, false);
		sh->upto[i + 1] = sh->upto[i] + sh->m[i].sum.v[0];
	}
	sh->s = open_store_with(directory, false, 0, 0);
	pthread_create(&threads[0], NULL, ask, sh);
	pthread_create(&threads[1], NULL, ask, sh);
	pthread_create(&threads[2], NULL, maintain, sh);
	for (unsigned i = 0; i < BATCHES; i++)
		assert_int_equal(put_one(sh->s, &sh->m[i].b), 0);
	__atomic_store_n(&sh->done, true, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(threads[i], &ret);
		assert_null(ret);
	}
	store_close(sh->s);
	for (unsigned i = 0; i < BATCHES; i++)
		free_batch(&sh->m[i]);
	free(sh);
	remove_tree(directory);
	free(directory);
}

// More than a thread's load, of several nodes: the same sums and the same bytes whichever thread added what.
static void large_answers_are_the_sum(void **state)
{
	char *directory = make_directory();
	struct store *s = open_store_with(directory, false, 0, 0);
	struct store_query q = { .from = T0, .to = T0 + 86400 * S }, cut = { .from = T0, .to = T0 + 185 * S }, rest = cut;
	struct buf first = { 0 }, second = { 0 };
	struct totals sum = { 0 }, t, parts[2];
	struct error e;

	(void)state;
	for (unsigned i = 0; i < 80; i++) {
		struct made m;

		make_batch(&m, i % 2 ? "n1" : "n2", 1, i + 1, T0 + i * 10 * S, T0 + i * 10 * S + 10 * S, 400, i, i % 3 == 0);
		assert_int_equal(put_one(s, &m.b), 0);
		for (unsigned k = 0; k < PPROF_TYPES; k++)
			sum.v[k] += m.sum.v[k];
		free_batch(&m);
	}
	assert_int_equal(store_query(s, &q, &first, NULL, &e), 0);
	assert_int_equal(store_query(s, &q, &second, NULL, &e), 0);
	assert_int_equal(first.len, second.len);
	assert_memory_equal(first.data, second.data, first.len);
	t = totals_of(&first, NULL);
	rest.from = cut.to;
	rest.to = q.to;
	parts[0] = query_totals(s, cut, NULL, NULL);
	parts[1] = query_totals(s, rest, NULL, NULL);
	for (unsigned k = 0; k < PPROF_TYPES; k++) {
		assert_int_equal(t.v[k], sum.v[k]);
		assert_int_equal(parts[0].v[k] + parts[1].v[k], sum.v[k]);
	}
	buf_free(&first);
	buf_free(&second);
	store_close(s);
	remove_tree(directory);
	free(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(answers_are_of_a_moment), cmocka_unit_test(large_answers_are_the_sum) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
