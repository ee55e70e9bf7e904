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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(answers_are_of_a_moment) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
