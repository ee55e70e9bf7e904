// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/text.h"
#include "symbolize/perf_map.h"

static struct perf_map *map_of(const char *text)
{
	struct perf_map *m = perf_map_new(1 << 20);

	assert_non_null(m);
	assert_int_equal(perf_map_add(m, text, strlen(text)), strlen(text));
	return m;
}

static const char *at(struct perf_map *m, uint64_t address)
{
	struct perf_symbol s;

	return perf_map_find(m, address, &s) ? s.name : "-";
}

static void lines(void **state)
{
	struct perf_map *m = map_of("1000 10 one\n0x2000 0x20 two words: /srv/a.js:1\nABCDEF0 1 last\n");

	assert_int_equal(perf_map_count(m), 3);
	assert_string_equal(at(m, 0xfff), "-");
	assert_string_equal(at(m, 0x1000), "one");
	assert_string_equal(at(m, 0x100f), "one");
	assert_string_equal(at(m, 0x1010), "-");
	assert_string_equal(at(m, 0x201f), "two words: /srv/a.js:1");
	assert_string_equal(at(m, 0xabcdef0), "last");
	assert_string_equal(at(m, UINT64_MAX), "-");
	perf_map_free(m);
}

// The rest of a line comes later; what was taken is not taken again.
static void partial_lines(void **state)
{
	static const char text[] = "1000 10 one\n2000 10 two\n";
	struct perf_map *m = perf_map_new(1 << 20);
	size_t taken = 0;

	for (size_t len = 1; len < sizeof(text); len++)
		taken += perf_map_add(m, text + taken, len - taken);
	assert_int_equal(taken, strlen(text));
	assert_int_equal(perf_map_count(m), 2);
	assert_int_equal(perf_map_malformed(m), 0);
	assert_string_equal(at(m, 0x1001), "one");
	assert_string_equal(at(m, 0x2001), "two");
	perf_map_free(m);
}

static void newest_wins(void **state)
{
	struct perf_map *m = map_of("1000 1000 old\n1400 100 middle\n1480 10 inner\n1000 10 first\n1f00 200 over the end\n");

	assert_string_equal(at(m, 0x1000), "first");
	assert_string_equal(at(m, 0x1010), "old");
	assert_string_equal(at(m, 0x13ff), "old");
	assert_string_equal(at(m, 0x1400), "middle");
	assert_string_equal(at(m, 0x1480), "inner");
	assert_string_equal(at(m, 0x1490), "middle");
	assert_string_equal(at(m, 0x1500), "old");
	assert_string_equal(at(m, 0x1eff), "old");
	assert_string_equal(at(m, 0x20ff), "over the end");
	assert_int_equal(perf_map_add(m, "1000 1000 new\n", 14), 14);
	assert_string_equal(at(m, 0x1480), "new");
	assert_string_equal(at(m, 0x2000), "over the end");
	perf_map_free(m);
}

// Held against a search through all entries.
static void random_overlaps(void **state)
{
	struct { uint64_t start, limit; } all[300];
	struct perf_map *m = perf_map_new(1 << 20);
	char line[64], expect[32];

	srand(7);
	for (unsigned i = 0; i < 300; i++) {
		all[i].start = (uint64_t)rand() % 2000;
		all[i].limit = all[i].start + 1 + (uint64_t)rand() % 200;
		snprintf(line, sizeof(line), "%llx %llx f%u\n", (unsigned long long)all[i].start,
			 (unsigned long long)(all[i].limit - all[i].start), i);
		perf_map_add(m, line, strlen(line));
	}
	for (uint64_t address = 0; address < 2300; address++) {
		strcpy(expect, "-");
		for (unsigned i = 0; i < 300; i++)
			if (address >= all[i].start && address < all[i].limit)
				snprintf(expect, sizeof(expect), "f%u", i);
		assert_string_equal(at(m, address), expect);
	}
	perf_map_free(m);
}

static void hostile_lines(void **state)
{
	struct perf_map *m = map_of("\n1000\n1000 10\n1000 10 \n1000 0 zero\n-1 10 minus\n10000000000000000 1 large\n"
				    "ffffffffffffffff 2 over\n1000  10 blanks\n1000 10x name\n\xff\xfe\n"
				    "5000 10 \xff\x01name\n");
	struct perf_symbol s;
	char *line = malloc(100000);

	assert_int_equal(perf_map_count(m), 1);
	assert_true(perf_map_malformed(m) >= 9);
	assert_true(perf_map_find(m, 0x5000, &s));
	assert_true(text_is_utf8(s.name, strlen(s.name)));
	memset(line, 'x', 100000);
	memcpy(line, "6000 10 ", 8);
	line[99999] = '\n';
	perf_map_add(m, line, 100000);
	assert_int_equal(strlen(at(m, 0x6000)), PERF_MAP_NAME_MAX - 1);
	free(line);
	perf_map_free(m);
}

static void memory_is_bounded(void **state)
{
	struct perf_map *m = perf_map_new(64 << 10);
	char line[64];

	for (unsigned i = 0; i < 100000; i++) {
		snprintf(line, sizeof(line), "%x 10 function_number_%u\n", i * 16, i);
		perf_map_add(m, line, strlen(line));
		if (!(i % 10000))
			at(m, 0);
		assert_true(perf_map_memory(m) <= (64 << 10) + 4096);
	}
	assert_int_equal(perf_map_count(m) + perf_map_refused(m), 100000);
	assert_true(perf_map_count(m) > 300);
	assert_string_equal(at(m, 5), "function_number_0");
	perf_map_free(m);
}

static void display(void **state)
{
	static const char *const names[][2] = {
		{ "LazyCompile:*read /srv/app.js:10", "read /srv/app.js:10" },
		{ "JS:~read file:///srv/app.mjs:10:3", "read file:///srv/app.mjs:10:3" },
		{ "Function:^ /srv/app.js:1", "(anonymous) /srv/app.js:1" },
		{ "py::read_page:/srv/app.py", "read_page /srv/app.py" },
		{ "void org.x.A.readBytes(byte[], int)", "org.x.A.readBytes" },
		{ "Interpreter", "Interpreter" },
	};
	char out[PERF_MAP_NAME_MAX];

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		perf_map_display(names[i][0], out, sizeof(out));
		assert_string_equal(out, names[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),	   cmocka_unit_test(partial_lines), cmocka_unit_test(newest_wins),
		cmocka_unit_test(random_overlaps), cmocka_unit_test(hostile_lines), cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(display),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
