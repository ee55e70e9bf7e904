// SPDX-License-Identifier: Apache-2.0
#include "common/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int text_number(const char *text, uint64_t min, uint64_t max, const char *what, uint64_t *ret, struct error *e)
{
	char *end;
	unsigned long long n;

	if (!*text || strspn(text, "0123456789") != strlen(text))
		return error_set(e, -EINVAL, "%s: '%.60s' is not a whole number", what, text);
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || n < min || n > max)
		return error_set(e, -ERANGE, "%s: %.30s is not between %llu and %llu", what, text,
				 (unsigned long long)min, (unsigned long long)max);
	*ret = n;
	return 0;
}

struct unit {
	const char *name;
	double factor;
};

static int number_with_unit(const char *text, const char *what, const struct unit *units, const char *names,
			    uint64_t *ret, struct error *e)
{
	char *end;
	double n;

	// strtod also takes "inf", "nan", hexadecimal and signs: the first character rules them out.
	if (*text < '0' || *text > '9' || text[1] == 'x' || text[1] == 'X')
		return error_set(e, -EINVAL, "%s: '%.60s' is not a number with %s", what, text, names);
	n = strtod(text, &end);
	for (; units->name; units++) {
		if (strcmp(end, units->name))
			continue;
		n *= units->factor;
		if (!(n < 9e18))
			return error_set(e, -ERANGE, "%s: '%.60s' is too large", what, text);
		*ret = (uint64_t)llround(n);
		return 0;
	}
	return error_set(e, -EINVAL, "%s: '%.60s' is not a number with %s", what, text, names);
}

int text_duration(const char *text, const char *what, uint64_t *ret_ns, struct error *e)
{
	static const struct unit units[] = {
		{ "", 1e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 }, { "m", 60e9 }, { "h", 3600e9 }, { "d", 86400e9 }, { 0 },
	};

	return number_with_unit(text, what, units, "ms, s, m, h or d", ret_ns, e);
}

int text_size(const char *text, const char *what, uint64_t *ret, struct error *e)
{
	static const struct unit units[] = {
		{ "", 1 }, { "B", 1 }, { "K", 1024 }, { "KiB", 1024 }, { "M", 1048576 }, { "MiB", 1048576 },
		{ "G", 1073741824 }, { "GiB", 1073741824 }, { 0 },
	};

	return number_with_unit(text, what, units, "K, M, G, KiB, MiB or GiB", ret, e);
}

// Length of the valid UTF-8 character at p (1 to 4), or 0. Overlong forms, surrogates and values past U+10FFFF are invalid.
static size_t character(const unsigned char *p, size_t len)
{
	size_t need = p[0] < 0x80 ? 1 : p[0] >= 0xc2 && p[0] <= 0xdf ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : 0;

	if (!need || need > len)
		return 0;
	for (size_t i = 1; i < need; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
	    (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return need;
}

bool text_ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n > k && !strcmp(text + n - k, end);
}

bool text_is_utf8(const char *in, size_t len)
{
	size_t step;

	for (size_t i = 0; i < len; i += step) {
		step = character((const unsigned char *)in + i, len - i);
		if (!step)
			return false;
	}
	return true;
}

// Those of one byte, and U+0080 to U+009F, which terminals obey as well.
static bool is_control(const unsigned char *c, size_t size)
{
	return size == 1 ? *c < 0x20 || *c == 0x7f : size == 2 && *c == 0xc2 && c[1] < 0xa0;
}

size_t text_sanitize(char *out, size_t cap, const char *in, size_t len)
{
	size_t n = 0, step;

	if (!cap)
		return 0;
	for (size_t i = 0; i < len && in[i]; i += step ? step : 1) {
		// Nearly all there is.
		if (in[i] >= 0x20 && in[i] < 0x7f) {
			step = 1;
			if (n + 1 >= cap)
				break;
			out[n++] = in[i];
			continue;
		}
		step = character((const unsigned char *)in + i, len - i);
		if (n + (step ? step : 1) >= cap)
			break;
		if (!step || is_control((const unsigned char *)in + i, step)) {
			out[n++] = '?';
			continue;
		}
		memcpy(out + n, in + i, step);
		n += step;
	}
	out[n] = 0;
	return n;
}

const char *text_bytes(char *out, size_t cap, double bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	size_t u = 0;

	while (fabs(bytes) >= 1024 && u < 5) {
		bytes /= 1024;
		u++;
	}
	snprintf(out, cap, u ? "%.2f %s" : "%.0f %s", bytes, units[u]);
	return out;
}

const char *text_time(char *out, size_t cap, double ns)
{
	double a = fabs(ns);

	if (a < 1e3)
		snprintf(out, cap, "%.0f ns", ns);
	else if (a < 1e6)
		snprintf(out, cap, "%.2f us", ns / 1e3);
	else if (a < 1e9)
		snprintf(out, cap, "%.2f ms", ns / 1e6);
	else
		snprintf(out, cap, "%.2f s", ns / 1e9);
	return out;
}

const char *text_count(char *out, size_t cap, uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
	size_t o = 0;

	for (int i = 0; i < len && o + 2 < cap; i++) {
		if (i && (len - i) % 3 == 0)
			out[o++] = ',';
		out[o++] = digits[i];
	}
	if (cap)
		out[o] = 0;
	return out;
}
