// SPDX-License-Identifier: Apache-2.0
#include "agent/procstat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"

#define STATE_FIELD 3
#define FLAGS_FIELD 9
#define CPU_FIELD 39
#define PF_KTHREAD 0x200000

int procstat_parse(const char *text, struct procstat *ret)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	struct procstat s = { 0 };
	size_t len;

	// A name may hold anything, parentheses too: the last one ends it.
	if (!open || !close || close < open || close[1] != ' ' || !close[2])
		return -EINVAL;
	len = (size_t)(close - open - 1);
	if (len >= sizeof(s.comm))
		len = sizeof(s.comm) - 1;
	memcpy(s.comm, open + 1, len);
	text = close + 2;
	s.state = *text;
	for (unsigned field = STATE_FIELD; field < CPU_FIELD; field++) {
		if (field == FLAGS_FIELD)
			s.kernel = strtoul(text, NULL, 10) & PF_KTHREAD;
		text = strchr(text, ' ');
		if (!text)
			return -EINVAL;
		text++;
	}
	s.cpu = (uint32_t)strtoul(text, NULL, 10);
	*ret = s;
	return 0;
}

int procstat_read(const char *folder, struct procstat *ret)
{
	char path[96], line[1024];
	int err;

	snprintf(path, sizeof(path), "%s/stat", folder);
	err = file_read_line(path, line, sizeof(line));
	return err ? err : procstat_parse(line, ret);
}
