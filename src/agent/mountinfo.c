// SPDX-License-Identifier: Apache-2.0
#include "agent/mountinfo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/devices.h"
#include "common/buf.h"
#include "common/file.h"

// The kernel writes space, tab, newline, backslash and '#' as \ and three octal digits.
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' &&
		    from[3] >= '0' && from[3] <= '7') {
			unsigned char c = (unsigned char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));

			if (c) {
				*to++ = (char)c;
				from += 3;
				continue;
			}
		}
		*to++ = *from;
	}
	*to = 0;
}

static bool number(const char *text, char until, uint32_t max, const char **ret_end, uint32_t *ret)
{
	uint64_t n = 0;
	const char *p = text;

	for (; *p >= '0' && *p <= '9' && p - text < 10; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	if (p == text || *p != until || n > max)
		return false;
	*ret_end = p + 1;
	*ret = (uint32_t)n;
	return true;
}

static bool device_number(const char *text, uint32_t *ret)
{
	uint32_t major, minor;
	const char *p;

	if (!number(text, ':', 0xfff, &p, &major) || !number(p, 0, 0xfffff, &p, &minor))
		return false;
	*ret = KDEV(major, minor);
	return true;
}

bool mountinfo_line(char *line, struct mount *ret)
{
	char *save = NULL, *field[6], *type, *source, *super, *p;
	const char *end;
	struct mount m;

	// id parent major:minor root point options [optional…] - type source super
	for (int i = 0; i < 6; i++) {
		field[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!field[i])
			return false;
	}
	while ((p = strtok_r(NULL, " ", &save)) && strcmp(p, "-"))
		;
	type = p ? strtok_r(NULL, " ", &save) : NULL;
	source = type ? strtok_r(NULL, " ", &save) : NULL;
	if (!source || !number(field[0], 0, UINT32_MAX, &end, &m.id) || !device_number(field[2], &m.dev))
		return false;
	super = strtok_r(NULL, " ", &save);
	// An empty source leaves two spaces: what was taken for it are the options.
	m.source = super ? source : "";
	m.super = super ? super : source;
	m.root = field[3];
	m.point = field[4];
	m.options = field[5];
	m.type = type;
	unescape(field[3]);
	unescape(field[4]);
	unescape(type);
	unescape(source);
	*ret = m;
	return true;
}

int mountinfo_each(const char *path, int (*each)(const struct mount *m, void *data), void *data)
{
	struct buf b = { 0 };
	char *save = NULL, *line;
	int err;

	err = file_read(path ? path : "/proc/self/mountinfo", MOUNTINFO_MAX, &b);
	for (line = err ? NULL : strtok_r((char *)b.data, "\n", &save); line && !err; line = strtok_r(NULL, "\n", &save)) {
		struct mount m;

		if (mountinfo_line(line, &m))
			err = each(&m, data);
	}
	buf_free(&b);
	return err;
}

bool mountinfo_option(const char *list, const char *option)
{
	size_t len = strlen(option);

	for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',') {
		if (strncmp(p, option, len))
			continue;
		if (!p[len] || p[len] == ',')
			return true;
		if (!strncmp(p + len, "=always", 7) && (!p[len + 7] || p[len + 7] == ','))
			return true;
	}
	return false;
}
