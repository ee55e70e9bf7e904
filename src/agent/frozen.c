// SPDX-License-Identifier: Apache-2.0
#include "agent/frozen.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agent/procs_mounts.h"
#include "common/file.h"

#define TEXT_MAX 65536

// "0::/path", "7:freezer,perf_event:/path"
const char *frozen_cgroup_path(const char *line, const char **ret_controller)
{
	const char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

	if (!path || path[1] != '/')
		return NULL;
	*ret_controller = path == list + 1 ? "" : "freezer";
	for (const char *at = list + 1; at < path; at += strcspn(at, ",:") + 1)
		if (!strncmp(at, "freezer", 7) && (at[7] == ',' || at[7] == ':'))
			return path + 1;
	return path == list + 1 ? path + 1 : NULL;
}

static bool says_frozen(const char *line)
{
	const char *controller, *cgroup = frozen_cgroup_path(line, &controller);
	char folder[PATH_MAX], path[PATH_MAX + 32];
	struct buf b = { 0 };
	bool frozen = false;

	if (!cgroup || mounts_cgroup_folder(NULL, controller, cgroup, folder, sizeof(folder)))
		return false;
	snprintf(path, sizeof(path), "%s/%s", folder, *controller ? "freezer.state" : "cgroup.events");
	if (!file_read(path, TEXT_MAX, &b))
		frozen = *controller ? strncmp((char *)b.data, "THAWED", 6) : strstr((char *)b.data, "frozen 1") != NULL;
	buf_free(&b);
	return frozen;
}

bool process_is_frozen(pid_t pid)
{
	struct buf b = { 0 };
	char path[64], *save = NULL;
	bool frozen = false;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (!file_read(path, TEXT_MAX, &b))
		for (char *line = strtok_r((char *)b.data, "\n", &save); line && !frozen; line = strtok_r(NULL, "\n", &save))
			frozen = says_frozen(line);
	buf_free(&b);
	return frozen;
}
