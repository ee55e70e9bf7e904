// SPDX-License-Identifier: Apache-2.0
// Where a scenario waits while its stack is walked: a line with the name, thread, rip, rsp, rbp and the truth, a byte back.
#define _GNU_SOURCE
#include "corpus.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread void *truth[DEPTH_MAX];
__thread int depth;
FUNCTION void stop(const char *name)
{
	char line[8192], byte;
	uint64_t rip, rsp, rbp;
	int len;

	ENTER();
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=&r"(rip), "=&r"(rsp), "=&r"(rbp));
	len = snprintf(line, sizeof(line), "%s %ld %llx %llx %llx", name, syscall(SYS_gettid), (unsigned long long)rip,
		       (unsigned long long)rsp, (unsigned long long)rbp);
	for (int i = depth - 1; i >= 0; i--)
		len += snprintf(line + len, sizeof(line) - (size_t)len, " %llx", (unsigned long long)(uintptr_t)truth[i]);
	line[len++] = '\n';
	if (write(1, line, (size_t)len) != len || read(0, &byte, 1) != 1)
		_exit(3);
	LEAVE();
}
