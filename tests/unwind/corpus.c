// SPDX-License-Identifier: Apache-2.0
// Ways to be on a stack. Compiled by tests/e2e/unwind_corpus.py with every combination of options that matters.
#define _GNU_SOURCE
#include "corpus.h"

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <ucontext.h>
#endif

static jmp_buf back;

FUNCTION static int recursion(int n)
{
	volatile char room[24];

	ENTER();
	room[n % 24] = (char)n;
	if (n)
		recursion(n - 1);
	else
		stop("recursion");
	KEEP(room[n % 24]);
	LEAVE();
	return n;
}

FUNCTION static void dynamic(size_t n)
{
	char *room;

	ENTER();
	room = (char *)alloca(n);
	memset(room, 1, n);
	KEEP(room);
	stop("alloca");
	LEAVE();
}

FUNCTION static void aligned(int n)
{
	volatile char room[128] __attribute__((aligned(64)));

	ENTER();
	room[n] = 1;
	KEEP(&room[0]);
	stop("aligned");
	LEAVE();
}

FUNCTION static void aligned_dynamic(int n)
{
	volatile char room[128] __attribute__((aligned(128)));
	char *more;

	ENTER();
	more = (char *)alloca((size_t)n * 10);
	room[n] = 1;
	KEEP(&room[0]);
	KEEP(more);
	stop("aligned_dynamic");
	LEAVE();
}

FUNCTION static void large(int n)
{
	volatile char room[200000];

	ENTER();
	room[n] = 1;
	KEEP(&room[0]);
	stop("large");
	LEAVE();
}

FUNCTION static long arguments(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)
{
	ENTER();
	stop("arguments");
	LEAVE();
	return a + b + c + d + e + f + g * h + i * j;
}

FUNCTION static void calls_with_arguments(long n)
{
	ENTER();
	KEEP(arguments(n, 2, 3, 4, 5, n + 6, 7, n + 8, 9, n + 10));
	LEAVE();
}

FUNCTION __attribute__((noreturn)) static void never(int n)
{
	ENTER();
	stop("noreturn");
	longjmp(back, n);
}

// Its last instruction is a call: the return address is that of what follows.
FUNCTION static void ends_with_a_call(int n)
{
	ENTER();
	KEEP(n);
	never(n + 1);
}

FUNCTION static void called_by_jump(void)
{
	ENTER();
	stop("tail_call");
	LEAVE();
}

// With optimization its frame is gone, without it is there: a gap.
FUNCTION static void jumps(void)
{
	called_by_jump();
}

FUNCTION static void before_jump(void)
{
	ENTER();
	truth[depth++] = GAP;
	jumps();
	depth--;
	LEAVE();
	KEEP(depth);
}

static void handler(int sig, siginfo_t *info, void *context)
{
#ifdef __GLIBC__
	ucontext_t *uc = (ucontext_t *)context;
#endif

	KEEP(info);
	KEEP(context);
	truth[depth++] = GAP; // up to the interrupted function's
	ENTER();
	stop(sig == SIGILL ? "fault" : "signal");
	LEAVE();
	depth--;
#ifdef __GLIBC__
	if (sig == SIGILL)
		uc->uc_mcontext.gregs[REG_RIP] += 2;
#endif
}

FUNCTION static void interrupted(int sig)
{
	ENTER();
	if (sig == SIGILL)
		__asm__ volatile("ud2");
	else
		raise(sig);
	KEEP(sig);
	LEAVE();
}

FUNCTION static void signals(void)
{
	static char room[65536];
	stack_t other = { .ss_sp = room, .ss_size = sizeof(room) };
	struct sigaction action;

	ENTER();
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGILL, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags |= SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL);
#ifdef __GLIBC__
	interrupted(SIGILL);
#endif
	interrupted(SIGUSR1);
	sigaltstack(&other, NULL);
	interrupted(SIGUSR2);
	LEAVE();
}

#ifdef __GLIBC__
static ucontext_t caller, coroutine;

FUNCTION static void runs_on_its_own_stack(void)
{
	static void *callers[DEPTH_MAX];
	int before = depth;

	memcpy(callers, truth, sizeof(callers));
	depth = 0;
	ENTER();
	recursion(3);
	memcpy(truth, callers, sizeof(callers));
	depth = before;
}

static void coroutines(void)
{
	static char room[65536];

	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = room;
	coroutine.uc_stack.ss_size = sizeof(room);
	coroutine.uc_link = &caller;
	makecontext(&coroutine, runs_on_its_own_stack, 0);
	swapcontext(&caller, &coroutine);
}

static int compare(const void *a, const void *b)
{
	static int done;

	truth[depth++] = GAP;
	ENTER();
	if (!done++)
		stop("callback");
	LEAVE();
	depth--;
	return *(const int *)a - *(const int *)b;
}

FUNCTION static void sorts(void)
{
	int numbers[] = { 3, 1, 2 };

	ENTER();
	qsort(numbers, 3, sizeof(int), compare);
	KEEP(numbers);
	LEAVE();
}
#endif

static void *thread(void *argument)
{
	ENTER();
	recursion(5);
	LEAVE();
	return argument;
}

static void threads(void)
{
	pthread_t t;

	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
}

int main(void)
{
	int n;

	ENTER();
	recursion(20);
	dynamic(1000);
	aligned(3);
	aligned_dynamic(3);
	large(3);
	calls_with_arguments(1);
	before_jump();
	n = depth;
	if (!setjmp(back))
		ends_with_a_call(1);
	depth = n;
	signals();
	threads();
#ifdef __GLIBC__
	coroutines();
	sorts();
#endif
	return 0;
}
