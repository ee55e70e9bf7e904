// SPDX-License-Identifier: Apache-2.0
#include "agent/hostinfo.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "unit/agent/tree.h"

struct host {
	struct tree tree;
	char proc[128], sysfs[128];
	struct hostinfo info;
};

static int setup(void **state)
{
	struct host *h = calloc(1, sizeof(*h));

	tree_new(&h->tree);
	tree_path(&h->tree, "proc", h->proc, sizeof(h->proc));
	tree_path(&h->tree, "sys", h->sysfs, sizeof(h->sysfs));
	*state = h;
	return 0;
}

static int teardown(void **state)
{
	struct host *h = *state;

	tree_free(&h->tree);
	free(h);
	return 0;
}

static const struct hostinfo *read_host(struct host *h)
{
	const struct hostinfo_options o = { .proc = h->proc, .sysfs = h->sysfs };

	assert_int_equal(hostinfo_read(&o, &h->info), 0);
	return &h->info;
}

static void bare(void **state)
{
	const struct hostinfo *i = read_host(*state);
	char missing[128];

	assert_int_equal(i->lockdown, LOCKDOWN_UNKNOWN);
	assert_false(i->btf || i->kprobes || i->uprobes || i->perf_events || i->kallsyms);
	assert_int_equal(i->perf_event_paranoid, INT_MIN);
	assert_int_equal(i->kptr_restrict, -1);
	assert_string_equal(i->tracefs, "");
	assert_int_equal(i->cgroup_layout, CGROUP_NONE);
	assert_int_equal(i->capabilities, 0);
	assert_int_equal(hostinfo_missing(i, missing, sizeof(missing)), 3);
	assert_string_equal(missing, "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE");
	assert_int_equal(hostinfo_missing(i, missing, 5), 3);
	assert_string_equal(missing, "CAP_");
	assert_true(i->cpus >= 1);
	assert_true(i->node[0] && i->release[0] && i->machine[0]);
}

static void full(void **state)
{
	struct host *h = *state;
	const struct hostinfo *i;
	char missing[128];

	tree_file(&h->tree, "sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	tree_file(&h->tree, "sys/kernel/btf/vmlinux", "x");
	tree_file(&h->tree, "sys/bus/event_source/devices/kprobe/type", "6\n");
	tree_file(&h->tree, "proc/sys/kernel/perf_event_paranoid", "-1\n");
	tree_file(&h->tree, "proc/sys/kernel/kptr_restrict", "2\n");
	tree_file(&h->tree, "proc/sys/kernel/unprivileged_bpf_disabled", "rubbish\n");
	tree_file(&h->tree, "proc/kallsyms", "0000000000000000 A fixed\nffffffff81000000 T _stext\n");
	tree_file(&h->tree, "proc/self/status", "Name:\tx\nCapPrm:\t0\nCapEff:\t0000008000080000\nCapBnd:\tff\n");
	tree_file(&h->tree, "proc/self/mountinfo",
		  "1 0 0:1 / /sys/kernel/tracing rw - tracefs tracefs rw\n2 1 0:2 / /c/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
		  "3 1 0:2 / /c/cpu rw - cgroup cgroup rw,cpu,cpuacct\n4 1 0:6 / /c/u rw - cgroup2 cgroup2 rw\n"
		  "5 1 0:6 / /c/s rw - cgroup cgroup rw,name=systemd\n");
	tree_file(&h->tree, "proc/1/environ", "%s", "PATH=/bin");
	tree_file(&h->tree, "proc/self/root/run/.containerenv", "%s", "");
	i = read_host(h);
	assert_int_equal(i->lockdown, LOCKDOWN_INTEGRITY);
	assert_true(i->btf && i->kprobes && !i->uprobes && i->perf_events && i->kallsyms);
	assert_int_equal(i->perf_event_paranoid, -1);
	assert_int_equal(i->kptr_restrict, 2);
	assert_int_equal(i->unprivileged_bpf_disabled, -1);
	assert_string_equal(i->tracefs, "/sys/kernel/tracing");
	assert_string_equal(i->cgroup_controllers, "cpu,cpuacct");
	assert_string_equal(i->cgroup2, "/c/u");
	assert_int_equal(i->cgroup_layout, CGROUP_HYBRID);
	assert_string_equal(i->container, "podman");
	// CAP_BPF (39) and CAP_SYS_PTRACE (19)
	assert_true(hostinfo_capable(i, CAP_BPF));
	assert_int_equal(hostinfo_missing(i, missing, sizeof(missing)), 1);
	assert_string_equal(missing, "CAP_PERFMON");
}

static void admin_stands_in(void **state)
{
	struct hostinfo i = { .capabilities = 1ull << CAP_SYS_ADMIN, .initial_user_ns = true };

	assert_true(hostinfo_capable(&i, CAP_BPF));
	assert_true(hostinfo_capable(&i, CAP_PERFMON));
	assert_false(hostinfo_capable(&i, CAP_SYS_PTRACE));
	assert_false(hostinfo_capable(&i, CAP_SYSLOG));
	assert_false(hostinfo_capable(&i, 200));
	// Root of a user namespace has all of them, for nothing.
	i.capabilities = UINT64_MAX;
	i.initial_user_ns = false;
	assert_false(hostinfo_capable(&i, CAP_BPF));
}

static void lockdowns(void **state)
{
	static const struct {
		const char *text;
		enum lockdown is;
	} cases[] = {
		{ "[none] integrity confidentiality\n", LOCKDOWN_NONE }, { "none integrity [confidentiality]\n", LOCKDOWN_CONFIDENTIALITY },
		{ "[future]\n", LOCKDOWN_UNKNOWN }, { "", LOCKDOWN_UNKNOWN },
	};
	struct host *h = *state;

	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		tree_file(&h->tree, "sys/kernel/security/lockdown", "%s", cases[c].text);
		assert_int_equal(read_host(h)->lockdown, cases[c].is);
	}
	assert_string_equal(lockdown_name(LOCKDOWN_CONFIDENTIALITY), "confidentiality");
	assert_string_equal(lockdown_name(77), "unknown");
	assert_string_equal(cgroup_layout_name(CGROUP_HYBRID), "v1 with v2 beside it");
}

static void container(void **state)
{
	struct host *h = *state;
	char path[200];
	FILE *f;

	tree_file(&h->tree, "proc/1/environ", "%s", "");
	tree_path(&h->tree, "proc/1/environ", path, sizeof(path));
	f = fopen(path, "w");
	assert_non_null(f);
	// Without a NUL at its end, as a process may have it.
	fwrite("A=1\0container=lxc\0B", 1, 19, f);
	fclose(f);
	assert_string_equal(read_host(h)->container, "lxc");
}

static void node_names(void **state)
{
	static const char *const cases[][2] = {
		{ "db-1.example.org", "db-1.example.org" }, { "", "localhost" }, { "..", "node" }, { ".", "node" },
		{ "a/b\nc \"d\xff", "a_b_c__d_" }, { "A_9", "A_9" },
	};
	char out[65], small[4];

	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		hostinfo_node_name(cases[c][0], out, sizeof(out));
		assert_string_equal(out, cases[c][1]);
	}
	hostinfo_node_name("abcdef", small, sizeof(small));
	assert_string_equal(small, "abc");
}

static void long_root(void **state)
{
	struct hostinfo_options o;
	struct hostinfo i;
	char name[600];

	memset(name, '/', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	o.proc = name;
	o.sysfs = NULL;
	assert_int_equal(hostinfo_read(&o, &i), -ENAMETOOLONG);
}

static void this_host(void **state)
{
	unsigned n;
	struct hostinfo i;

	assert_int_equal(hostinfo_read(NULL, &i), 0);
	assert_int_equal(i.btf, !access("/sys/kernel/btf/vmlinux", F_OK));
	if (!geteuid() && i.initial_user_ns) {
		assert_true(hostinfo_capable(&i, CAP_DAC_READ_SEARCH));
		assert_int_not_equal(i.memlock_limit, 0);
	}
	assert_non_null(hostinfo_needs(&n));
	assert_true(n >= 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bare, setup, teardown),	     cmocka_unit_test_setup_teardown(full, setup, teardown),
		cmocka_unit_test(admin_stands_in),			     cmocka_unit_test_setup_teardown(lockdowns, setup, teardown),
		cmocka_unit_test_setup_teardown(container, setup, teardown), cmocka_unit_test(node_names),
		cmocka_unit_test(long_root),				     cmocka_unit_test(this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
