// SPDX-License-Identifier: Apache-2.0
#include "agent/cost.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/file.h"

#define TEXT_MAX 65536

// The number behind "NAME:" at the start of a line; 0 when there is none.
static uint64_t field(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL)
		if (!strncmp(line, name, len) && line[len] == ':')
			return strtoull(line + len + 1, NULL, 10);
	return 0;
}

static void add_descriptor(const char *fd, struct cost *c)
{
	char path[64], target[64];
	struct buf b = { 0 };
	ssize_t len;
	bool map;

	snprintf(path, sizeof(path), "/proc/self/fd/%.16s", fd);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return;
	target[len] = 0;
	map = !strcmp(target, "anon_inode:bpf-map");
	if (!map && strcmp(target, "anon_inode:bpf-prog"))
		return;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%.16s", fd);
	if (!file_read(path, TEXT_MAX, &b)) {
		if (map) {
			c->map_bytes += field((char *)b.data, "memlock");
			c->maps++;
		} else {
			c->bpf_ns += field((char *)b.data, "run_time_ns");
			c->bpf_runs += field((char *)b.data, "run_cnt");
			c->programs++;
		}
	}
	buf_free(&b);
}

static void read_descriptors(struct cost *c)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *d;

	while (folder && (d = readdir(folder)))
		if (*d->d_name != '.')
			add_descriptor(d->d_name, c);
	if (folder)
		closedir(folder);
}

void cost_read(struct cost *ret)
{
	struct cost c = { .cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) };
	struct buf b = { 0 };

	if (!file_read("/proc/self/status", TEXT_MAX, &b)) {
		c.rss = field((char *)b.data, "VmRSS") * 1024;
		c.peak_rss = field((char *)b.data, "VmHWM") * 1024;
	}
	buf_free(&b);
	read_descriptors(&c);
	*ret = c;
}
