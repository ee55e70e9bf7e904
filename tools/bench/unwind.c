// SPDX-License-Identifier: Apache-2.0
// unwind FILE TIMES: compiles the unwind table of a file; prints rows, rules, unsupported rules, bytes of the table, the
// least CPU time in ns, and KiB of memory at most beyond what the process had, for tools/bench/unwind_compile.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "unwind/unwind.h"

// getrusage's figure is inherited from whoever executed this program.
static long peak_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmHWM:", 6))
			kib = atol(line + 6);
	if (f)
		fclose(f);
	return kib;
}

int main(int argc, char **argv)
{
	struct unwind_table *t = NULL;
	struct error e = { "" };
	uint64_t least = UINT64_MAX;
	int fd = argc == 3 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, times = argc == 3 ? atoi(argv[2]) : 0;
	long before = peak_kib(), extra = 0;

	if (fd < 0 || times < 1)
		return fprintf(stderr, "usage: unwind FILE TIMES\n"), 2;
	for (int i = 0; i < times; i++) {
		uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID), ns;

		unwind_table_free(t);
		if (unwind_compile(fd, NULL, &t, &e))
			return fprintf(stderr, "%s: %s\n", argv[1], e.text), 1;
		ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
		least = ns < least ? ns : least;
		if (!i)
			extra = peak_kib() - before;
	}
	printf("%u %u %u %zu %" PRIu64 " %ld\n", t->n_rows, t->n_rules, t->n_unsupported,
	       t->n_rows * sizeof(*t->rows) + t->n_rules * sizeof(*t->rules), least, extra);
	unwind_table_free(t);
	return 0;
}
