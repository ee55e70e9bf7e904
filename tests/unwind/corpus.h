// SPDX-License-Identifier: Apache-2.0
// A program whose stack is known: every function of a scenario keeps its return address in `truth`, and stop() tells them, with
// the registers at that moment, to whoever walks the stack meanwhile (corpus_walk.c).
#ifndef BLKPROF_TESTS_CORPUS_H
#define BLKPROF_TESTS_CORPUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define FUNCTION __attribute__((noinline, noclone))
#ifdef __clang__
#undef FUNCTION
#define FUNCTION __attribute__((noinline))
#endif

#define DEPTH_MAX 256

extern __thread void *truth[DEPTH_MAX];
extern __thread int depth;

// A frame that is not known by address: any number of them.
#define GAP ((void *)0)

#define ENTER()	 (truth[depth++] = __builtin_return_address(0))
#define LEAVE()	 (depth--)
// Keeps what was computed and the call before it from being the last thing a function does.
#define KEEP(x) __asm__ volatile("" : : "r"(x) : "memory")

void stop(const char *name);
#ifdef __cplusplus
}
#endif
#endif
