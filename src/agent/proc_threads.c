// SPDX-License-Identifier: Apache-2.0
#include "agent/proc_threads.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "common/file.h"

#define THREADS_MAX 16384

static unsigned named(const char *comm, const char *const *names, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(comm, names[i]))
			return 1u << i;
	return 0;
}

unsigned proc_threads_named(pid_t pid, const char *const *names, unsigned n)
{
	const unsigned all = (unsigned)((1ull << n) - 1);
	char path[100], comm[32];
	unsigned found = 0, looks = 0;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && found != all && looks++ < THREADS_MAX && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", pid, e->d_name);
		if (isdigit((unsigned char)e->d_name[0]) && !file_read_line(path, comm, sizeof(comm)))
			found |= named(comm, names, n);
	}
	if (d)
		closedir(d);
	return found;
}
