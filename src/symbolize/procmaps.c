// SPDX-License-Identifier: Apache-2.0
#include "symbolize/procmaps.h"

#include <errno.h>
#include <string.h>

struct cursor {
	const char *at, *end;
};

static int digit(char c, unsigned base)
{
	int d;

	if (c >= '0' && c <= '9')
		d = c - '0';
	else if (c >= 'a' && c <= 'f')
		d = c - 'a' + 10;
	else
		return -1;
	return d < (int)base ? d : -1;
}

static bool number(struct cursor *c, unsigned base, uint64_t max, uint64_t *ret)
{
	const char *first = c->at;
	uint64_t n = 0;
	int d;

	for (; c->at < c->end && (d = digit(*c->at, base)) >= 0; c->at++) {
		if (n > (max - (unsigned)d) / base)
			return false;
		n = n * base + (unsigned)d;
	}
	*ret = n;
	return c->at > first;
}

static bool expect(struct cursor *c, char wanted)
{
	if (c->at == c->end || *c->at != wanted)
		return false;
	c->at++;
	return true;
}

static bool flag(struct cursor *c, char yes, char no, bool *ret)
{
	if (c->at == c->end || (*c->at != yes && *c->at != no))
		return false;
	*ret = *c->at++ == yes;
	return true;
}

int procmaps_parse(const char *line, size_t len, struct procmaps_entry *ret)
{
	struct cursor c = { line, line + len };
	struct procmaps_entry e;
	uint64_t major, minor;

	memset(&e, 0, sizeof(e));
	if (!number(&c, 16, UINT64_MAX, &e.start) || !expect(&c, '-') || !number(&c, 16, UINT64_MAX, &e.limit) ||
	    !expect(&c, ' ') || e.start >= e.limit)
		return -EINVAL;
	if (!flag(&c, 'r', '-', &e.readable) || !flag(&c, 'w', '-', &e.writable) || !flag(&c, 'x', '-', &e.executable) ||
	    !flag(&c, 's', 'p', &e.shared) || !expect(&c, ' '))
		return -EINVAL;
	if (!number(&c, 16, UINT64_MAX, &e.offset) || !expect(&c, ' ') || !number(&c, 16, UINT32_MAX, &major) ||
	    !expect(&c, ':') || !number(&c, 16, UINT32_MAX, &minor) || !expect(&c, ' ') ||
	    !number(&c, 10, UINT64_MAX, &e.inode))
		return -EINVAL;
	if (c.at < c.end && *c.at != ' ')
		return -EINVAL;
	while (c.at < c.end && *c.at == ' ')
		c.at++;
	e.major = (uint32_t)major;
	e.minor = (uint32_t)minor;
	e.path = c.at;
	e.path_len = (size_t)(c.end - c.at);
	*ret = e;
	return 0;
}

size_t procmaps_unescape(char *out, size_t cap, const char *in, size_t len)
{
	size_t n = 0, i = 0;

	while (i < len && n + 1 < cap) {
		if (len - i >= 4 && !memcmp(in + i, "\\012", 4)) {
			out[n++] = '\n';
			i += 4;
		} else {
			out[n++] = in[i++];
		}
	}
	out[n] = 0;
	return n;
}

size_t procmaps_strip_deleted(const char *path, size_t len, bool *ret_deleted)
{
	static const char suffix[] = " (deleted)";
	size_t n = sizeof(suffix) - 1;

	*ret_deleted = len > n && !memcmp(path + len - n, suffix, n);
	return *ret_deleted ? len - n : len;
}
