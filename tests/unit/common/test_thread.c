// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/thread.h"

static void *no_signals(void *context)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	*(int *)context = sigismember(&now, SIGTERM) && sigismember(&now, SIGINT);
	return NULL;
}

static void signals_stay_ours(void **state)
{
	int blocked = 0;
	sigset_t now;
	pthread_t t;

	assert_int_equal(thread_start(&t, no_signals, &blocked), 0);
	assert_true(thread_end(t, 600000));
	assert_true(blocked);
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	assert_false(sigismember(&now, SIGTERM));
}

static void *wait_twice(void *context)
{
	pthread_barrier_wait(context);
	pthread_barrier_wait(context);
	return NULL;
}

static void one_that_does_not_end(void **state)
{
	static pthread_barrier_t both;
	pthread_t t;

	pthread_barrier_init(&both, NULL, 2);
	assert_int_equal(thread_start(&t, wait_twice, &both), 0);
	assert_false(thread_end(t, 10));
	pthread_barrier_wait(&both); // it goes on
	pthread_barrier_wait(&both);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_stay_ours),
		cmocka_unit_test(one_that_does_not_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
