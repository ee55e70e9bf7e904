// SPDX-License-Identifier: Apache-2.0
// Lines of /proc/PID/maps and the text of /proc/PID/stat.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/procs_maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void one_line(const char *line, size_t len)
{
	struct procmaps_entry e;
	char path[256];
	bool deleted;
	size_t n;

	if (procmaps_parse(line, len, &e))
		return;
	if (e.start >= e.limit || e.path < line || e.path + e.path_len != line + len)
		abort();
	n = procmaps_unescape(path, sizeof(path), e.path, e.path_len);
	if (n >= sizeof(path) || path[n] || n > e.path_len)
		abort();
	if (procmaps_strip_deleted(path, n, &deleted) > n)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	// A copy of its own size, so that a read behind its end is seen.
	char *text = malloc(len ? len : 1);
	struct procs_stat st;
	size_t at = 0;

	memcpy(text, data, len);
	while (at < len) {
		char *end = memchr(text + at, '\n', len - at);
		size_t line = end ? (size_t)(end - text) - at : len - at;

		one_line(text + at, line);
		at += line + 1;
	}
	if (!procs_stat_parse(text, len, &st) && st.comm_len >= sizeof(st.comm))
		abort();
	free(text);
	return 0;
}
