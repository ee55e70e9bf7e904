// SPDX-License-Identifier: Apache-2.0
// /proc/PID/cgroup as the runtimes and init systems of the field leave it.
#include "agent/service.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/text.h"

#define A "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"
#define B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
#define POD "7f1c2a3b_1234_4cde_8f90_abcdefabcdef"

struct one {
	const char *text, *service;
};

// The process is called "proc" in all of them.
static const struct one corpus[] = {
	// docker: cgroup v2 with systemd and with cgroupfs, v1 with both
	{ "0::/system.slice/docker-" A ".scope\n", "0a1b2c3d4e5f" },
	{ "0::/docker/" A "\n", "0a1b2c3d4e5f" },
	{ "12:memory:/docker/" A "\n11:pids:/docker/" A "\n1:name=systemd:/docker/" A "\n0::/\n", "0a1b2c3d4e5f" },
	{ "12:memory:/system.slice/docker-" A ".scope\n1:name=systemd:/system.slice/docker-" A ".scope\n", "0a1b2c3d4e5f" },
	// v1 with cgroup2 beside it: the unified line names the daemon's own unit
	{ "9:memory:/docker/" A "\n1:name=systemd:/docker/" A "\n0::/system.slice/containerd.service\n", "0a1b2c3d4e5f" },
	{ "2:pids:/docker/" A "\n0::/\n", "0a1b2c3d4e5f" },
	// rootless docker
	{ "0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" A ".scope\n", "0a1b2c3d4e5f" },
	// docker in docker, kind: the innermost
	{ "0::/docker/" A "/docker/" B "\n", "ffeeddccbbaa" },
	{ "0::/system.slice/docker-" A ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
	  "kubelet-kubepods-burstable-pod" POD ".slice/cri-containerd-" B ".scope\n", "ffeeddccbbaa" },
	{ "3:memory:/docker/" A "/kubelet/kubepods/besteffort/pod7f1c2a3b-1234-4cde-8f90-abcdefabcdef/" B "\n0::/\n", "ffeeddccbbaa" },
	// systemd inside of a container
	{ "0::/docker/" A "/system.slice/kubelet.service\n", "0a1b2c3d4e5f" },
	{ "0::/docker/" A "/init.scope\n", "0a1b2c3d4e5f" },
	// seen from inside a cgroup namespace
	{ "0::/../../../system.slice/docker-" A ".scope\n", "0a1b2c3d4e5f" },
	{ "0::/../" A "\n", "0a1b2c3d4e5f" },
	// kubernetes: containerd and CRI-O, systemd and cgroupfs, the three classes
	{ "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD ".slice/cri-containerd-" A ".scope\n", "0a1b2c3d4e5f" },
	{ "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD ".slice/crio-" A ".scope\n", "0a1b2c3d4e5f" },
	{ "0::/kubepods.slice/kubepods-pod" POD ".slice/cri-containerd-" A ".scope\n", "0a1b2c3d4e5f" },
	{ "0::/kubepods.slice/kubepods-pod" POD ".slice/crio-" A ".scope/container\n", "0a1b2c3d4e5f" },
	{ "0::/kubepods.slice/kubepods-pod" POD ".slice/docker-" A ".scope\n", "0a1b2c3d4e5f" },
	{ "4:memory:/kubepods/burstable/pod7f1c2a3b-1234-4cde-8f90-abcdefabcdef/" A "\n0::/\n", "0a1b2c3d4e5f" },
	{ "4:memory:/kubepods/besteffort/pod7f1c2a3b-1234-4cde-8f90-abcdefabcdef/crio-" A "\n", "0a1b2c3d4e5f" },
	{ "0::/system.slice/containerd.service/kubepods-burstable-pod" POD ".slice:cri-containerd:" A "\n", "0a1b2c3d4e5f" },
	{ "0::/kubepods.slice/kubepods-pod" POD ".slice\n", "proc" },
	// monitors are no part of their container
	{ "0::/kubepods.slice/kubepods-pod" POD ".slice/crio-conmon-" A ".scope\n", "proc" },
	{ "0::/machine.slice/libpod-conmon-" A ".scope\n", "proc" },
	{ "0::/lxc.monitor.web\n", "proc" },
	// podman: root, rootless, cgroupfs, in a unit of its own
	{ "0::/machine.slice/libpod-" A ".scope\n", "0a1b2c3d4e5f" },
	{ "0::/machine.slice/libpod-" A ".scope/container\n", "0a1b2c3d4e5f" },
	{ "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope/container\n", "0a1b2c3d4e5f" },
	{ "7:pids:/libpod_parent/libpod-" A "\n0::/\n", "0a1b2c3d4e5f" },
	{ "0::/system.slice/web.service/libpod-payload-" A "\n", "0a1b2c3d4e5f" },
	// nerdctl, bare containerd, ECS and Fargate
	{ "0::/system.slice/nerdctl-" A ".scope\n", "0a1b2c3d4e5f" },
	{ "0::/default/" A "\n", "0a1b2c3d4e5f" },
	{ "4:memory:/ecs/55091c13-b8cf-4801-b527-f4601742204d/" A "\n", "0a1b2c3d4e5f" },
	{ "4:memory:/ecs/1234567890abcdef1234567890abcdef/1234567890abcdef1234567890abcdef-2531612879\n", "1234567890ab-2531612879" },
	{ "0::/ecstasks/1234567890abcdef1234567890abcdef/1234567890abcdef1234567890abcdef-42\n", "1234567890ab-42" },
	// LXC, LXD, Proxmox: they name it
	{ "0::/lxc.payload.web\n", "web" },
	{ "0::/lxc.payload.web/system.slice/nginx.service\n", "web" },
	{ "4:memory:/lxc.payload/db/init.scope\n0::/\n", "db" },
	{ "4:memory:/lxc/101/ns/system.slice/cron.service\n", "101" },
	{ "0::/lxc/db-2\n", "db-2" },
	// machines of systemd and libvirt
	{ "0::/machine.slice/systemd-nspawn@web.service/payload/system.slice/nginx.service\n", "systemd-nspawn@web.service" },
	{ "0::/machine.slice/machine-web\\x2dtest.scope/payload/init.scope\n", "web-test" },
	{ "0::/machine.slice/machine-qemu\\x2d7\\x2ddb1.scope/libvirt/emulator\n", "qemu-db1" },
	{ "0::/machine.slice/machine-qemu\\x2d12\\x2ddb\\x2dold.scope\n", "qemu-db-old" },
	// system units
	{ "0::/system.slice/nginx.service\n", "nginx.service" },
	{ "12:memory:/system.slice/nginx.service\n1:name=systemd:/system.slice/nginx.service\n0::/system.slice/nginx.service\n", "nginx.service" },
	{ "8:memory:/\n5:pids:/\n1:name=systemd:/system.slice/cron.service\n0::/\n", "cron.service" },
	{ "4:cpu,cpuacct:/\n8:memory:/system.slice/a.service\n0::/\n", "a.service" },
	{ "0::/system.slice/system-postgresql.slice/postgresql@15-main.service\n", "postgresql@15-main.service" },
	{ "0::/system.slice/system-getty.slice/getty@tty1.service\n", "getty@tty1.service" },
	{ "0::/system.slice/system-foo.slice/foo@bar.service\n", "foo@bar.service" },
	{ "0::/system.slice/system-a.slice/a@x\\x2dy.service\n", "a@x-y.service" },
	{ "0::/system.slice/dev-disk-by\\x2duuid-12.swap\n", "dev-disk-by-uuid-12.swap" },
	{ "0::/system.slice/home-alice.mount\n", "home-alice.mount" },
	{ "0::/system.slice/_memory.service\n", "memory.service" },
	{ "0::/system.slice/a.service/supervised/b.service/worker\n", "b.service" },
	{ "0::/system.slice/docker.service\n", "docker.service" },
	{ "0::/system.slice/snap.lxd.daemon.service\n", "snap.lxd.daemon.service" },
	{ "0::/system.slice/mongodb.service/worker-1\n", "mongodb.service" },
	{ "0::/my.slice/my-db.slice/backup.scope\n", "backup.scope" },
	// instances that are new each time
	{ "0::/system.slice/system-sshd.slice/sshd@3-10.0.0.1:22-10.0.0.2:51111.service\n", "sshd@.service" },
	{ "0::/system.slice/system-systemd\\x2dcoredump.slice/systemd-coredump@12-4711-0.service\n", "systemd-coredump@.service" },
	{ "0::/system.slice/job@5b3c1f60-1234-4cde-8f90-abcdefabcdef.service\n", "job@.service" },
	{ "0::/system.slice/run-u1234.service\n", "proc" },
	{ "0::/system.slice/run-r0123456789abcdef0123456789abcdef.service\n", "proc" },
	{ "0::/system.slice/run-p1234-i5678.scope\n", "proc" },
	{ "0::/system.slice/run-backup.service\n", "run-backup.service" },
	// users
	{ "0::/user.slice/user-1000.slice/session-3.scope\n", "proc" },
	{ "0::/user.slice/user-1000.slice/session-c1.scope\n", "proc" },
	{ "0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", "user@1000.service" },
	{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/syncthing.service\n", "syncthing.service" },
	{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-firefox-1234.scope\n", "proc" },
	{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal.slice/vte-spawn-5b3c1f60-1234-4cde-8f90-"
	  "abcdefabcdef.scope\n", "proc" },
	{ "0::/user.slice/user-1000.slice/user@1000.service/tmux-spawn-5b3c1f60-1234-4cde-8f90-abcdefabcdef.scope\n", "proc" },
	{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/snap.firefox.firefox-5b3c1f60-1234-4cde-8f90-abcdefabcdef.scope\n",
	  "snap.firefox.firefox" },
	{ "0::/user.slice/user-1000.slice/user@1000.service/snap.code.code.5b3c1f60-1234-4cde-8f90-abcdefabcdef.scope\n", "snap.code.code" },
	// no unit
	{ "0::/init.scope\n", "proc" }, { "0::/\n", "proc" }, { "0::/system.slice\n", "proc" }, { "", "proc" },
	{ "4:memory:/process_api/fcb42bb96f7b745bc1920dbb11ba687e\n0::/\n", "proc" },
	{ "0::/mygroup/db\n", "proc" },
	// OpenRC
	{ "0::/openrc.sshd\n", "sshd" }, { "1:name=openrc:/sshd\n0::/openrc/nginx\n", "nginx" },
};

static void check_corpus(void **state)
{
	char out[256];

	for (size_t i = 0; i < sizeof(corpus) / sizeof(*corpus); i++) {
		service_from_cgroup(corpus[i].text, "proc", out, sizeof(out));
		if (strcmp(out, corpus[i].service))
			fail_msg("%s is '%s', not '%s'", corpus[i].text, out, corpus[i].service);
	}
}

static void paths(void **state)
{
	static const struct {
		const char *text, *path, *controller;
	} cases[] = {
		{ "4:memory:/m\n2:pids:/p\n0::/u\n", "/u", "" },
		{ "4:memory:/m\n2:pids:/p\n0::/\n", "/m", "memory" },
		{ "2:pids:/p\n4:memory:/\n0::/\n", "/p", "pids" },
		{ "9:name=systemd:/\n8:pids:/\n4:memory:/process_api/fcb\n1:cpu:/\n0::/\n", "/process_api/fcb", "memory" },
		{ "4:cpu,memory:/m\n", "/m", "memory" },
		{ "4:memory:/\n2:pids:/\n0::/\n", "/", "" },
		{ "4:memory:/\n2:pids:/\n", "/", "memory" },
		{ "2:pids:/", "/", "pids" },
		{ "0::/a:b/c\n", "/a:b/c", "" },
	};
	char path[64], controller[16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(service_cgroup_path(cases[i].text, path, sizeof(path), controller, sizeof(controller)), 0);
		assert_string_equal(path, cases[i].path);
		assert_string_equal(controller, cases[i].controller);
	}
	snprintf(path, sizeof(path), "kept");
	assert_int_equal(service_cgroup_path("", path, sizeof(path), controller, sizeof(controller)), -ENOENT);
	assert_int_equal(service_cgroup_path("1:name=systemd:/x\n", path, sizeof(path), controller, sizeof(controller)), -ENOENT);
	assert_int_equal(service_cgroup_path("0::/toolong\n", path, 8, controller, sizeof(controller)), -ENOENT);
	assert_string_equal(path, "kept");
}

static void hostile(void **state)
{
	static const char *const texts[] = {
		"0::", "0:", "0", ":", "::", ":::", "\n\n\n", "0::relative\n", "0::/\xff\xfe.service\n", "0::/a\\x00b.service\n",
		"0::/a\\x0a\\x1b[31m.service\n", "0::/\\x\n", "0::/\\x2\n", "0::/\\xzz.service", "0::/.service\n", "0::/@.service\n",
		"0::/-.scope\n", "0::/snap.-.scope\n", "0::/../..\n", "0::////\n", "0::/lxc.payload.\n", "0::/machine.slice/machine-.scope\n",
		"0::/machine.slice/machine-a-1-.scope\n", "0::/openrc.\n", "0::/_.service\n", "0::/run-.service\n",
	};
	char text[20000], out[64];
	size_t n;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		service_from_cgroup(texts[i], "pr\xffoc", out, sizeof(out));
		assert_true(text_is_utf8(out, strlen(out)));
		for (const char *p = out; *p; p++)
			assert_true((unsigned char)*p >= 0x20);
	}
	// Deep, long and cut.
	n = (size_t)snprintf(text, sizeof(text), "0::");
	for (int i = 0; i < 3000; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "/a%d", i % 10);
	service_from_cgroup(text, "proc", out, sizeof(out));
	assert_string_equal(out, "proc");
	n = (size_t)snprintf(text, sizeof(text), "0::/");
	memset(text + n, 'x', 1000);
	snprintf(text + n + 1000, sizeof(text) - n - 1000, ".service");
	service_from_cgroup(text, "proc", out, 8);
	assert_string_equal(out, "proc");
	service_from_cgroup("0::/nginx.service", "proc", out, 6);
	assert_string_equal(out, "nginx");
	service_from_cgroup("0::/nginx.service", "proc", out, 1);
	assert_string_equal(out, "");
}

// A nested cgroup deeper than what is looked at still belongs to the container near its root.
static void deep_container(void **state)
{
	char text[4000], out[64];
	size_t n = (size_t)snprintf(text, sizeof(text), "0::/docker/" A);

	for (int i = 0; i < 200; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "/x");
	service_from_cgroup(text, "proc", out, sizeof(out));
	assert_string_equal(out, "0a1b2c3d4e5f");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_corpus), cmocka_unit_test(paths), cmocka_unit_test(hostile), cmocka_unit_test(deep_container),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
