// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "request/thread_dump.h"

static void note(void *context, uint32_t nid, const char *name, size_t len)
{
	char *out = context;

	sprintf(out + strlen(out), "%u=%.*s;", nid, (int)len, name);
}

static void names_of_each_version(void **state)
{
	static const char dump[] =
		"0\n2026-11-30 12:00:00\nFull thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode, sharing):\n\n"
		"\"qtp730923082-65\" #65 prio=5 os_prio=0 cpu=1.2ms elapsed=3.4s tid=0x00007f nid=0x1a2b runnable  [0x1]\n"
		"   java.lang.Thread.State: RUNNABLE\n\tat x.y(Z.java:1)\n"
		"\"a \"quoted\" nid=7 name\" #66 [4711] prio=5 os_prio=0 cpu=1ms tid=0x7f nid=4711 waiting on condition\n"
		"\"GC Thread#0\" os_prio=0 cpu=5.0ms elapsed=1.0s tid=0x00007f nid=0x2 runnable\n"
		"\"no number\" #1 prio=5\n\"\n\"\"\n\" nid=";
	char out[400] = "";

	assert_int_equal(thread_dump_parse(dump, sizeof(dump) - 1, 100, note, out), 3);
	assert_string_equal(out, "6699=qtp730923082-65;4711=a \"quoted\" nid=7 name;2=GC Thread#0;");
	out[0] = 0;
	assert_int_equal(thread_dump_parse(dump, sizeof(dump) - 1, 1, note, out), 1);
	assert_int_equal(thread_dump_parse("", 0, 1, note, out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(names_of_each_version) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
