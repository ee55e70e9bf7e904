// SPDX-License-Identifier: Apache-2.0
// A line of mountinfo: mount points and sources are named by whoever may mount.
#include <stdlib.h>
#include <string.h>

#include "agent/mountinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void inside(const char *text, const char *line, size_t size)
{
	if (*text && (text < line || text + strlen(text) > line + size))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1);
	struct mount m;

	if (!line)
		return 0;
	memcpy(line, data, size);
	line[size] = 0;
	if (mountinfo_line(line, &m)) {
		inside(m.root, line, size);
		inside(m.point, line, size);
		inside(m.options, line, size);
		inside(m.type, line, size);
		inside(m.source, line, size);
		inside(m.super, line, size);
		mountinfo_option(m.super, "dax");
	}
	free(line);
	return 0;
}
