// SPDX-License-Identifier: Apache-2.0
#include "common/when.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/text.h"

#define SECOND 1000000000ull

static int bad(const char *text, const char *what, struct error *e)
{
	return error_set(e, -EINVAL, "%s: '%.60s' is no time: give 2026-11-30T08:15:00Z, seconds since 1970, now, or -15m", what, text);
}

static int range_error(const char *text, const char *what, struct error *e)
{
	return error_set(e, -ERANGE, "%s: '%.60s' is not between the years 1970 and 2262", what, text);
}

// n digits at *p in [min, max].
static bool digits(const char **p, unsigned n, int min, int max, int *ret)
{
	int v = 0;

	for (unsigned i = 0; i < n; i++) {
		if ((*p)[i] < '0' || (*p)[i] > '9')
			return false;
		v = v * 10 + ((*p)[i] - '0');
	}
	*p += n;
	*ret = v;
	return v >= min && v <= max;
}

static bool character(const char **p, const char *any)
{
	if (!**p || !strchr(any, **p))
		return false;
	(*p)++;
	return true;
}

// ".25": more than nine digits are cut.
static bool fraction(const char **p, uint64_t *ret)
{
	uint64_t scale = SECOND / 10;

	*ret = 0;
	if (**p != '.')
		return true;
	if ((*p)[1] < '0' || (*p)[1] > '9')
		return false;
	for ((*p)++; **p >= '0' && **p <= '9'; (*p)++, scale /= 10)
		*ret += (uint64_t)(**p - '0') * scale;
	return true;
}

static bool zone(const char **p, int *ret_seconds)
{
	int sign = **p == '-' ? -1 : 1, hours, minutes;

	*ret_seconds = 0;
	if (character(p, "Zz"))
		return true;
	if (!character(p, "+-") || !digits(p, 2, 0, 23, &hours) || !character(p, ":") || !digits(p, 2, 0, 59, &minutes))
		return false;
	*ret_seconds = sign * (hours * 3600 + minutes * 60);
	return true;
}

static bool is_date(const struct tm *given, time_t seconds)
{
	struct tm back;

	// timegm makes the 1st of March of the 30th of February. A leap second is the next minute's first.
	return gmtime_r(&seconds, &back) && (given->tm_sec == 60 || back.tm_mday == given->tm_mday);
}

static int date(const char *text, const char *what, uint64_t *ret, struct error *e)
{
	const char *p = text;
	struct tm tm = { 0 }, given;
	uint64_t part;
	int offset, year;
	time_t seconds;

	if (!digits(&p, 4, 0, 9999, &year) || !character(&p, "-") || !digits(&p, 2, 1, 12, &tm.tm_mon) || !character(&p, "-") ||
	    !digits(&p, 2, 1, 31, &tm.tm_mday) || !character(&p, "Tt ") || !digits(&p, 2, 0, 23, &tm.tm_hour) || !character(&p, ":") ||
	    !digits(&p, 2, 0, 59, &tm.tm_min) || !character(&p, ":") || !digits(&p, 2, 0, 60, &tm.tm_sec) || !fraction(&p, &part) ||
	    !zone(&p, &offset) || *p)
		return bad(text, what, e);
	tm.tm_year = year - 1900;
	tm.tm_mon--;
	given = tm;
	seconds = timegm(&tm);
	if (!is_date(&given, seconds))
		return bad(text, what, e);
	seconds -= offset;
	if (seconds < 0 || (uint64_t)seconds >= INT64_MAX / SECOND)
		return range_error(text, what, e);
	*ret = (uint64_t)seconds * SECOND + part;
	return 0;
}

static int epoch(const char *text, const char *what, uint64_t *ret, struct error *e)
{
	const char *p = text;
	uint64_t seconds = 0, part;

	for (; *p >= '0' && *p <= '9'; p++) {
		seconds = seconds * 10 + (uint64_t)(*p - '0');
		if (seconds >= INT64_MAX / SECOND)
			return range_error(text, what, e);
	}
	if (p == text || !fraction(&p, &part) || *p)
		return bad(text, what, e);
	*ret = seconds * SECOND + part;
	return 0;
}

int when_parse(const char *text, uint64_t now, const char *what, uint64_t *ret, struct error *e)
{
	uint64_t back;

	if (!strcmp(text, "now")) {
		*ret = now;
		return 0;
	}
	if (*text == '-') {
		if (text_duration(text + 1, what, &back, NULL))
			return bad(text, what, e);
		if (back > now)
			return range_error(text, what, e);
		*ret = now - back;
		return 0;
	}
	return strlen(text) > 4 && text[4] == '-' ? date(text, what, ret, e) : epoch(text, what, ret, e);
}

int when_range(const char *text, uint64_t now, const char *what, uint64_t *ret_from, uint64_t *ret_to, struct error *e)
{
	const char *dots = strstr(text, "..");
	uint64_t from, to;
	char first[64];
	int err;

	if (!dots || (size_t)(dots - text) >= sizeof(first))
		return error_set(e, -EINVAL, "%s: '%.60s' is no window: give FROM..TO, as -1h..-30m", what, text);
	memcpy(first, text, (size_t)(dots - text));
	first[dots - text] = 0;
	err = when_parse(first, now, what, &from, e);
	if (!err)
		err = when_parse(dots + 2, now, what, &to, e);
	if (err)
		return err;
	if (from >= to)
		return error_set(e, -EINVAL, "%s: '%.60s' ends before it starts", what, text);
	*ret_from = from;
	*ret_to = to;
	return 0;
}

const char *when_text(uint64_t ns, char *out)
{
	time_t seconds = (time_t)(ns / SECOND);
	char part[12] = "";
	struct tm tm;
	size_t n;

	if (!gmtime_r(&seconds, &tm) || !(n = strftime(out, WHEN_SIZE, "%Y-%m-%dT%H:%M:%S", &tm))) {
		snprintf(out, WHEN_SIZE, "%llu", (unsigned long long)(ns / SECOND));
		return out;
	}
	if (ns % SECOND) {
		snprintf(part, sizeof(part), ".%09u", (unsigned)(ns % SECOND));
		for (size_t last = strlen(part); part[last - 1] == '0'; last--)
			part[last - 1] = 0;
	}
	snprintf(out + n, WHEN_SIZE - n, "%sZ", part);
	return out;
}
