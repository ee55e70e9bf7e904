// SPDX-License-Identifier: Apache-2.0
#include "agent/filter.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "agent/cgroup.h"
#include "bpf/record_rec.h"
#include "unit/agent/tree.h"

static int resolve(const struct filter_options *o, const struct devices *d, struct filter *f, struct error *e)
{
	memset(f, 0x55, sizeof(*f));
	e->text[0] = 0;
	return filter_resolve(o, d, f, e);
}

static void nothing(void **state)
{
	struct filter_options o = { 0 };
	struct filter f;
	struct error e;

	assert_int_equal(resolve(&o, NULL, &f, &e), 0);
	assert_int_equal(f.n_pid + f.n_comm + f.n_cgroup + f.n_device + f.ops, 0);
}

static void ops(void **state)
{
	static const char *const bad[] = { "", "reads", "READ", "read,", ",read", "read,,write", "read write", "write-zeroes" };
	struct filter_options o = { .op = { "read,write_zeroes", "flush" }, .n_op = 2 };
	struct filter f;
	struct error e;

	assert_int_equal(resolve(&o, NULL, &f, &e), 0);
	assert_int_equal(f.ops, 1u << OP_READ | 1u << OP_WRITE_ZEROES | 1u << OP_FLUSH);
	o.n_op = 1;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		o.op[0] = bad[i];
		assert_int_equal(resolve(&o, NULL, &f, &e), -EINVAL);
		assert_true(e.text[0]);
		// Left as it was.
		assert_int_equal(f.ops, 0x55555555);
	}
	for (unsigned op = 0; op < OP_CLASSES; op++) {
		o.op[0] = filter_op_name(op);
		assert_int_equal(resolve(&o, NULL, &f, &e), 0);
		assert_int_equal(f.ops, 1u << op);
	}
	assert_string_equal(filter_op_name(OP_CLASSES), "unknown");
}

static void *thread(void *data)
{
	struct filter_options o = { .n_pid = 1 };
	struct filter f;
	struct error e;
	char tid[16], pid[32];

	snprintf(tid, sizeof(tid), "%d", (int)syscall(SYS_gettid));
	snprintf(pid, sizeof(pid), "--pid %d", (int)getpid());
	o.pid[0] = tid;
	*(int *)data = resolve(&o, NULL, &f, &e) == -EINVAL && strstr(e.text, pid);
	return NULL;
}

static void pids(void **state)
{
	static const char *const bad[] = { "", "x", "-1", "0", "4194305", "1 ", "0x1", "99999999999999999999" };
	struct filter_options o = { .n_pid = 2 };
	char self[32], both[64];
	struct filter f;
	struct error e;
	pthread_t t;
	int said = 0;

	snprintf(self, sizeof(self), "%d", (int)getpid());
	snprintf(both, sizeof(both), "%d,%d", (int)getppid(), (int)getpid());
	o.pid[0] = self;
	o.pid[1] = both;
	assert_int_equal(resolve(&o, NULL, &f, &e), 0);
	assert_int_equal(f.n_pid, 2);
	assert_int_equal(f.pid[0], getpid());
	assert_int_equal(f.pid[1], getppid());
	o.n_pid = 1;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		o.pid[0] = bad[i];
		assert_true(resolve(&o, NULL, &f, &e) < 0);
		assert_true(e.text[0]);
	}
	// Nobody has the last number of all.
	o.pid[0] = "4194304";
	assert_int_equal(resolve(&o, NULL, &f, &e), -ENOENT);
	assert_string_equal(e.text, "--pid: there is no process 4194304");
	assert_int_equal(pthread_create(&t, NULL, thread, &said), 0);
	pthread_join(t, NULL);
	assert_true(said);
}

static void comms(void **state)
{
	struct filter_options o = { .comm = { "postgres", "postgres", "kworker/u8:2,x", "exactly15bytes!" }, .n_comm = 4 };
	char zeroes[16] = { 0 };
	struct filter f;
	struct error e;

	assert_int_equal(resolve(&o, NULL, &f, &e), 0);
	assert_int_equal(f.n_comm, 3);
	assert_memory_equal(f.comm[0] + 8, zeroes, 8);
	assert_string_equal(f.comm[1], "kworker/u8:2,x");
	o.comm[0] = "tokio-runtime-worker";
	assert_int_equal(resolve(&o, NULL, &f, &e), -EINVAL);
	assert_non_null(strstr(e.text, "'tokio-runtime-w'"));
	o.comm[0] = "";
	assert_int_equal(resolve(&o, NULL, &f, &e), -EINVAL);
	o.n_comm = FILTER_MAX + 1;
	assert_int_equal(resolve(&o, NULL, &f, &e), -E2BIG);
}

static void devices(void **state)
{
	struct filter_options o = { .device = { "sda", "sda1", "sdb" }, .n_device = 3 };
	struct devices_options where;
	char sysfs[128], mountinfo[128];
	struct devices *d;
	struct filter f;
	struct error e;
	struct tree t;

	tree_new(&t);
	tree_file(&t, "sys/block/sda/dev", "8:0\n");
	tree_file(&t, "sys/block/sda/sda1/dev", "8:1\n");
	tree_file(&t, "sys/block/sda/sda1/partition", "1\n");
	tree_file(&t, "sys/block/sdb/dev", "8:16\n");
	tree_file(&t, "mountinfo", "%s", "");
	where.sysfs = tree_path(&t, "sys", sysfs, sizeof(sysfs));
	where.mountinfo = tree_path(&t, "mountinfo", mountinfo, sizeof(mountinfo));
	d = devices_new(&where, NULL);
	assert_non_null(d);
	assert_int_equal(resolve(&o, d, &f, &e), 0);
	assert_int_equal(f.n_device, 3);
	o.device[1] = "sdz";
	assert_int_equal(resolve(&o, d, &f, &e), -ENOENT);
	assert_int_equal(resolve(&o, NULL, &f, &e), -ENOENT);
	devices_free(d);
	tree_free(&t);
}

// ---- cgroups: folders that stand for the mounts of a host with v1 controllers and cgroup2 beside them

struct host {
	struct tree tree;
	char mountinfo[128];
};

static int setup(void **state)
{
	static const char *const groups[] = {
		"unified/system.slice/web.service/", "memory/docker/abc/", "pids/docker/abc/", "cpu/only/", "systemd/user.slice/",
		"unified/both/", "memory/both/", "unified/empty/", "memory/sp ace/",
	};
	struct host *h = calloc(1, sizeof(*h));
	const char *r = h->tree.root;

	tree_new(&h->tree);
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		tree_file(&h->tree, groups[i], "%s", "");
	tree_file(&h->tree, "unified/system.slice/web.service/cgroup.events", "populated 1\nfrozen 0\n");
	tree_file(&h->tree, "unified/both/cgroup.events", "populated 0\nfrozen 0\n");
	tree_file(&h->tree, "memory/both/cgroup.procs", "17\n");
	tree_file(&h->tree, "mountinfo",
		  "1 0 0:1 / / rw - ext4 /dev/sda rw\n2 1 0:2 / %s/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
		  "3 1 0:3 / %s/memory rw - cgroup cgroup rw,memory\n4 1 0:4 / %s/pids rw - cgroup cgroup rw,pids\n"
		  "5 1 0:5 / %s/systemd rw - cgroup cgroup rw,xattr,name=systemd\n6 1 0:6 / %s/unified rw - cgroup2 cgroup2 rw\n",
		  r, r, r, r, r);
	tree_path(&h->tree, "mountinfo", h->mountinfo, sizeof(h->mountinfo));
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

static void expect_cgroup(void **state, const char *name, const char *folder, const char *controller)
{
	struct host *h = *state;
	struct cgroup_id got;
	struct error e = { { 0 } };
	char path[256];
	struct stat st;

	assert_int_equal(stat(tree_path(&h->tree, folder, path, sizeof(path)), &st), 0);
	if (cgroup_find(h->mountinfo, name, &got, &e))
		fail_msg("%s: %s", name, e.text);
	assert_int_equal(got.id, st.st_ino);
	assert_string_equal(got.controller, controller);
	assert_int_equal(got.v1, !!*controller);
}

static void cgroup_names(void **state)
{
	struct host *h = *state;
	char path[256];

	expect_cgroup(state, "/system.slice/web.service", "unified/system.slice/web.service", "");
	expect_cgroup(state, "system.slice/web.service/", "unified/system.slice/web.service", "");
	expect_cgroup(state, "/docker/abc", "memory/docker/abc", "memory");
	expect_cgroup(state, "only", "cpu/only", "cpu");
	expect_cgroup(state, "sp ace", "memory/sp ace", "memory");
	// Without processes it does not hide the group of that name that has them.
	expect_cgroup(state, "/both", "memory/both", "memory");
	expect_cgroup(state, "/empty", "unified/empty", "");
	expect_cgroup(state, "/", "unified", "");
	expect_cgroup(state, tree_path(&h->tree, "pids/docker/abc", path, sizeof(path)), "pids/docker/abc", "pids");
	expect_cgroup(state, tree_path(&h->tree, "memory", path, sizeof(path)), "memory", "memory");
	expect_cgroup(state, tree_path(&h->tree, "unified/", path, sizeof(path)), "unified", "");
}

static void cgroup_errors(void **state)
{
	struct host *h = *state;
	struct cgroup_id got;
	struct error e;
	char name[5000];

	assert_int_equal(cgroup_find(h->mountinfo, "/nosuch", &got, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no cgroup /nosuch in any hierarchy"));
	assert_int_equal(cgroup_find(h->mountinfo, "/user.slice", &got, &e), -EOPNOTSUPP);
	assert_int_equal(cgroup_find(h->mountinfo, "", &got, &e), -EINVAL);
	assert_int_equal(cgroup_find(h->mountinfo, "/docker/../docker/abc", &got, &e), -EINVAL);
	assert_int_equal(cgroup_find(h->mountinfo, "./docker", &got, &e), -EINVAL);
	assert_int_equal(cgroup_find(h->mountinfo, "docker/..", &got, &e), -EINVAL);
	assert_int_equal(cgroup_find("/nonexistent", "/x", &got, &e), -ENOENT);
	assert_non_null(strstr(e.text, "cannot read the mounts"));
	assert_int_equal(cgroup_find("/dev/null", "/x", &got, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no cgroup file system is mounted"));
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_int_equal(cgroup_find(h->mountinfo, name, &got, &e), -EINVAL);
	name[4000] = 0;
	assert_int_equal(cgroup_find(h->mountinfo, name, &got, &e), -ENOENT);
}

// Groups made in this host's own hierarchies. Needs root; elsewhere skipped.
static void this_host_cgroups(void **state)
{
	static const char *const mounts[] = { "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };
	unsigned tried = 0;

	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		struct filter_options o = { .n_cgroup = 1 };
		char path[128], procs[160];
		struct filter f;
		struct error e;
		struct stat st;
		int err;

		snprintf(path, sizeof(path), "%s/blkprof-test-%d", mounts[i], (int)getpid());
		if (mkdir(path, 0755))
			continue;
		snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
		if (access(procs, F_OK)) {
			// A tmpfs that only holds the mounts.
			rmdir(path);
			continue;
		}
		tried++;
		stat(path, &st);
		o.cgroup[0] = strrchr(path, '/');
		err = resolve(&o, NULL, &f, &e);
		rmdir(path);
		if (err)
			fail_msg("%s: %s", path, e.text);
		assert_int_equal(f.n_cgroup, 1);
		assert_int_equal(f.cgroup[0], st.st_ino);
		assert_int_equal(f.cgroup_v1[0], i < 2);
		assert_string_equal(f.controller[0], i == 0 ? "memory" : i == 1 ? "pids" : "");
	}
	if (!tried)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing), cmocka_unit_test(ops), cmocka_unit_test(pids), cmocka_unit_test(comms),
		cmocka_unit_test(devices), cmocka_unit_test_setup_teardown(cgroup_names, setup, teardown),
		cmocka_unit_test_setup_teardown(cgroup_errors, setup, teardown), cmocka_unit_test(this_host_cgroups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
