// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "symbolize/symbolize.h"

#define NAME_MAX_LEN 4096

static bool word(char c)
{
	return c == '_' || c == '$' || c & 0x80 || isalnum((unsigned char)c);
}

// Stubs and other things of the VM that a perf map names in words ("StubRoutines (1)", "Interpreter") are no methods.
static bool is_method(const char *name, size_t len)
{
	bool separator = false;

	for (size_t i = 0; i < len; i++) {
		if (name[i] == '.' || name[i] == '/' || name[i] == ':')
			separator = true;
		else if (name[i] == ' ' || name[i] == '[' || name[i] == ']')
			return false;
	}
	return separator;
}

// "Lorg/x/A;::f", "org/x/A.f", "org.x.A::f" become "org.x.A.f". The '/' of a hidden class's number is left to strip_numbers.
static size_t to_dots(char *name, size_t len)
{
	size_t n = 0;
	bool descriptor = name[0] == 'L' && memchr(name, ';', len);

	for (size_t i = descriptor; i < len; i++) {
		if (name[i] == ';' || (name[i] == ':' && n && name[n - 1] == '.'))
			continue;
		if (name[i] == '/' && i + 2 < len && name[i + 1] == '0' && name[i + 2] == 'x')
			name[n++] = '/';
		else if (name[i] == '/' || name[i] == ':')
			name[n++] = '.';
		else
			name[n++] = name[i];
	}
	name[n] = 0;
	return n;
}

static size_t digits(const char *text)
{
	return strspn(text, "0123456789");
}

// What runs of a program number differently: "$$Lambda$14/0x0000000800c03000", "/0x…" of any hidden class, "$Proxy12",
// "GeneratedMethodAccessor7".
static size_t number_at(const char *at, const char *start)
{
	static const char *const stems[] = { "$$Lambda", "$Proxy", "GeneratedMethodAccessor", "GeneratedConstructorAccessor",
					     "GeneratedSerializationConstructorAccessor" };

	if (at[0] == '/' && at[1] == '0' && at[2] == 'x')
		return 3 + strspn(at + 3, "0123456789abcdefABCDEF");
	if (at[0] == '+' && at[1] == '0' && at[2] == 'x')
		return 3 + strspn(at + 3, "0123456789abcdefABCDEF");
	for (size_t i = 0; i < sizeof(stems) / sizeof(*stems); i++) {
		size_t len = strlen(stems[i]), skip = at[0] == '$';

		if ((size_t)(at - start) >= len && !memcmp(at - len, stems[i], len) && digits(at + skip) &&
		    !word(at[skip + digits(at + skip)]))
			return skip + digits(at + skip);
	}
	return 0;
}

static void strip_numbers(char *name)
{
	char *to = name;

	for (const char *from = name; *from;) {
		size_t skip = from > name ? number_at(from, name) : 0;

		if (skip)
			from += skip;
		else
			*to++ = *from++;
	}
	*to = 0;
}

bool sym_java_name(const char *name, char *out, size_t cap)
{
	char copy[NAME_MAX_LEN], *start = copy, *parenthesis, *space;
	size_t len;

	if (!cap)
		return false;
	text_sanitize(copy, sizeof(copy), name, strlen(name));
	parenthesis = strchr(copy, '(');
	if (parenthesis && parenthesis > copy && parenthesis[-1] != ' ')
		*parenthesis = 0;
	// The return type; a type is one word, so that more of them are no method.
	space = strchr(copy, ' ');
	if (space && !strchr(space + 1, ' '))
		start = space + 1;
	len = strlen(start);
	if (is_method(start, len)) {
		to_dots(start, len);
		strip_numbers(start);
	} else {
		start = copy;
		text_sanitize(copy, sizeof(copy), name, strlen(name));
	}
	text_sanitize(out, cap, start, strlen(start));
	return strcmp(out, name) != 0;
}
