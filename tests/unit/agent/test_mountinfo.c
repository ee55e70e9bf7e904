// SPDX-License-Identifier: Apache-2.0
#include "agent/mountinfo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <cmocka.h>

#include "agent/devices.h"
#include "unit/agent/tree.h"

static void plain(void **state)
{
	char line[] = "27 1 254:0 / / rw,relatime shared:1 master:3 - ext4 /dev/vda rw,discard";
	struct mount m;

	assert_true(mountinfo_line(line, &m));
	assert_int_equal(m.id, 27);
	assert_int_equal(m.dev, KDEV(254, 0));
	assert_string_equal(m.root, "/");
	assert_string_equal(m.point, "/");
	assert_string_equal(m.options, "rw,relatime");
	assert_string_equal(m.type, "ext4");
	assert_string_equal(m.source, "/dev/vda");
	assert_string_equal(m.super, "rw,discard");
}

static void escapes(void **state)
{
	char line[] = "36 35 98:0 /a\\040b /mnt/new\\011line\\134x\\043 rw - fuse.x ser\\040ver rw";
	struct mount m;

	assert_true(mountinfo_line(line, &m));
	assert_string_equal(m.root, "/a b");
	assert_string_equal(m.point, "/mnt/new\tline\\x#");
	assert_string_equal(m.source, "ser ver");
}

static void odd_escapes(void **state)
{
	char line[] = "36 35 98:0 / /m\\04\\9\\000\\777\\ rw - ext4 x rw";
	struct mount m;

	// What is no escape, or would be a NUL or more than a byte, stays as it is.
	assert_true(mountinfo_line(line, &m));
	assert_string_equal(m.point, "/m\\04\\9\\000\\777\\");
}

static void empty_source(void **state)
{
	char line[] = "36 35 0:9 / /m rw - tmpfs  rw,size=4k";
	struct mount m;

	assert_true(mountinfo_line(line, &m));
	assert_string_equal(m.source, "");
	assert_string_equal(m.super, "rw,size=4k");
}

static void not_a_mount(void **state)
{
	static const char *const lines[] = {
		"", "1", "1 2 3:4 / /", "1 2 3:4 / / rw", "1 2 3:4 / / rw -", "1 2 3:4 / / rw - ext4", "1 2 3 / / rw - ext4 x rw",
		"1 2 3:x / / rw - ext4 x rw", "1 2 99999:1 / / rw - ext4 x rw", "1 2 1:99999999999 / / rw - ext4 x rw",
		"1 2 -1:1 / / rw - ext4 x rw", "x 2 1:1 / / rw - ext4 x rw", "1 2 3:4 / / rw shared:1 ext4 x rw",
	};
	struct mount m;

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		char copy[128];

		snprintf(copy, sizeof(copy), "%s", lines[i]);
		assert_false(mountinfo_line(copy, &m));
	}
}

static int count(const struct mount *m, void *data)
{
	++*(int *)data;
	return strcmp(m->point, "/stop") ? 0 : 7;
}

static void each(void **state)
{
	struct tree t;
	char path[128];
	int n = 0;

	tree_new(&t);
	tree_file(&t, "mounts", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\nrubbish\n\n2 1 0:5 / /stop rw - proc proc rw\n"
				"3 1 0:6 / /more rw - proc proc rw\n");
	assert_int_equal(mountinfo_each(tree_path(&t, "mounts", path, sizeof(path)), count, &n), 7);
	assert_int_equal(n, 2);
	assert_int_equal(mountinfo_each("/nonexistent", count, &n), -ENOENT);
	tree_file(&t, "empty", "%s", "");
	assert_int_equal(mountinfo_each(tree_path(&t, "empty", path, sizeof(path)), count, &n), 0);
	tree_free(&t);
}

static void own(void **state)
{
	int n = 0;

	assert_int_equal(mountinfo_each(NULL, count, &n), 0);
	assert_true(n > 0);
}

static void options(void **state)
{
	assert_true(mountinfo_option("rw,dax", "dax"));
	assert_true(mountinfo_option("dax=always,rw", "dax"));
	assert_false(mountinfo_option("rw,dax=never", "dax"));
	assert_false(mountinfo_option("rw,dax=inode", "dax"));
	assert_false(mountinfo_option("rw,nodax,daxx", "dax"));
	assert_true(mountinfo_option("rw,cpu,cpuacct", "cpuacct"));
	assert_true(mountinfo_option("rw,cpu,cpuacct", "cpu"));
	assert_false(mountinfo_option("rw,cpuset", "cpu"));
	assert_false(mountinfo_option("", "cpu"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),       cmocka_unit_test(escapes), cmocka_unit_test(odd_escapes),
		cmocka_unit_test(empty_source), cmocka_unit_test(not_a_mount), cmocka_unit_test(each),
		cmocka_unit_test(own),	       cmocka_unit_test(options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
