// SPDX-License-Identifier: Apache-2.0
#include "common/thread.h"

#include <signal.h>

#include "common/clock.h"

int thread_start(pthread_t *ret, void *(*run)(void *context), void *context)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(ret, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

bool thread_end(pthread_t thread, unsigned timeout_ms)
{
	uint64_t until = clock_monotonic() + timeout_ms * 1000000ull;
	struct timespec t = { .tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u) };

	if (!pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &t))
		return true;
	pthread_detach(thread);
	return false;
}
