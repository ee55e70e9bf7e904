// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/request_targets.h"
#include "unit/agent/tree.h"

struct seen {
	char text[400];
};

static void note(void *context, pid_t pid, bool came)
{
	struct seen *s = context;
	size_t used = strlen(s->text);

	snprintf(s->text + used, sizeof(s->text) - used, "%c%d ", came ? '+' : '-', (int)pid);
}

static void process(const struct tree *t, int pid, const char *comm, const char *cmdline, const char *cgroup, unsigned start)
{
	char name[64];

	snprintf(name, sizeof(name), "%d/comm", pid);
	tree_file(t, name, "%s\n", comm);
	snprintf(name, sizeof(name), "%d/cmdline", pid);
	tree_file(t, name, "%s", cmdline);
	snprintf(name, sizeof(name), "%d/cgroup", pid);
	tree_file(t, name, "4:memory:%s\n0::/\n", cgroup);
	snprintf(name, sizeof(name), "%d/stat", pid);
	tree_file(t, name, "%d (odd) name)) S 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 %u 100", pid, start);
}

static void ends(const struct tree *t, int pid)
{
	static const char *const files[] = { "comm", "cmdline", "cgroup", "stat" };
	char path[128];

	for (unsigned i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%d/%s", t->root, pid, files[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/%d", t->root, pid);
	rmdir(path);
}

static void expect(struct request_targets *targets, const char *want)
{
	struct seen s = { "" };

	request_targets_scan(targets, note, &s);
	assert_string_equal(s.text, want);
}

static void found_by_each_rule(void **state)
{
	static const struct {
		struct request_rules rules;
		const char *want;
	} cases[] = {
		{ { .pid = { "10" }, .n_pid = 1 }, "+10 " },
		{ { .comm = { "java" }, .n_comm = 1 }, "+10 " },
		{ { .comm = { "j*" }, .n_comm = 1 }, "+10 " },
		{ { .comm = { "jav" }, .n_comm = 1 }, "" },
		{ { .cmdline = { "solr.home" }, .n_cmdline = 1 }, "+10 " },
		{ { .cmdline = { "*start.jar" }, .n_cmdline = 1 }, "+10 " },
		{ { .cmdline = { "start*" }, .n_cmdline = 1 }, "" },
		{ { .cmdline = { "java*start.jar" }, .n_cmdline = 1 }, "+10 " },
		{ { .cgroup = { "/system.slice/solr.service" }, .n_cgroup = 1 }, "+10 " },
		{ { .cgroup = { "/sys/fs/cgroup/memory/system.slice" }, .n_cgroup = 1 }, "+10 " },
		{ { .cgroup = { "/system.slice/sol" }, .n_cgroup = 1 }, "" },
		{ { .cgroup = { "/" }, .n_cgroup = 1 }, "" },
	};
	struct tree tree;

	tree_new(&tree);
	process(&tree, 10, "java", "java -Dsolr.home=/x start.jar", "/system.slice/solr.service/child", 500);
	process(&tree, 11, "bash", "", "/user.slice", 600);
	tree_file(&tree, "uptime", "1 1");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct request_targets *t;
		struct error e;

		assert_int_equal(request_targets_new(&cases[i].rules, tree.root, &t, &e), 0);
		expect(t, cases[i].want);
		request_targets_free(t);
	}
	tree_free(&tree);
}

static void found_again_after_a_restart(void **state)
{
	const struct request_rules rules = { .comm = { "java" }, .n_comm = 1 };
	struct request_targets *t;
	struct tree tree;
	struct error e;

	tree_new(&tree);
	process(&tree, 10, "java", "java", "/", 500);
	assert_int_equal(request_targets_new(&rules, tree.root, &t, &e), 0);
	expect(t, "+10 ");
	expect(t, "");
	process(&tree, 10, "java", "java", "/", 501); // the same number, another process
	expect(t, "-10 +10 ");
	ends(&tree, 10);
	process(&tree, 12, "java", "java", "/", 700);
	expect(t, "+12 -10 ");
	process(&tree, 12, "bash", "bash", "/", 700); // it runs another program now
	expect(t, "-12 ");
	assert_int_equal(request_targets_count(t), 0);
	request_targets_free(t);
	tree_free(&tree);
}

// `sudo blkprof requests --cmdline x`, and the shell that runs that, have x in their command lines.
static void those_that_run_us_are_not_meant(void **state)
{
	const struct request_rules by_cmdline = { .cmdline = { "server.jar" }, .n_cmdline = 1 }, by_pid = { .pid = { "1" }, .n_pid = 1 };
	struct request_targets *t;
	struct tree tree;
	struct error e;

	tree_new(&tree);
	process(&tree, getpid(), "blkprof", "blkprof requests --cmdline server.jar", "/", 900); // a child of 1
	process(&tree, 1, "sudo", "sudo blkprof requests --cmdline server.jar", "/", 800);
	process(&tree, 10, "java", "java -jar server.jar", "/", 500);
	assert_int_equal(request_targets_new(&by_cmdline, tree.root, &t, &e), 0);
	expect(t, "+10 ");
	request_targets_free(t);
	assert_int_equal(request_targets_new(&by_pid, tree.root, &t, &e), 0);
	expect(t, "+1 ");
	request_targets_free(t);
	tree_free(&tree);
}

static void what_is_no_pid(void **state)
{
	const struct request_rules rules = { .pid = { "4711x" }, .n_pid = 1 };
	struct request_targets *t;
	struct error e;

	assert_int_equal(request_targets_new(&rules, NULL, &t, &e), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_by_each_rule),
		cmocka_unit_test(found_again_after_a_restart),
		cmocka_unit_test(those_that_run_us_are_not_meant),
		cmocka_unit_test(what_is_no_pid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
