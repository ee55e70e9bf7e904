// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "common/when.h"

#define NOW 1796026500000000000ull // 2026-11-30T08:15:00Z
#define S 1000000000ull

static void times(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "2026-11-30T08:15:00Z", NOW }, { "2026-11-30 08:15:00z", NOW }, { "2026-11-30T09:15:00+01:00", NOW },
		{ "2026-11-30T04:45:00-03:30", NOW }, { "2026-11-30T08:15:00.5Z", NOW + S / 2 },
		{ "2026-11-30T08:15:00.1234567891Z", NOW + 123456789 }, { "1970-01-01T00:00:00Z", 0 }, { "2024-02-29T00:00:00Z", 1709164800 * S },
		{ "2016-12-31T23:59:60Z", 1483228800 * S }, { "0", 0 }, { "1796026500", NOW }, { "1796026500.25", NOW + S / 4 },
		{ "now", NOW }, { "-15m", NOW - 900 * S }, { "-1.5h", NOW - 5400 * S }, { "-30", NOW - 30 * S }, { "-0s", NOW },
		{ "-2d", NOW - 172800 * S },
	};
	uint64_t ns;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		struct error e = { "" };

		if (when_parse(good[i].text, NOW, "--from", &ns, &e))
			fail_msg("%s", e.text);
		if (ns != good[i].ns)
			fail_msg("%s: %llu", good[i].text, (unsigned long long)ns);
	}
}

static void wrong_times(void **state)
{
	static const char *const bad[] = {
		"", "-", "15m", "yesterday", "2026-11-30", "2026-11-30T08:15Z", "2026-11-30T08:15:00", "2026-02-30T00:00:00Z",
		"2023-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-11-30T24:00:00Z", "2026-11-30T08:15:00.Z", "2026-11-30T08:15:00+1:00",
		"2026-11-30T08:15:00Zx", "1796026500s", "1e9", "1.", ".5", "--5m", "-5x", "now ", " 1", "0x10", "-inf", "+5",
	};
	static const char *const range[] = { "9300000000", "99999999999999999999999", "2300-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "-99999d" };
	struct error e;
	uint64_t ns = 42;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (when_parse(bad[i], NOW, "--from", &ns, &e) != -EINVAL)
			fail_msg("'%s' is taken", bad[i]);
		assert_non_null(strstr(e.text, "--from"));
	}
	for (size_t i = 0; i < sizeof(range) / sizeof(*range); i++)
		if (when_parse(range[i], NOW, "--to", &ns, &e) != -ERANGE)
			fail_msg("'%s' is taken", range[i]);
	assert_int_equal(ns, 42);
}

static void windows(void **state)
{
	struct error e;
	uint64_t from = 1, to = 2;

	assert_int_equal(when_range("-1h..-30m", NOW, "BASE", &from, &to, &e), 0);
	assert_int_equal(from, NOW - 3600 * S);
	assert_int_equal(to, NOW - 1800 * S);
	assert_int_equal(when_range("2026-11-30T08:00:00.5Z..now", NOW, "BASE", &from, &to, &e), 0);
	assert_int_equal(from, NOW - 900 * S + S / 2);
	assert_int_equal(when_range("-30m..-1h", NOW, "BASE", &from, &to, &e), -EINVAL);
	assert_int_equal(when_range("now..now", NOW, "BASE", &from, &to, &e), -EINVAL);
	assert_int_equal(when_range("-30m", NOW, "BASE", &from, &to, &e), -EINVAL);
	assert_int_equal(when_range("..", NOW, "BASE", &from, &to, &e), -EINVAL);
}

static void texts(void **state)
{
	char out[WHEN_SIZE];

	assert_string_equal(when_text(NOW, out), "2026-11-30T08:15:00Z");
	assert_string_equal(when_text(NOW + S / 2, out), "2026-11-30T08:15:00.5Z");
	assert_string_equal(when_text(NOW + 1, out), "2026-11-30T08:15:00.000000001Z");
	assert_string_equal(when_text(0, out), "1970-01-01T00:00:00Z");
	when_text(UINT64_MAX, out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times),
		cmocka_unit_test(wrong_times),
		cmocka_unit_test(windows),
		cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
