// SPDX-License-Identifier: Apache-2.0
// Containers by the files that runtimes and the kubelet leave on a node.
#include "agent/containers.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define A "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"
#define B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
#define POD "7f1c2a3b_1234_4cde_8f90_abcdefabcdef"
#define POD_UID "7f1c2a3b-1234-4cde-8f90-abcdefabcdef"
#define CRI                                                                                                         \
	"{\"ociVersion\":\"1.0.2\",\"annotations\":{\"io.kubernetes.cri.container-name\":\"nginx\","                \
	"\"io.kubernetes.cri.container-type\":\"container\",\"io.kubernetes.cri.sandbox-name\":"                    \
	"\"web-7d4b9c6f5d-x2x9k\",\"io.kubernetes.cri.sandbox-namespace\":\"shop\"}}"

static char root[64];

static int setup(void **state)
{
	snprintf(root, sizeof(root), "/tmp/blkprof-node.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static void put(const char *path, const char *text)
{
	char full[600], *at;
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (at = strchr(full + strlen(root) + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		assert_true(!mkdir(full, 0755) || errno == EEXIST);
		*at = '/';
	}
	if (!text) {
		assert_int_equal(mkdir(full, 0755), 0);
		return;
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void expect(const char *cgroup, const char *want)
{
	struct containers *c = containers_new(root);
	struct service_container who;
	char name[256] = "";

	assert_true(service_container(cgroup, &who));
	assert_int_equal(containers_name(c, &who, 1, name, sizeof(name)), want != NULL);
	if (want)
		assert_string_equal(name, want);
	containers_free(c);
}

// ---- cgroup paths

static void cgroup_paths(void **state)
{
	static const struct {
		const char *text, *id, *pod;
		long uid;
	} corpus[] = {
		{ "0::/system.slice/docker-" A ".scope\n", A, "", -1 },
		{ "12:memory:/docker/" A "\n0::/\n", A, "", -1 },
		{ "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD ".slice/cri-containerd-" B ".scope\n", B,
		  POD_UID, -1 },
		{ "11:pids:/kubepods/besteffort/pod" POD_UID "/" A "\n0::/system.slice/containerd.service\n", A, POD_UID, -1 },
		{ "0::/kubepods.slice/kubepods-pod" POD ".slice/crio-" A ".scope/container\n", A, POD_UID, -1 },
		{ "0::/machine.slice/libpod-" A ".scope/container\n", A, "", -1 },
		{ "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope\n", A, "", 1000 },
		{ "0::/system.slice/docker-" A ".scope/kubelet/kubepods/pod" POD_UID "/" B "\n", B, POD_UID, -1 },
		{ "4:memory:/system.slice/containerd.service/kubepods-besteffort-pod" POD ".slice:cri-containerd:" A "\n", A, POD_UID, -1 },
	};
	struct service_container who;

	for (size_t i = 0; i < sizeof(corpus) / sizeof(*corpus); i++) {
		if (!service_container(corpus[i].text, &who))
			fail_msg("no container in %s", corpus[i].text);
		assert_string_equal(who.id, corpus[i].id);
		assert_string_equal(who.pod_uid, corpus[i].pod);
		assert_int_equal(who.uid, corpus[i].uid);
	}
	assert_false(service_container("0::/system.slice/nginx.service\n", &who));
	assert_false(service_container("0::/machine.slice/libpod-conmon-" A ".scope\n", &who));
	assert_false(service_container("0::/lxc.payload.web\n", &who));
	assert_false(service_container("", &who));
}

static void workloads(void **state)
{
	static const char *const cases[][2] = {
		{ "web-7d4b9c6f5d-x2x9k", "web" },	{ "my-web-app-6c54bd5869-4xk2b", "my-web-app" },
		{ "node-exporter-8xkzv", "node-exporter" }, { "db-0", "db" }, { "db-12", "db" },
		{ "backup-28391040-bz7wq", "backup" },	{ "coredns", "coredns" }, { "static-web", "static-web" },
		{ "a-b", "a-b" }, { "-", "-" }, { "", "" }, { "x-", "x-" }, { "nginx-proxy", "nginx-proxy" },
		{ "cache-20231", "cache" }, { "v-20231107", "v-20231107" },
	};
	char out[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		containers_workload(cases[i][0], out, sizeof(out));
		assert_string_equal(out, cases[i][1]);
	}
}

// ---- runtimes

#define IN_POD "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD ".slice/cri-containerd-" A ".scope\n"

static void containerd(void **state)
{
	put("run/containerd/io.containerd.runtime.v2.task/k8s.io/" A "/config.json", CRI);
	put("run/containerd/io.containerd.runtime.v2.task/default/" B "/config.json",
	    "{\"annotations\":{\"nerdctl/name\":\"db\",\"nerdctl/namespace\":\"default\"}}");
	expect(IN_POD, "shop/web/nginx");
	expect("0::/system.slice/nerdctl-" B ".scope\n", "default/db");
}

static void k3s(void **state)
{
	put("run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/" A "/config.json",
	    "{\"annotations\":{\"io.kubernetes.cri.sandbox-name\":\"db-0\",\"io.kubernetes.cri.sandbox-namespace\":\"shop\"}}");
	expect(IN_POD, "shop/db"); // the sandbox
}

static void crio(void **state)
{
	put("var/lib/containers/storage/overlay-containers/" A "/userdata/config.json",
	    "{\"annotations\":{\"io.kubernetes.pod.namespace\":\"shop\",\"io.kubernetes.pod.name\":\"node-exporter-8xkzv\","
	    "\"io.kubernetes.container.name\":\"main\"}}");
	expect("0::/kubepods.slice/kubepods-pod" POD ".slice/crio-" A ".scope\n", "shop/node-exporter/main");
}

static void podman(void **state)
{
	put("var/lib/containers/storage/overlay-containers/containers.json",
	    "[{\"id\":\"" B "\",\"names\":[\"other\"]},{\"id\":\"" A "\",\"names\":[\"db\"],\"metadata\":\"{}\"}]");
	put("var/lib/containers/storage/overlay-containers/" A "/userdata/config.json",
	    "{\"annotations\":{\"io.container.manager\":\"libpod\"}}");
	expect("0::/machine.slice/libpod-" A ".scope/container\n", "db");
}

static void rootless(void **state)
{
	put("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:1001:B:/home/bob:/bin/sh\n");
	put("home/ann/.local/share/containers/storage/overlay-containers/containers.json", "[{\"id\":\"" A "\",\"names\":[\"web\"]}]");
	put("home/bob/.local/share/docker/containers/" B "/config.v2.json", "{\"Name\":\"/api\",\"Config\":{\"Labels\":{}}}");
	expect("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope\n", "web");
	expect("0::/user.slice/user-1001.slice/user@1001.service/user.slice/docker-" B ".scope\n", "api");
	expect("0::/user.slice/user-1002.slice/user@1002.service/user.slice/docker-" B ".scope\n", NULL);
}

static void docker(void **state)
{
	put("var/lib/docker/containers/" A "/config.v2.json",
	    "{\"ID\":\"" A "\",\"Name\":\"/shop-web-1\",\"Config\":{\"Labels\":{\"com.docker.compose.project\":\"shop\","
	    "\"com.docker.compose.service\":\"web\"}}}");
	put("var/lib/docker/containers/" B "/config.v2.json", "{\"Name\":\"/db\",\"Config\":{\"Labels\":null}}");
	expect("0::/system.slice/docker-" A ".scope\n", "shop/web");
	expect("9:memory:/docker/" B "\n0::/system.slice/containerd.service\n", "db");
}

static void swarm_and_dockershim(void **state)
{
	put("var/lib/docker/containers/" A "/config.v2.json",
	    "{\"Name\":\"/stack_web.1.x\",\"Config\":{\"Labels\":{\"com.docker.swarm.service.name\":\"stack_web\"}}}");
	put("var/lib/docker/containers/" B "/config.v2.json",
	    "{\"Name\":\"/k8s_x\",\"Config\":{\"Labels\":{\"io.kubernetes.pod.namespace\":\"shop\",\"io.kubernetes.pod.name\":\"db-1\","
	    "\"io.kubernetes.container.name\":\"pg\"}}}");
	expect("0::/docker/" A "\n", "stack_web");
	expect("2:pids:/kubepods/pod" POD_UID "/" B "\n", "shop/db/pg");
}

static void kubelet(void **state)
{
	put("var/log/containers/web-7d4b9c6f5d-x2x9k_shop_nginx-" A ".log", "");
	expect(IN_POD, "shop/web/nginx");
	put("var/log/pods/shop_db-0_" POD_UID "/pg/0.log", "");
	expect("0::/kubepods.slice/kubepods-pod" POD ".slice/cri-containerd-" B ".scope\n", "shop/db/pg");
	put("var/log/pods/shop_db-0_" POD_UID "/backup", NULL);
	expect("0::/kubepods.slice/kubepods-pod" POD ".slice/cri-containerd-" B ".scope\n", "shop/db");
}

// ---- hostile files

static void hostile(void **state)
{
	char name[256], path[600], *large = malloc(2 << 20);

	assert_non_null(large);
	memset(large, '[', 1 << 20);
	large[1 << 20] = 0;
	assert_false(containers_parse_oci(large, 1 << 20, name, sizeof(name)));
	assert_false(containers_parse_docker("{\"Name\":7}", 10, name, sizeof(name)));
	assert_false(containers_parse_docker("{\"Name\":\"/\"}", 12, name, sizeof(name)));
	assert_false(containers_parse_podman("{}", 2, A, name, sizeof(name)));
	assert_false(containers_parse_podman("[1,{\"id\":\"" A "\"}]", 77, A, name, sizeof(name)));
	assert_false(containers_parse_log("x-" A ".log", A, name, sizeof(name)));
	assert_true(containers_parse_docker("{\"Name\":\"/a/b\\u0007c\"}", 22, name, sizeof(name)));
	assert_string_equal(name, "a_b?c");
	// A link out of the node's root stays inside of it, a pipe is not read.
	snprintf(path, sizeof(path), "%s/var", root);
	put("var/lib/docker/containers/" A "/x", "");
	snprintf(path, sizeof(path), "%s/var/lib/docker/containers/" A "/config.v2.json", root);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect("0::/docker/" A "\n", NULL);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/../../../../../../etc/passwd", path), 0);
	expect("0::/docker/" A "\n", NULL);
	free(large);
}

static void asked_again(void **state)
{
	struct containers *c = containers_new(root);
	struct service_container who;
	char name[256];

	assert_true(service_container("0::/docker/" A "\n", &who));
	assert_false(containers_name(c, &who, 1, name, sizeof(name)));
	put("var/lib/docker/containers/" A "/config.v2.json", "{\"Name\":\"/db\"}");
	assert_false(containers_name(c, &who, 9000000000, name, sizeof(name)));
	assert_true(containers_name(c, &who, 11000000000, name, sizeof(name)));
	assert_string_equal(name, "db");
	containers_free(c);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cgroup_paths), cmocka_unit_test(workloads), TEST(containerd), TEST(k3s), TEST(crio), TEST(podman),
		TEST(rootless), TEST(docker), TEST(swarm_and_dockershim), TEST(kubelet), TEST(hostile), TEST(asked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
