// SPDX-License-Identifier: Apache-2.0
#include "agent/proc_status.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"

// What follows the line's name: a newline in a process's name is escaped, so no other line can pass for it.
static const char *line_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? at + strlen(name) : NULL;
}

int proc_status_parse(const char *text, struct proc_status *ret)
{
	const char *uid = line_of(text, "\nUid:\t"), *gid = line_of(text, "\nGid:\t"), *inner = line_of(text, "\nNSpid:\t");
	const char *caught = line_of(text, "\nSigCgt:\t"), *state = line_of(text, "\nState:\t");
	const char *last;
	unsigned u, g;
	int pid;

	if (!uid || !gid || !inner || sscanf(uid, "%*u %u", &u) != 1 || sscanf(gid, "%*u %u", &g) != 1)
		return -EINVAL;
	// One number for each namespace, the innermost last.
	for (last = inner; inner[0] && *inner != '\n'; inner++)
		if (*inner == '\t')
			last = inner + 1;
	pid = atoi(last);
	if (pid <= 0)
		return -EINVAL;
	*ret = (struct proc_status){
		.uid = u, .gid = g, .inner_pid = pid,
		.catches_quit = caught && strtoull(caught, NULL, 16) >> (SIGQUIT - 1) & 1,
		.stopped = state && (*state == 'T' || *state == 't'),
	};
	return 0;
}

int proc_status_read(pid_t pid, struct proc_status *ret)
{
	struct buf b = { 0 };
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	err = file_read(path, 16384, &b);
	if (!err)
		err = proc_status_parse((const char *)b.data, ret);
	buf_free(&b);
	return err;
}
