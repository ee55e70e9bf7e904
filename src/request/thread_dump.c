// SPDX-License-Identifier: Apache-2.0
#include "request/thread_dump.h"

#include <string.h>

// "0x1a2b" up to JDK 20, "6699" from 21 on.
static uint32_t number(const char *at, const char *end)
{
	unsigned base = 10, digit;
	uint64_t n = 0;

	if (end - at > 2 && at[0] == '0' && at[1] == 'x') {
		base = 16;
		at += 2;
	}
	for (; at < end && n <= UINT32_MAX; at++) {
		if (*at >= '0' && *at <= '9')
			digit = (unsigned)(*at - '0');
		else if (base == 16 && *at >= 'a' && *at <= 'f')
			digit = (unsigned)(*at - 'a') + 10;
		else
			break;
		n = n * base + digit;
	}
	return n <= UINT32_MAX ? (uint32_t)n : 0;
}

// `"name" #45 prio=5 … nid=0x1a2b waiting on condition`; a name may hold anything.
static int parse_line(const char *line, const char *end, thread_dump_fn fn, void *context)
{
	const char *nid = NULL, *quote;
	uint32_t n;

	for (const char *at = line; (at = memmem(at, (size_t)(end - at), " nid=", 5)); at += 5)
		nid = at;
	if (!nid)
		return 0;
	quote = memrchr(line + 1, '"', (size_t)(nid - line - 1));
	n = number(nid + 5, end);
	if (!quote || !n || quote == line + 1)
		return 0;
	fn(context, n, line + 1, (size_t)(quote - line - 1));
	return 1;
}

unsigned thread_dump_parse(const char *text, size_t size, unsigned max, thread_dump_fn fn, void *context)
{
	const char *end = text + size, *nl;
	unsigned told = 0;

	for (const char *line = text; line < end && told < max; line = nl + 1) {
		nl = memchr(line, '\n', (size_t)(end - line));
		nl = nl ? nl : end;
		if (*line == '"' && nl - line > 2)
			told += (unsigned)parse_line(line, nl, fn, context);
	}
	return told;
}
